"""A labelled synthetic hyperspectral scene of any size, streamed to disk.

Everything is a function of the pixel's coordinates and the seed: land cover and illumination come
from hashed lattices (`landcover`), the sensor's noise from one random stream per strip of rows. So
any window of rows can be made by itself, memory does not depend on the height, and the files do not
depend on how many rows are made at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.datasets.made.landcover import FIRST_PATCH_CLASS, Cover, Land, smooth_noise
from eigenscape.errors import InputError, OutputError
from eigenscape.export.geotiff import write_raster
from eigenscape.export.palette import complete_legend
from eigenscape.export.sidecar import write_categories
from eigenscape.scenes.types import Grid, Legend

Floats = NDArray[np.float32]

SCALE = 1e-4
"""Reflectance per stored unit."""

_ORIGIN = (427_000.0, 4_173_000.0)
_PIXEL = 5.0  # Metres.
_NANOMETERS = (400.0, 2500.0)

# Pixels that are made together: a strip of all bands should stay in cache.
_STRIP_PIXELS = 4096
_LARGEST = {"height": 2**31 - 1, "width": 2**31 - 1, "bands": 65535, "classes": 1000}

_MADE = "eigenscape synth:"
"""How the descriptions of the files begin."""

_KINSHIP = 0.07
_SLOPE, _MOISTURE = np.float32(0.15), np.float32(0.2)
_VARIATION_PERIODS = (97.0, 11.0, 61.0, 7.0, 43.0, 5.0)  # Pixels.

_NAMES = (
    "tidal creek", "road", "loblolly pine", "wax myrtle", "salt meadow cordgrass",
    "smooth cordgrass", "black needlerush", "salt grass", "common reed", "cattail",
    "marsh elder", "beach grass", "sea oxeye", "glasswort", "dune panic grass",
    "switchgrass", "bare sand", "wet sand", "mud flat", "wrack", "pond", "roof",
)  # fmt: skip


def synthesize(
    path: str | Path,
    *,
    height: int,
    width: int,
    bands: int,
    classes: int,
    seed: int,
    rows_per_block: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write a synthetic scene and, beside it, its labels in ``<stem>_labels.tif``.

    The scene holds reflectance x 10000 in uint16 with its scale, wavelengths (400 ... 2500 nm) and
    georeference. Labels cover about two thirds of it and carry class names and colours. Class 1
    (a creek) and class 2 (roads) are long and thin when there are four classes or more. A small
    scene need not hold every class.

    Parameters
    ----------
    path
        The scene, with the suffix .tif. It appears when everything is complete.
    height, width, bands
        Size of the scene.
    classes
        Number of materials, 2 ... 1000.
    seed
        The same seed and sizes give the same scene.
    rows_per_block
        Rows that are made and handed on at a time: changes memory, never the files.
    progress
        Called with the rows done and the rows in all (twice the height: labels, then scene).

    Raises
    ------
    InputError
        A size, the seed or the suffix is impossible.
    OutputError
        A file cannot be written, or is there and is no synthetic one.
    """
    path = Path(path)
    sizes = {"height": height, "width": width, "bands": bands, "classes": classes}
    _check(path, sizes, seed, rows_per_block)
    from rasterio.crs import CRS

    x, y = _ORIGIN
    grid = Grid(height, width, CRS.from_epsg(32618).to_wkt(), (_PIXEL, 0.0, x, 0.0, -_PIXEL, y))
    legend = complete_legend(
        Legend(names=dict(enumerate(_NAMES[:classes], start=1))), range(1, classes + 1)
    )
    land = Land.make(height, width, classes, seed)
    spectra = _Spectra.make(bands, classes, seed)
    step = rows_per_block or 16 * _strip_rows(width)

    def blocks(make: Callable[[int, int], NDArray[Any]], done: int) -> Iterator[Any]:
        for start in range(0, height, step):
            stop = min(start + step, height)
            yield start, make(start, stop)
            if progress is not None:
                progress(done + stop, 2 * height)

    labels_path = path.with_name(f"{path.stem}_labels.tif")
    for file in (path, labels_path):
        _check_ours(file)
    tags = {"DESCRIPTION": f"{_MADE} {classes} classes, seed {seed}"}
    # The scene comes last, and an older one goes first: what is there always has its own labels.
    path.unlink(missing_ok=True)
    kind = np.dtype(np.uint8 if classes < 256 else np.uint16)
    write_raster(
        labels_path,
        grid,
        blocks(lambda start, stop: land.labels(start, stop).astype(kind), 0),
        dtype=kind,
        nodata=0,
        band_names=("label",),
        tags=tags,
        legend=legend,
    )
    write_categories(labels_path, legend)
    spacing = (_NANOMETERS[1] - _NANOMETERS[0]) / max(bands - 1, 1)
    write_raster(
        path,
        grid,
        blocks(lambda start, stop: _scene_rows(land, spectra, height, start, stop), height),
        count=bands,
        dtype=np.uint16,
        nodata=None,
        band_names=tuple(f"{center:.1f} nm" for center in spectra.wavelength),
        band_tags=tuple(
            {
                "wavelength": f"{center:.2f}",
                "fwhm": f"{1.1 * spacing:.2f}",
                "wavelength_units": "Nanometers",
            }
            for center in spectra.wavelength
        ),
        tags=tags,
        scale=SCALE,
        layout="strips",
    )


