"""Small valid jobs with inputs of every format that is read: what `mutations.py` damages."""

import json
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

from inputs import products

HEIGHT, WIDTH, BANDS, CLASSES = 14, 16, 6, 3

JOB = """\
[scene]
{scene}
[features]
dimension = 4
seed = 1
[neighbors]
k = 6
leaf_size = 64
overlap = 0.1
{neighbors}
{graph}
[spectrum]
dimension = 5
tolerance = 1e-5
[learn]
method = "{method}"
{learn}
{draws}
[output]
formats = ["geotiff"]
eigenvectors = 2
[limits]
memory = "512MiB"
threads = 1
{rest}
"""

PROFILE = {
    "driver": "GTiff", "crs": "EPSG:32633", "transform": (30, 0, 364095, 0, -30, 5809965),
}  # fmt: skip


class Pixels:
    """A cube of coherent classes (rows x columns x bands), labels, and a mask."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        row, column = np.mgrid[:HEIGHT, :WIDTH]
        self.truth = (1 + (column * CLASSES) // WIDTH).astype(np.uint8)
        spectra = rng.uniform(500, 4000, (CLASSES, BANDS))
        noise = rng.normal(0, 50, (HEIGHT, WIDTH, BANDS))
        self.cube = np.round(spectra[self.truth - 1] + noise).astype(np.int16)
        self.labels = np.where(rng.random(self.truth.shape) < 0.6, self.truth, 0).astype(np.uint8)
        self.mask = ((row + column) > 3).astype(np.uint8)
        self.table = self.cube.reshape(-1, BANDS).astype(np.float32)


def write_corpus(directory: Path) -> list[Path]:
    """Write every case into a directory of its own, each with a job.toml; return them."""
    pixels, cases = Pixels(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, write in CASES.items():
            case = directory / name
            case.mkdir(parents=True)
            keys = write(case, pixels)
            (case / "job.toml").write_text(_job(**keys))
            cases.append(case)
    return cases


def _job(
    *, neighbors: str = "", graph: str = "", learn: str = "", rest: str = "",
    method: str = "centroid-angle", **scene: Any,
) -> str:  # fmt: skip
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in scene.items())
    # A file of training pixels is no draw.
    draws = "" if 'train = "' in learn else "trials = 2\nseed = 3"
    return JOB.format(
        scene=lines, neighbors=neighbors, graph=graph, method=method, learn=learn, rest=rest,
        draws=draws,
    )  # fmt: skip


def _tif(path: Path, array: np.ndarray, **profile: Any) -> None:
    import rasterio

    bands = np.moveaxis(array, -1, 0) if array.ndim == 3 else array[np.newaxis]
    options = {**PROFILE, **profile}
    options["transform"] = rasterio.Affine(*options["transform"])
    count, height, width = bands.shape
    with rasterio.open(
        path, "w", count=count, height=height, width=width, dtype=bands.dtype, **options
    ) as dataset:
        dataset.write(bands)


def _geotiff(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    import rasterio

    _tif(case / "scene.tif", pixels.cube, nodata=-9999)
    _tif(case / "labels.tif", pixels.labels, nodata=0, compress="deflate")
    with rasterio.open(case / "labels.tif", "r+") as dataset:
        dataset.write_colormap(1, {1: (200, 0, 0, 255), 2: (0, 200, 0, 255), 3: (0, 0, 200, 255)})
    (case / "labels.tif.aux.xml").write_text(
        "<PAMDataset><PAMRasterBand band='1'><CategoryNames><Category>none</Category>"
        "<Category>ash</Category><Category>beech</Category><Category>cedar</Category>"
        "</CategoryNames></PAMRasterBand></PAMDataset>"
    )
    _tif(case / "mask.tif", pixels.mask)
    return {
        "path": "scene.tif", "labels": "labels.tif", "mask": "mask.tif",
        "bad_bands": [2, "5-6"], "scale": 0.5, "nodata": -1, "learn": "train = 0.4",
    }  # fmt: skip


def _compressed(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    _tif(
        case / "scene.tif", pixels.cube, compress="lzw", tiled=True, blockxsize=16, blockysize=16,
        interleave="pixel", predictor=2,
    )  # fmt: skip
    moved = (60, 0, 364095 - 120, 0, -60, 5809965 + 60)
    _tif(case / "labels.tif", pixels.labels[::2, ::2].copy(), transform=moved)
    _tif(case / "train.tif", pixels.labels)
    return {"path": "scene.tif", "labels": "labels.tif", "learn": 'train = "train.tif"'}


def _list(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    names = [f"B{band}.tif" for band in range(3)]
    for band, name in enumerate(names):
        _tif(case / name, pixels.cube[..., band])
    _tif(case / "labels.tif", pixels.labels)
    return {"path": names, "labels": "labels.tif", "graph": "[graph.spatial]\nneighbors = 4"}


def _envi(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    pixels.cube.astype("<i2").transpose(0, 2, 1).tofile(case / "scene.img")
    centres = ", ".join(f"{400 + 70 * band}.5" for band in range(BANDS))
    (case / "scene.hdr").write_text(
        f"ENVI\ndescription = {{made}}\nsamples = {WIDTH}\nlines = {HEIGHT}\nbands = {BANDS}\n"
        "header offset = 0\nfile type = ENVI Standard\ndata type = 2\ninterleave = bil\n"
        "byte order = 0\nmap info = {UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84}\n"
        f"wavelength units = Nanometers\nwavelength = {{{centres}}}\n"
        f"fwhm = {{{', '.join(['10'] * BANDS)}}}\nbbl = {{1, 1, 1, 0, 1, 1}}\n"
        "reflectance scale factor = 10000\ndata ignore value = -9999\n"
    )
    pixels.labels.tofile(case / "labels.img")
    (case / "labels.hdr").write_text(
        f"ENVI\nsamples = {WIDTH}\nlines = {HEIGHT}\nbands = 1\nheader offset = 0\n"
        "file type = ENVI Classification\ndata type = 1\ninterleave = bsq\nbyte order = 0\n"
        "classes = 4\nclass names = {none, ash, beech, cedar}\n"
        "class lookup = {0, 0, 0, 200, 0, 0, 0, 200, 0, 0, 0, 200}\n"
        "map info = {UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84}\n"
    )
    return {
        "path": "scene.img", "labels": "labels.img", "bad_bands": ["1", "540-560 nm"],
        "method": "poisson",
    }  # fmt: skip


def _vrt(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    _tif(case / "source.tif", pixels.cube)
    bands = "".join(
        f'<VRTRasterBand dataType="Int16" band="{band}"><NoDataValue>-9999</NoDataValue>'
        f'<SimpleSource><SourceFilename relativeToVRT="1">source.tif</SourceFilename>'
        f'<SourceBand>{band}</SourceBand><SourceProperties RasterXSize="{WIDTH}" '
        f'RasterYSize="{HEIGHT}" DataType="Int16" BlockXSize="{WIDTH}" BlockYSize="{HEIGHT}"/>'
        f'<SrcRect xOff="0" yOff="0" xSize="{WIDTH}" ySize="{HEIGHT}"/>'
        f'<DstRect xOff="0" yOff="0" xSize="{WIDTH}" ySize="{HEIGHT}"/></SimpleSource>'
        "</VRTRasterBand>"
        for band in range(1, BANDS + 1)
    )
    (case / "scene.vrt").write_text(
        f'<VRTDataset rasterXSize="{WIDTH}" rasterYSize="{HEIGHT}"><SRS>EPSG:32633</SRS>'
        f"<GeoTransform>364095, 30, 0, 5809965, 0, -30</GeoTransform>{bands}</VRTDataset>"
    )
    _tif(case / "labels.tif", pixels.labels)
    return {"path": "scene.vrt", "labels": "labels.tif"}


def _npy(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    np.save(case / "scene.npy", pixels.cube)
    np.save(case / "labels.npy", pixels.labels)
    np.save(case / "mask.npy", pixels.mask)
    np.save(case / "V.npy", (pixels.labels == 1).astype(np.float32))
    return {
        "path": "scene.npy", "labels": "labels.npy", "mask": "mask.npy",
        "graph": '[graph.potential]\nraster = "V.npy"\nalpha = 2.0',
    }  # fmt: skip


def _npz(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    np.savez_compressed(case / "scene.npz", cube=pixels.cube, gt=pixels.labels, note=np.ones(2))
    return {"path": "scene.npz", "labels_variable": "gt", "learn": "train = 60"}


def _mat(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    from scipy.io import savemat

    savemat(case / "scene.mat", {"cube": pixels.cube, "name": "made"}, do_compression=True)
    savemat(case / "labels.mat", {"gt": pixels.labels.astype(float), "n": 3.0})
    return {"path": "scene.mat", "labels": "labels.mat", "labels_variable": "gt"}


def _unmixing(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    from scipy.io import savemat

    flat = pixels.cube.transpose(2, 1, 0).reshape(BANDS, -1).astype(float)
    numbers = {"nRow": HEIGHT, "nCol": WIDTH, "nBand": BANDS}
    abundances = np.ones((CLASSES, HEIGHT * WIDTH)) / CLASSES
    savemat(case / "scene.mat", {"V": flat, "A": abundances, **numbers}, do_compression=True)
    np.savez(case / "labels.npz", gt=pixels.labels)
    return {"path": "scene.mat", "labels": "labels.npz"}


def _mat73(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    import h5py

    with h5py.File(case / "scene.mat", "w", userblock_size=512) as file:
        for name, array in {"cube": pixels.cube, "gt": pixels.labels}.items():
            stored = file.create_dataset(
                name, data=array.T, chunks=(*array.T.shape[:-1], 5), compression="gzip"
            )
            stored.attrs["MATLAB_class"] = np.bytes_(f"{array.dtype}")
    return {"path": "scene.mat", "labels_variable": "gt"}


def _zarr3(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    import zarr

    zarr.create_array(case / "scene.zarr", data=pixels.cube, chunks=(5, 16, 6))
    zarr.create_array(
        case / "labels.zarr", data=pixels.labels, chunks=(4, 4), shards=(8, 16), compressors=None
    )
    return {"path": "scene.zarr", "labels": "labels.zarr"}


def _zarr2(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    import zarr

    group = zarr.open_group(case / "scene.zarr", mode="w", zarr_format=2)
    group.create_array("cube", data=pixels.cube, chunks=(5, 16, 6))
    group.create_array("gt", data=pixels.labels, chunks=(14, 16))
    return {"path": "scene.zarr", "labels_variable": "gt", "variable": "cube"}


def _netcdf(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    from scipy.io import netcdf_file

    with netcdf_file(case / "scene.nc", "w") as file:
        for name, size in (("band", BANDS), ("y", HEIGHT), ("x", WIDTH)):
            file.createDimension(name, size)
        stored = file.createVariable("radiance", "i2", ("band", "y", "x"))
        stored[:] = pixels.cube.transpose(2, 0, 1)
    np.save(case / "labels.npy", pixels.labels)
    return {"path": "scene.nc", "labels": "labels.npy"}


def _csv(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    import pandas as pd

    frame = pd.DataFrame(pixels.table, columns=[f"b{band}" for band in range(BANDS)])
    frame["site"] = [f"plot {number}" for number in range(len(frame))]
    frame["kind"] = np.array(["", "ash", "beech", "cedar"])[pixels.labels.ravel()]
    frame.to_csv(case / "scene.csv", index=False)
    return {"path": "scene.csv", "columns": ["b0", "2-4"], "labels_field": "kind", "samples": 180}


def _tsv(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    import pandas as pd

    np.save(case / "scene.npy", pixels.table)
    frame = pd.DataFrame({"class": pixels.labels.ravel(), "weight": 1.5})
    frame.to_csv(case / "labels.tsv", sep="\t", index=False)
    np.save(case / "mask.npy", pixels.mask.ravel())
    return {"path": "scene.npy", "labels": "labels.tsv", "mask": "mask.npy"}


def _parquet(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    import pandas as pd

    frame = pd.DataFrame(pixels.table, columns=[f"b{band}" for band in range(BANDS)])
    frame["class"] = pixels.labels.ravel()
    frame.to_parquet(case / "scene.parquet", row_group_size=100)
    return {"path": "scene.parquet", "labels_field": "class", "method": "k-nn"}


def _sparse(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    import scipy.sparse as sp

    kept = np.where(pixels.table > 1500, pixels.table, 0)
    sp.save_npz(case / "scene.npz", sp.csr_array(kept))
    np.savetxt(case / "labels.csv", pixels.labels.reshape(-1, 1), fmt="%d")
    return {
        "path": "scene.npz", "labels": "labels.csv", "neighbors": 'metric = "angle"',
        "bad_bands": ["1"],
    }  # fmt: skip


def _frame(pixels: Pixels) -> Any:
    import geopandas
    from shapely import Point, box

    shapes, names = [], []
    for row, column in zip(*np.nonzero(pixels.labels), strict=True):
        x, y = 364095 + 30 * (column + 0.5), 5809965 - 30 * (row + 0.5)
        shapes.append(Point(x, y) if (row + column) % 3 else box(x - 12, y - 12, x + 12, y + 12))
        names.append(["", "ash", "beech", "cedar"][pixels.labels[row, column]])
    return geopandas.GeoDataFrame({"kind": names}, geometry=shapes, crs="EPSG:32633")


def _vectors(ending: str) -> Callable[[Path, Pixels], Mapping[str, Any]]:
    def write(case: Path, pixels: Pixels) -> Mapping[str, Any]:
        _tif(case / "scene.tif", pixels.cube)
        frame = _frame(pixels)
        if ending == "shp":
            frame = frame[frame.geom_type == "Point"]
        frame = frame.to_crs("EPSG:4326") if ending == "geojson" else frame
        frame.to_file(case / f"labels.{ending}")
        return {"path": "scene.tif", "labels": f"labels.{ending}", "labels_field": "kind"}

    return write


def _study(case: Path, pixels: Pixels) -> Mapping[str, Any]:
    np.save(case / "scene.npy", pixels.cube)
    np.save(case / "labels.npy", pixels.labels)
    study = '[study]\ntitle = "made"\nmeasure = "accuracy"\n[study.grid]\n"neighbors.k" = [5, 7]\n'
    return {
        "path": "scene.npy", "labels": "labels.npy", "learn": "train = 0.5",
        "rest": study + '[[study.variants]]\nname = "plain"\nset = { "learn.power" = 1 }\n',
    }  # fmt: skip


def _product(
    writer: Callable[..., products.Product], packed: str = "", **options: Any
) -> Callable[[Path, Pixels], Mapping[str, Any]]:
    """Return what writes a sensor product, as it is or in a zip file, and labels on its pixels."""

    def write(case: Path, pixels: Pixels) -> Mapping[str, Any]:
        product = writer(case / "product", **options)
        np.save(case / "labels.npy", products.truth(*product.valid.shape).astype(np.uint8))
        path = product.path
        if packed:
            folder = path if path.is_dir() else path.parent
            path = products.zipped(folder, case / packed, inside=False)
            shutil.rmtree(case / "product")
        return {"path": str(path.relative_to(case)), "labels": "labels.npy", "learn": "train = 0.4"}

    return write


CASES: Mapping[str, Callable[[Path, Pixels], Mapping[str, Any]]] = {
    "geotiff": _geotiff, "compressed": _compressed, "list": _list, "envi": _envi, "vrt": _vrt,
    "npy": _npy, "npz": _npz, "mat": _mat, "unmixing": _unmixing, "mat73": _mat73,
    "zarr3": _zarr3, "zarr2": _zarr2, "netcdf": _netcdf, "csv": _csv, "tsv": _tsv,
    "parquet": _parquet, "sparse": _sparse, "geojson": _vectors("geojson"),
    "gpkg": _vectors("gpkg"), "shp": _vectors("shp"), "study": _study,
    "emit": _product(products.emit), "enmap": _product(products.enmap),
    "enmap-zip": _product(products.enmap, "enmap.zip", level="L1C"),
    "prisma": _product(products.prisma), "prisma-zip": _product(products.prisma, "prisma.zip"),
    "landsat": _product(products.landsat), "landsat-xml": _product(products.landsat, xml=True),
    "sentinel2": _product(products.sentinel2, driver="GTiff"),
    "sentinel2-zip": _product(products.sentinel2, "sentinel2.zip"),
    "neon": _product(products.neon), "aviris": _product(products.aviris),
    "aviris-l1b": _product(products.aviris, ortho=False), "aviris-envi": _product(products.envi),
    "hyspex": _product(
        products.envi, name="line03_VNIR.img", lookup="igm", sensor="HySpex", unit="Nanometers"
    ),
    "desis": _product(products.desis), "desis-zip": _product(products.desis, "desis.zip"),
    "pace": _product(products.pace),
}  # fmt: skip
SENSORS = tuple(name for name, write in CASES.items() if write.__qualname__.startswith("_product"))
"""Those that are sensor products."""