def _check(path: Path, sizes: dict[str, int], seed: int, rows_per_block: int | None) -> None:
    if path.suffix.lower() not in (".tif", ".tiff"):
        raise InputError(f"{path}: a synthetic scene is a GeoTIFF; give a name that ends in .tif.")
    for name, value in sizes.items():
        least, most = 2 if name == "classes" else 1, _LARGEST[name]
        if not least <= value <= most:
            raise InputError(f"{name} = {value}: give a number from {least} to {most}.")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed = {seed}: give a number from 0 to 2**63 - 1.")
    if rows_per_block is not None and rows_per_block < 1:
        raise InputError(f"rows_per_block = {rows_per_block}: give a number from 1 on.")


def _check_ours(path: Path) -> None:
    """Refuse to replace a file that was not made here: a scene of the user, or its labels."""
    import rasterio

    if not path.exists():
        return
    try:
        with rasterio.open(path) as there:
            made = str(there.tags().get("DESCRIPTION", "")).startswith(_MADE)
    except rasterio.errors.RasterioIOError:
        made = False
    if not made:
        raise OutputError(
            f"{path}: already exists and is no synthetic scene or its labels, so it is not replaced. Give "
            "another name, or delete it."
        )


def _strip_rows(width: int) -> int:
    """Return the rows that share a stream of noise; never depends on `rows_per_block`."""
    return max(1, _STRIP_PIXELS // width)


def _stream(seed: int, number: int) -> np.random.Generator:
    # Without the type, a list of large integers would pass through floats.
    return np.random.Generator(np.random.Philox(key=np.array([seed, number], np.uint64)))


@dataclass(frozen=True)
class _Spectra:
    """What the materials look like; arrays by band first, for products with rows of pixels.

    Attributes
    ----------
    wavelength : shape (band,)
        Centres in nanometres.
    reflectance : shape (band, class + 1)
        Mean reflectance of each class; column 0 is not used.
    slope, moisture : shape (band,)
        Two ways in which every material varies from place to place, as relative changes.
    noise : shape (band,)
        Standard deviation of the sensor's noise, in reflectance.
    """

    seed: int
    wavelength: NDArray[np.float64]
    reflectance: Floats
    slope: Floats
    moisture: Floats
    noise: Floats

    @classmethod
    def make(cls, bands: int, classes: int, seed: int) -> "_Spectra":
        # Streams 0, 1, 2 ... are the strips' noise.
        rng = _stream(seed, 2**64 - 1)
        wavelength = np.linspace(*_NANOMETERS, bands)
        families = max(2, -(-classes * 2 // 5))
        bases = [_material(wavelength, rng) for _ in range(families)]
        reflectance = np.zeros((bands, classes + 1), np.float32)
        for number in range(1, classes + 1):
            # Kin: materials of one family differ by a few per cent, slowly over the spectrum.
            kin = 1 + _KINSHIP * _curve(wavelength, rng, 6, (80.0, 300.0))
            reflectance[:, number] = np.clip(bases[number % families] * kin, 0.01, 0.9)
        if classes > FIRST_PATCH_CLASS:
            reflectance[:, 1] *= 0.35  # Water is dark.
        water = _bell(wavelength, 1450, 60) + 1.3 * _bell(wavelength, 1940, 70)
        noise = 0.0035 * (1 + 3 * _bell(wavelength, 1400, 40) + 4 * _bell(wavelength, 1900, 50))
        return cls(
            seed,
            wavelength,
            reflectance,
            ((wavelength - 1450) / 1050).astype(np.float32),
            (-water - 0.3 * _bell(wavelength, 1200, 50)).astype(np.float32),
            noise.astype(np.float32),
        )

    def observe(self, cover: Cover, light: Floats, slope: Floats, wet: Floats) -> Floats:
        """Return the reflectance of pixels before noise, shape (band, pixel)."""
        seen = self.reflectance.take(cover.main.ravel(), axis=1)
        other = self.reflectance.take(cover.other.ravel(), axis=1)
        other -= seen
        other *= cover.mixed.ravel()
        seen += other
        change = np.multiply.outer(self.slope, slope.ravel())
        change += np.multiply.outer(self.moisture, wet.ravel())
        change += 1
        change *= light.ravel()
        seen *= change
        return seen


def _bell(wavelength: NDArray[np.float64], center: float, width: float) -> NDArray[np.float64]:
    bell: NDArray[np.float64] = np.exp(-0.5 * ((wavelength - center) / width) ** 2)
    return bell


def _curve(
    wavelength: NDArray[np.float64],
    rng: np.random.Generator,
    terms: int,
    widths: tuple[float, float],
) -> NDArray[np.float64]:
    """Return a sum of `terms` bells of random sign and place."""
    curve = np.zeros_like(wavelength)
    for _ in range(terms):
        curve += rng.uniform(-1, 1) * _bell(
            wavelength, rng.uniform(*_NANOMETERS), rng.uniform(*widths)
        )
    return curve


def _material(wavelength: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a smooth random reflectance with absorption features."""
    spectrum = rng.uniform(0.08, 0.3) + 0.22 * np.abs(_curve(wavelength, rng, 4, (250.0, 700.0)))
    for _ in range(rng.integers(3, 7)):
        depth = rng.uniform(0.05, 0.45)
        center, width = rng.uniform(*_NANOMETERS), rng.uniform(15, 90)
        spectrum *= 1 - depth * _bell(wavelength, center, width)
    # Pigments: without them every material is a shade of grey.
    for center in rng.uniform(440, 680, size=3):
        spectrum *= 1 + rng.uniform(-0.6, 0.9) * _bell(wavelength, center, 45)
    return spectrum


def _scene_rows(
    land: Land, spectra: _Spectra, height: int, start: int, stop: int
) -> NDArray[np.uint16]:
    """Return rows start ... stop-1 of the scene as stored, shape (band, stop - start, width)."""
    step, bands = _strip_rows(land.width), len(spectra.wavelength)
    rows = np.empty((bands, stop - start, land.width), np.uint16)
    for strip in range(start // step, -(-stop // step)):
        # Whole strips, so that the noise does not depend on where a block begins.
        first, last = strip * step, min((strip + 1) * step, height)
        fields = [
            smooth_noise(first, last, land.width, period, land.salt + 10 + index)
            for index, period in enumerate(_VARIATION_PERIODS)
        ]
        light = 0.85 + 0.2 * fields[0] + 0.1 * fields[1]
        slope = _SLOPE * (fields[2] + 0.5 * fields[3])
        wet = _MOISTURE * (fields[4] + fields[5])
        seen = spectra.observe(land.cover(first, last), light, slope, wet)
        rng = _stream(spectra.seed, strip)
        noise = rng.standard_normal(seen.shape, np.float32)
        noise *= spectra.noise[:, np.newaxis]
        seen += noise
        seen *= np.float32(1 / SCALE)
        stored = np.rint(np.clip(seen, 0, 65535, out=seen), out=seen).astype(np.uint16)
        inside = slice(max(start, first) - first, min(stop, last) - first)
        target = slice(max(start, first) - start, min(stop, last) - start)
        rows[:, target] = stored.reshape(bands, last - first, land.width)[:, inside]
    return rows
