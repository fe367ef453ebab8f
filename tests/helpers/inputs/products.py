"""Small files of the true structure of sensor products, written as their format documents say.

Each function writes one product into a folder and returns a `Product`: what a job names, and what must come
out of it. Sizes are those of tests; names, groups, attributes and layers those of the products.
"""

import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HEIGHT, WIDTH = 18, 16
UTM = "EPSG:32633"
PLACE = (364080.0, 5809980.0)


@dataclass
class Product:
    """A product that was written.

    Attributes
    ----------
    path
        What ``scene.path`` names.
    values : array, shape (rows, columns, bands)
        Physical values of the bands that are kept, in the order of the scene.
    wavelength
        Of these.
    valid : array of bool, shape (rows, columns)
        Pixels that have data, before flags.
    flags
        Pixels of each flag.
    dropped
        Bands that are left out.
    place
        x and y of the centre of each pixel in the coordinate system of the maps; None where nothing says it.
    """

    path: Path
    values: np.ndarray
    wavelength: np.ndarray
    valid: np.ndarray
    flags: dict[str, np.ndarray] = field(default_factory=dict)
    dropped: int = 0
    place: tuple[np.ndarray, np.ndarray] | None = None


def truth(height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Three classes side by side, from 1."""
    return (1 + np.arange(width) * 3 // width)[None, :].repeat(height, axis=0)


def cube(bands: int, height: int = HEIGHT, width: int = WIDTH, seed: int = 0) -> np.ndarray:
    """Reflectances of coherent classes, rows x columns x bands."""
    rng = np.random.default_rng(seed)
    spectra = rng.uniform(0.05, 0.6, (3, bands))
    return spectra[truth(height, width) - 1] + rng.normal(0, 0.005, (height, width, bands))


def centres(
    side: float = 30.0, height: int = HEIGHT, width: int = WIDTH, *, margin: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """x and y of the centres of pixels on a map, the first `margin` cells from its corner."""
    row, column = np.mgrid[:height, :width] + margin + 0.5
    return PLACE[0] + side * column, PLACE[1] - side * row


def marks(height: int = HEIGHT, width: int = WIDTH, row: int = 0) -> np.ndarray:
    """A few pixels of one row."""
    found = np.zeros((height, width), bool)
    found[row, 2:5] = True
    return found


def write_tif(path: Path, bands: np.ndarray, side: float = 30.0, **profile) -> None:
    """Write bands x rows x columns as a GeoTIFF of pixels of `side` metres."""
    import rasterio

    bands = bands if bands.ndim == 3 else bands[np.newaxis]
    options = {
        "driver": "GTiff", "crs": UTM,
        "transform": rasterio.Affine(side, 0, PLACE[0], 0, -side, PLACE[1]), **profile,
    }  # fmt: skip
    options = {key: value for key, value in options.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rasterio.open(
            path, "w", count=bands.shape[0], height=bands.shape[1], width=bands.shape[2],
            dtype=bands.dtype, **options,
        ) as dataset:  # fmt: skip
            dataset.write(bands)


def zipped(folder: Path, target: Path, *, inside: bool = True) -> Path:
    """Write a folder as a zip file, with its own name as the first part of the names in it."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(file, file.relative_to(folder.parent if inside else folder))
    return target


EMIT_MASKS = {
    1: (
        "Cloud flag", "Cirrus flag", "Water flag", "Spacecraft Flag", "Dilated Cloud Flag", "AOD550",
        "H2O (g cm-2)", "Aggregate Flag",
    ),
    2: (
        "Cloud Flag", "Cirrus Flag", "Water Flag", "Spacecraft Flag", "Dilated Cloud Flag", "AOD550",
        "H2O (g cm-2)", "Aggregate Flag", "SpecTf-Cloud Probability", "SpecTf-Cloud Flag",
        "SpecTf-Buffer Distance",
    ),
}  # fmt: skip
"""Bands of the mask file by its version."""


def emit(
    folder: Path, *, mask: int = 1, bands: int = 12, level: str = "L2A", packed: str = "u1"
) -> Product:
    """EMIT L2A reflectance or L1B radiance, and the mask file of a version; 0 for none."""
    import h5py

    folder.mkdir(parents=True, exist_ok=True)
    scene = "20230316T045133_2307503_005"
    quantity = "reflectance" if level == "L2A" else "radiance"
    path = folder / f"EMIT_{level}_{'RFL' if level == 'L2A' else 'RAD'}_001_{scene}.nc"
    values = cube(bands).astype("f4")
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[-1, -2:] = False
    stored = np.where(valid[..., None], values, np.float32(-9999))
    wavelength = np.linspace(381.0, 2493.0, bands).astype("f4")
    good = np.ones(bands, "u1")
    good[[5, 8]] = level != "L2A"
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    # A map grid in which the sensor's rows run to the right and down: a shear, with cells of none.
    glt = np.zeros((2, HEIGHT + WIDTH, WIDTH + 4), "i4")
    glt[0, rows + columns, columns + 2] = columns + 1
    glt[1, rows + columns, columns + 2] = rows + 1
    glt[:, 0, 0] = -9999  # the fill of the file
    with h5py.File(path, "w") as file:
        cells = file.create_dataset(
            quantity, data=stored, chunks=(4, WIDTH, bands), compression="gzip"
        )
        cells.attrs["_FillValue"] = np.array([-9999], "f4")
        cells.attrs["units"] = "unitless"
        file["sensor_band_parameters/wavelengths"] = wavelength
        file["sensor_band_parameters/fwhm"] = np.full(bands, 8.5, "f4")
        if level == "L2A":
            file["sensor_band_parameters/good_wavelengths"] = good
        place = 13.0 + 5e-4 * columns, 52.0 - 5e-4 * (rows + columns)
        file["location/lon"], file["location/lat"] = place
        file["location/elev"] = np.zeros((HEIGHT, WIDTH), "f4")
        file["location/glt_x"], file["location/glt_y"] = glt
        for axis in "xy":
            file[f"location/glt_{axis}"].attrs["_FillValue"] = np.array([-9999], "i4")
        file.attrs["geotransform"] = [12.99875, 5e-4, 0.0, 52.00025, 0.0, -5e-4]
        file.attrs["spatial_ref"] = (
            'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],'
            'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4326"]]'
        )
        file.attrs["sensor"] = "EMIT (Earth Surface Mineral Dust Source Investigation)"
    flags = {}
    if mask:
        layers = np.zeros((HEIGHT, WIDTH, len(EMIT_MASKS[mask])), "f4")
        for number in range(5):
            layers[..., number] = marks(row=number)
        layers[..., 5:7] = 0.2
        if mask == 2:
            layers[..., 8], layers[..., 9], layers[..., 10] = 1, marks(row=7), 1
        with h5py.File(folder / f"EMIT_L2A_MASK_{mask:03}_{scene}.nc", "w") as file:
            file["mask"] = layers
            names = file.create_dataset(
                "sensor_band_parameters/mask_bands", (layers.shape[2],), h5py.string_dtype()
            )
            names[:] = EMIT_MASKS[mask]
            interpolated = np.zeros((HEIGHT, WIDTH, 16), "u1")
            interpolated[marks(row=5), 9] = 1
            # In a band that is not used it tells nothing.
            interpolated[marks(row=6), 8] = level == "L2A"
            file["band_mask"] = np.packbits(interpolated, axis=-1).astype(packed)
        flags = {
            "clouds": marks(row=0) | marks(row=4) | (marks(row=7) & (mask == 2)),
            "cirrus": marks(row=1), "water": marks(row=2), "defective": marks(row=3),
            "interpolated": marks(row=5),
        }  # fmt: skip
    kept = np.flatnonzero(good)
    dropped = bands - len(kept)
    return Product(path, values[..., kept], wavelength[kept], valid, flags, dropped, place)


def enmap(folder: Path, level: str = "L2A", *, bands: int = 12) -> Product:
    """EnMAP: spectral image, quality layers, METADATA.XML; two detectors of L1B, two empty bands of L2A."""
    import rasterio

    name = f"ENMAP01-____{level}-DT0000001053_20220612T105735Z_028_V010303_20230922T131826Z"
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    values = cube(bands)
    gain, offset = (np.full(bands, 1e-4), np.zeros(bands))
    if level != "L2A":
        gain, offset = np.linspace(2e-5, 4e-5, bands), np.linspace(0.01, 0.02, bands)
    fill = -32768 if level == "L2A" else 0
    stored = np.round((values - offset) / gain).astype("i2" if level == "L2A" else "u2")
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[:, -1] = False
    stored[~valid] = fill
    # Light does not come through the atmosphere there: of a real L2A, bands 130 to 135.
    empty = [8, 9] if level == "L2A" else []
    stored[..., empty] = fill
    vnir = bands // 2
    wavelength = np.concatenate([np.linspace(420, 990, vnir), np.linspace(905, 2440, bands - vnir)])
    widths = np.linspace(6, 11, bands)
    images = {"": slice(0, bands)}
    if level == "L1B":
        images = {"_VNIR": slice(0, vnir), "_SWIR": slice(vnir, bands)}
    # L1B is placed by a fit to its corners, and that grows to the south.
    where = {}
    if level == "L1B":
        where = {"crs": "EPSG:4326", "transform": rasterio.Affine(4e-4, 0, 13, 0, 3e-4, 52)}
    for end, part in images.items():
        write_tif(
            folder / f"{name}-SPECTRAL_IMAGE{end}.TIF", stored[..., part].transpose(2, 0, 1),
            nodata=fill if level == "L2A" else None, **where,
        )  # fmt: skip
    flags = {}
    layers = ("CLOUD", "CIRRUS", "HAZE", "CLOUDSHADOW", "SNOW")
    known = ("clouds", "cirrus", "haze", "cloud-shadows", "snow")
    for row, (layer, flag) in enumerate(zip(layers, known, strict=True)):
        flags[flag] = marks(row=row)
        write_tif(
            folder / f"{name}-QL_QUALITY_{layer}.TIF", flags[flag].astype("u1") * (1 + row % 3)
        )
    classes = np.where(marks(row=6), 2, 1).astype("u1")
    classes[~valid] = 3
    write_tif(folder / f"{name}-QL_QUALITY_CLASSES.TIF", classes)
    flags["water"] = classes == 2
    # Of quality 1 everywhere, SWIR interpolated in row 9; SWIR saturated in row 10, VNIR in row 11.
    tests = np.where(marks(row=9), 1 | 1 << 2, 1).astype("u1")
    tests[marks(row=10)] |= 1 << 4
    tests[marks(row=11)] |= 1 << 5
    flags["saturated"] = marks(row=11) if level == "L1B" else marks(row=10) | marks(row=11)
    flags["interpolated"] = marks(row=8)
    for end, part in images.items():
        write_tif(folder / f"{name}-QL_QUALITY_TESTFLAGS{end}.TIF", tests)
        defects = np.zeros((part.stop - part.start, HEIGHT, WIDTH), "u1")
        defects[1, flags["interpolated"]] = 1
        defects[:, ~valid] = 255
        if level == "L2A":
            # In a band without a number it tells nothing.
            defects[empty[0], marks(row=12)] = 1
        write_tif(folder / f"{name}-QL_PIXELMASK{end}.TIF", defects)
    entries = "".join(
        "<bandID "
        f'number="{number + 1}"><wavelengthCenterOfBand>{wavelength[number]:.6f}</wavelengthCenterOfBand>'
        f"<FWHMOfBand>{widths[number]:.6f}</FWHMOfBand><GainOfBand>{gain[number]:.12g}</GainOfBand>"
        f"<OffsetOfBand>{offset[number]:.12g}</OffsetOfBand></bandID>"
        for number in range(bands)
    )
    statistics = "".join(
        f'<bandID number="{number + 1}"><mean>{-1000000 if number in empty else 2000}</mean>'
        f"<stdDeviation>{0 if number in empty else 350.5}</stdDeviation></bandID>"
        for number in range(bands)
    )
    (folder / f"{name}-METADATA.XML").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<level_X xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"<metadata><schema/></metadata><base><level>{level}</level></base><specific>"
        f"<bandCharacterisation>{entries}</bandCharacterisation></specific><product><image><merge>"
        f"<name>{name}-SPECTRAL_IMAGE.TIF</name><channels>{bands}</channels></merge></image><bandStatistics>"
        f"{statistics}</bandStatistics></product></level_X>",
        encoding="utf-8",
    )
    kept = [
        number for number in range(bands)[images.get("_VNIR", slice(None))] if number not in empty
    ]
    exact = (stored * gain + offset)[..., kept]
    place = None if level == "L1B" else centres()
    return Product(folder, exact, wavelength[kept], valid, flags, len(empty), place)


def prisma(folder: Path, *, by_centres: bool = True) -> Product:
    """PRISMA L2D: VNIR and SWIR with overlap, bands of wavelength 0, ERR matrices; corners of either kind."""
    import h5py

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "PRS_L2D_STD_20200209102459_20200209102503_0001.he5"
    # Wavelengths fall, as in the products; 0 stands for bands without data.
    centre = {
        "Vnir": np.array([0, 0, 970.0, 930, 850, 700, 550, 410], "f4"),
        "Swir": np.array([2490.0, 2200, 1700, 1300, 1050, 920, 0], "f4"),
    }
    values = {"Vnir": cube(8, seed=1), "Swir": cube(7, seed=2)}
    scale = {"Vnir": (0.0, 0.9), "Swir": (-0.01, 0.8)}
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[0, 0] = valid[-1, -1] = False
    fields = "HDFEOS/SWATHS/PRS_L2D_HCO/Data Fields"
    flags = {"defective": marks(row=2), "saturated": marks(row=5)}
    read = {}
    with h5py.File(path, "w") as file:
        for detector, wavelength in centre.items():
            least, most = scale[detector]
            stored = np.round((values[detector] - least) / (most - least) * 65535).astype("u2")
            stored[~valid] = 0
            stored[..., wavelength == 0] = 0
            # A single 0 is a number like others.
            stored[7, 7, np.argmax(wavelength)] = 0
            read[detector] = least + stored * ((most - least) / 65535)
            file[f"{fields}/{detector.upper()}_Cube"] = stored.transpose(0, 2, 1)
            errors = np.zeros(stored.shape, "u1")
            errors[9, 3] = 2
            if detector == "Vnir":
                errors[flags["defective"], 5] = 1
                # In a band without data it tells nothing.
                errors[12, 12, 0] = 1
            else:
                errors[flags["saturated"], 2] = 3
                errors[5, 4, 2] = 4
            file[f"{fields}/{detector.upper()}_PIXEL_L2_ERR_MATRIX"] = errors.transpose(0, 2, 1)
            file.attrs[f"List_Cw_{detector}"] = wavelength
            file.attrs[f"List_Fwhm_{detector}"] = np.where(wavelength > 0, 10.0, 0).astype("f4")
            file.attrs[f"List_Cw_{detector}_Flags"] = (wavelength > 0).astype("i4")
            for end, value in zip(("Min", "Max"), scale[detector], strict=True):
                file.attrs[f"L2Scale{detector}{end}"] = value
        west, north = PLACE
        edge = 15.0 if by_centres else 0.0
        file.attrs["Product_ULcorner_easting"] = west + edge
        file.attrs["Product_ULcorner_northing"] = north - edge
        file.attrs["Product_LRcorner_easting"] = west + 30.0 * WIDTH - edge
        file.attrs["Product_LRcorner_northing"] = north - 30.0 * HEIGHT + edge
        file.attrs["Epsg_Code"] = np.uint32(32633)
        file.attrs["Processing_Level"] = np.bytes_("2D")
    vnir = [7, 6, 5, 4]  # 970 and 930 nm overlap with SWIR, which begins at 920
    swir = [5, 4, 3, 2, 1, 0]
    both = np.concatenate([read["Vnir"][..., vnir], read["Swir"][..., swir]], axis=-1)
    wavelength = np.concatenate([centre["Vnir"][vnir], centre["Swir"][swir]])
    return Product(path, both, wavelength, valid, flags, 5, centres())


LANDSAT = {1: 443.0, 2: 482.0, 3: 561.5, 4: 654.5, 5: 865.0, 6: 1608.5, 7: 2200.5}
LANDSAT5 = {1: 485.0, 2: 560.0, 3: 660.0, 4: 830.0, 5: 1650.0, 7: 2215.0}


def landsat(folder: Path, *, xml: bool = False, tm: bool = False) -> Product:
    """Landsat 8, or 5 with its TM, Collection 2 Level 2: bands, QA layers, MTL."""
    name = "LC08_L2SP_193023_20220801_20220806_02_T1"
    known = LANDSAT
    if tm:
        name, known = "LT05_L2SP_193023_20100801_20200823_02_T1", LANDSAT5
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    stored = np.round((cube(len(known)) + 0.2) / 0.0000275).astype("u2")
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[-1] = False
    stored[~valid] = 0
    for number, band in enumerate(known):
        write_tif(folder / f"{name}_SR_B{band}.TIF", stored[..., number], nodata=0)
    write_tif(folder / f"{name}_ST_B{6 if tm else 10}.TIF", stored[..., 0], nodata=0)
    bits = {"clouds": 3, "cirrus": 2, "cloud-shadows": 4, "snow": 5, "water": 7}
    if tm:
        del bits["cirrus"]
    flags = {flag: marks(row=row) for row, flag in enumerate(bits)}
    quality = np.where(valid, 1 << 6, 1).astype("u2")
    for flag, bit in bits.items():
        quality[flags[flag]] = 1 << bit
    quality[8, 8] = 1 << 1
    flags["clouds"][8, 8] = True  # dilated
    write_tif(folder / f"{name}_QA_PIXEL.TIF", quality, nodata=1)
    flags["saturated"] = marks(row=6)
    # Bit 11 of OLI says that terrain hides the pixel, bit 5 of TM that the thermal band is saturated.
    radiometry = np.where(flags["saturated"], 1 << 2, 1 << (5 if tm else 11)).astype("u2")
    if tm:
        flags["defective"] = marks(row=7)
        radiometry[flags["defective"]] = 1 << 9
    write_tif(folder / f"{name}_QA_RADSAT.TIF", radiometry)
    parameters = [(f"REFLECTANCE_MULT_BAND_{band}", "2.75e-05") for band in known]
    parameters += [(f"REFLECTANCE_ADD_BAND_{band}", "-0.2") for band in known]
    group = "LEVEL2_SURFACE_REFLECTANCE_PARAMETERS"
    if xml:
        lines = "".join(f"<{key}>{value}</{key}>" for key, value in parameters)
        text = (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<LANDSAT_METADATA_FILE><{group}>{lines}</{group}>'
            "<LEVEL1_RADIOMETRIC_RESCALING><REFLECTANCE_MULT_BAND_1>2.0000E-05</REFLECTANCE_MULT_BAND_1>"
            "</LEVEL1_RADIOMETRIC_RESCALING></LANDSAT_METADATA_FILE>"
        )
    else:
        lines = "".join(f"    {key} = {value}\n" for key, value in parameters)
        text = (
            f"GROUP = LANDSAT_METADATA_FILE\n  GROUP = {group}\n{lines}  END_GROUP = {group}\n"
            "  GROUP = LEVEL1_RADIOMETRIC_RESCALING\n    REFLECTANCE_MULT_BAND_1 = 2.0000E-05\n"
            "  END_GROUP = LEVEL1_RADIOMETRIC_RESCALING\nEND_GROUP = LANDSAT_METADATA_FILE\n"
        )
    (folder / f"{name}_MTL.{'xml' if xml else 'txt'}").write_text(text)
    return Product(
        folder, stored * 2.75e-5 - 0.2, np.array(list(known.values())), valid, flags,
        place=centres(),
    )  # fmt: skip


SENTINEL2 = {
    "B01": (60, 442.7), "B02": (10, 492.7), "B03": (10, 559.8), "B04": (10, 664.6), "B05": (20, 704.1),
    "B06": (20, 740.5), "B07": (20, 782.8), "B08": (10, 832.8), "B8A": (20, 864.7), "B09": (60, 945.1),
    "B10": (60, 1373.5), "B11": (20, 1613.7), "B12": (20, 2202.4),
}  # fmt: skip
"""Metres and nanometres of each band of Sentinel-2A."""


def sentinel2(
    folder: Path, level: str = "L2A", *, driver: str = "JP2OpenJPEG", early: bool = False
) -> Product:
    """Sentinel-2 SAFE: bands of 10, 20 and 60 m, scene classification, product metadata.

    L2A of the first baselines has other names of files and tags, no offset and no wavelengths.
    """
    stamp = "S2A_MSI{}_20230601T101601_N0509_R065_T33UVT_20230601T151608"
    before = "L2A_" if early else ""
    safe = folder / f"{stamp.format(level)}.SAFE"
    granule = f"GRANULE/{level}_T33UVT_A041468_20230601T101559"
    side = 24  # of the finest bands, in pixels
    ending = "jp2" if driver.startswith("JP2") else "tif"
    extra = {"QUALITY": "100", "REVERSIBLE": "YES"} if ending == "jp2" else {}
    full = np.clip(np.round((cube(13, side, side) + 0.1) * 10000), 1, None).astype("u2")
    full[:6, :6] = 0
    offset = 0 if early else -1000
    files, values, kept = [], [], []
    for number, (band, (metres, centre)) in enumerate(SENTINEL2.items()):
        if level == "L2A" and band == "B10":
            continue
        step = metres // 10
        image = full[::step, ::step, number]
        below = f"R{metres}m/" if level == "L2A" else ""
        end = f"_{metres}m" if level == "L2A" else ""
        name = f"{granule}/IMG_DATA/{below}{before}T33UVT_20230601T101601_{band}{end}"
        target = safe / f"{name}.{ending}"
        target.parent.mkdir(parents=True, exist_ok=True)
        write_tif(target, image, float(metres), driver=driver, **extra)
        files.append(name)
        if band != "B10":
            values.append(image.repeat(step, axis=0).repeat(step, axis=1))
            kept.append(centre)
        if level == "L2A" and metres == 10:
            # ESA's own copies at 20 m are not taken.
            name = f"{granule}/IMG_DATA/R20m/{before}T33UVT_20230601T101601_{band}_20m"
            coarse = safe / f"{name}.{ending}"
            coarse.parent.mkdir(parents=True, exist_ok=True)
            write_tif(
                coarse, np.full((side // 2, side // 2), 77, "u2"), 20.0, driver=driver, **extra
            )
            files.append(name)
    flags = {}
    if level == "L2A":
        classes = np.full((side // 2, side // 2), 4, "u1")
        for row, (flag, value) in enumerate(
            {
                "clouds": 9,
                "cirrus": 10,
                "cloud-shadows": 3,
                "snow": 11,
                "water": 6,
                "saturated": 1,
            }.items()
        ):
            classes[4 + row, 5:8] = value
            flags[flag] = (classes == value).repeat(2, axis=0).repeat(2, axis=1)
        name = f"{granule}/IMG_DATA/R20m/{before}T33UVT_20230601T101601_SCL_20m"
        write_tif(safe / f"{name}.{ending}", classes, 20.0, driver=driver, **extra)
        files.append(name)
    added, among = "BOA_ADD_OFFSET", "BOA_ADD_OFFSET_VALUES_LIST"
    scaling = (
        '<QUANTIFICATION_VALUES_LIST><BOA_QUANTIFICATION_VALUE unit="none">10000'
        '</BOA_QUANTIFICATION_VALUE><AOT_QUANTIFICATION_VALUE unit="none">1000.0'
        "</AOT_QUANTIFICATION_VALUE></QUANTIFICATION_VALUES_LIST>"
    )
    if level == "L1C":
        added, among = "RADIO_ADD_OFFSET", "Radiometric_Offset_List"
        scaling = '<QUANTIFICATION_VALUE unit="none">10000</QUANTIFICATION_VALUE>'
    offsets = "".join(f'<{added} band_id="{number}">{offset}</{added}>' for number in range(13))
    offsets = f"<{among}>{offsets}</{among}>"
    spectral = "".join(
        f'<Spectral_Information bandId="{number}" physicalBand="{band.replace("B0", "B")}">'
        f'<Wavelength><MIN unit="nm">{centre - 10}</MIN><MAX unit="nm">{centre + 10}</MAX>'
        f'<CENTRAL unit="nm">{centre}</CENTRAL></Wavelength></Spectral_Information>'
        for number, (band, (_, centre)) in enumerate(SENTINEL2.items())
    )
    spectral = f"<Spectral_Information_List>{spectral}</Spectral_Information_List>"
    info, picture, image = "Product_Info", "Product_Image_Characteristics", "IMAGE_FILE"
    if early:
        info, picture, image = f"L2A_{info}", f"L2A_{picture}", f"{image}_2A"
        offsets = spectral = ""
        scaling = (
            '<L1C_L2A_Quantification_Values_List><L1C_TOA_QUANTIFICATION_VALUE unit="none">10000'
            '</L1C_TOA_QUANTIFICATION_VALUE><L2A_BOA_QUANTIFICATION_VALUE unit="none">10000'
            "</L2A_BOA_QUANTIFICATION_VALUE></L1C_L2A_Quantification_Values_List>"
        )
    listed = "".join(f"<{image}>{name}</{image}>" for name in files)
    (safe / f"MTD_MSI{level}.xml").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<n1:Level-{level[1:]}_User_Product xmlns:n1="https://psd-14">'
        f"<n1:General_Info><{info}><Datatake><SPACECRAFT_NAME>Sentinel-2A</SPACECRAFT_NAME></Datatake>"
        '<Product_Organisation><Granule_List><Granule granuleIdentifier="x" imageFormat="JPEG2000">'
        f"{listed}</Granule></Granule_List></Product_Organisation></{info}><{picture}>{scaling}{offsets}"
        f"{spectral}</{picture}></n1:General_Info></n1:Level-{level[1:]}_User_Product>"
    )
    stored = np.stack(values, axis=-1).astype(float)
    return Product(
        safe, (stored + offset) / 10000, np.array(kept), (stored > 0).all(axis=-1), flags,
        int(level == "L1C"), centres(10.0, side, side),
    )  # fmt: skip


def neon(folder: Path, *, copied: bool = False) -> Product:
    """NEON AOP reflectance of one flight line or tile; the map of clouds may be a copy of another layer."""
    import h5py

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "NEON_D01_BART_DP1_20190825_145110_reflectance.h5"
    wavelength = np.array([400, 550, 700, 900, 1200, 1400, 1600, 1850, 2200, 2450], "f4")
    stored = np.round(cube(10) * 10000).astype("i2")
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[:, 0] = False
    stored[~valid] = -9999
    classes = np.full((HEIGHT, WIDTH), 5, "u1")
    flags = {}
    for row, (flag, value) in enumerate(
        {"clouds": 15, "cirrus": 9, "haze": 11, "cloud-shadows": 1, "snow": 7, "water": 17,
         "saturated": 6}.items()
    ):  # fmt: skip
        flags[flag] = marks(row=row)
        classes[flags[flag]] = value
    # The shadow of a building, and that of the terrain, which is no flag.
    classes[8, 8], classes[9, 9] = 22, 21
    flags["cloud-shadows"][8, 8] = True
    vegetation = np.where(valid, 3, 0).astype("u1")
    if copied:
        classes, flags = vegetation, {}
    with h5py.File(path, "w") as file:
        group = file.create_group("BART/Reflectance")
        cells = group.create_dataset(
            "Reflectance_Data", data=stored, chunks=(9, 8, 5), compression="gzip"
        )
        cells.attrs["Data_Ignore_Value"] = -9999.0
        cells.attrs["Scale_Factor"] = 10000.0
        cells.attrs["Interleave"] = np.bytes_("BSQ")
        group.attrs["Band_Window_1_Nanometers"] = [1340, 1445]
        group.attrs["Band_Window_2_Nanometers"] = [1790, 1955]
        group["Metadata/Spectral_Data/Wavelength"] = wavelength
        group["Metadata/Spectral_Data/FWHM"] = np.full(10, 5.9, "f4")
        # Of any length, as h5py writes what is a str.
        group["Metadata/Coordinate_System/Map_Info"] = (
            f"UTM,  1.000,  1.000,  {PLACE[0]:.3f},  {PLACE[1]:.3f},  1.000000e+00,  1.000000e+00,  33,  "
            "North,  WGS-84,  units=Meters, 0"
        )
        group["Metadata/Coordinate_System/EPSG Code"] = "32633"
        layers = group.create_group("Metadata/Ancillary_Imagery")
        layers["Haze_Cloud_Water_Map"] = classes
        layers["Dark_Dense_Vegetation_Classification"] = vegetation
        group["Metadata/Logs/Solar_Zenith_Angle"] = 40.0
    kept = [0, 1, 2, 3, 4, 6, 8, 9]
    return Product(
        path, (stored / 10000.0)[..., kept], wavelength[kept], valid, flags, 2, centres(1.0)
    )


def desis(folder: Path) -> Product:
    """DESIS L2A: image, quality layers, METADATA.xml."""
    name = "DESIS-HSI-L2A-DT0707652640_011-20220404T193259-V0220"
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    bands = 8
    stored = np.round(cube(bands) * 10000).astype("i2")
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[0, -1] = False
    stored[~valid] = -32768
    image = folder / f"{name}-SPECTRAL_IMAGE.tif"
    write_tif(image, stored.transpose(2, 0, 1), nodata=-32768, interleave="pixel")
    (folder / f"{name}-SPECTRAL_IMAGE.hdr").write_text("ENVI\n")
    layers = np.zeros((10, HEIGHT, WIDTH), "u1")
    layers[1] = 1
    for number in (0, 2, 3, 4, 5, 6, 7):
        layers[number] = marks(row=number + 1)
    write_tif(folder / f"{name}-QL_QUALITY-2.tif", layers)
    flags = {
        "cloud-shadows": layers[0] > 0, "snow": layers[2] > 0, "haze": (layers[3] | layers[4]) > 0,
        "clouds": (layers[5] | layers[6]) > 0, "water": layers[7] > 0,
    }  # fmt: skip
    wavelength = np.linspace(402.0, 999.0, bands)
    entries = "".join(
        f"<band><bandNumber>{number + 1}</bandNumber><wavelengthCenterOfBand>{wavelength[number]:.4f}"
        "</wavelengthCenterOfBand><wavelengthWidthOfBand>3.5</wavelengthWidthOfBand><gainOfBand>1.0E-4"
        "</gainOfBand><offsetOfBand>0.0</offsetOfBand></band>"
        for number in range(bands)
    )
    (folder / f"{name}-METADATA.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<hsi_doc><metadata/><version/><base/><specific>'
        "<interiorOrientation><band><bandNumber>1</bandNumber></band></interiorOrientation>"
        f"<bandCharacterisation>{entries}</bandCharacterisation></specific></hsi_doc>"
    )
    return Product(folder, stored * 1e-4, wavelength, valid, flags, place=centres())


def aviris(folder: Path, *, ortho: bool = True) -> Product:
    """AVIRIS-3 reflectance on a map grid, or radiance in sensor geometry with its lookup table."""
    import h5py
    from rasterio.crs import CRS

    folder.mkdir(parents=True, exist_ok=True)
    quantity = "reflectance" if ortho else "radiance"
    end = "L2A_OE_f576f24d_RFL_ORT" if ortho else "L1B_RDN_3f4ecdd4_RDN"
    path = folder / f"AV320250111t195928_000_{end}.nc"
    values = cube(8).astype("f4")
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[:2, :2] = False
    stored = np.where(valid[..., None], values, np.float32(-9999))
    wavelength = np.linspace(390, 2493, 8)
    with h5py.File(path, "w") as file:
        cells = file.create_dataset(
            f"{quantity}/{quantity}",
            data=stored.transpose(2, 0, 1),
            chunks=(4, 6, 16),
            compression="gzip",
        )
        cells.attrs["_FillValue"] = np.array([-9999], "f4")
        file[f"{quantity}/wavelength"] = wavelength
        file[f"{quantity}/fwhm"] = np.full(8, 8.2)
        mapping = file.create_dataset("transverse_mercator", data=np.int8(0))
        mapping.attrs["spatial_ref"] = CRS.from_epsg(32633).to_wkt()
        mapping.attrs["GeoTransform"] = f"{PLACE[0]} 3.1 0.0 {PLACE[1]} 0.0 -3.1 "
        if ortho:
            file["easting"] = PLACE[0] + 3.1 * (np.arange(WIDTH) + 0.5)
            file["northing"] = PLACE[1] - 3.1 * (np.arange(HEIGHT) + 0.5)
        else:
            rows, columns = np.mgrid[:HEIGHT, :WIDTH]
            for name, number in (("line", rows), ("sample", columns)):
                table = np.zeros((HEIGHT + 4, WIDTH + 4), "i4")
                table[2:-2, 2:-2] = number + 1
                file[f"geolocation_lookup_table/{name}"] = table
            for name, (first, step, count) in {
                "easting": (PLACE[0], 3.1, WIDTH), "northing": (PLACE[1], -3.1, HEIGHT),
            }.items():  # fmt: skip
                centre = first + step * (np.arange(count + 4) + 0.5)
                file[f"geolocation_lookup_table/{name}"] = centre
            file["lon"], file["lat"] = 13 + columns * 4e-5, 52 - rows * 4e-5
    return Product(path, values, wavelength, valid, place=centres(3.1, margin=0 if ortho else 2))


def envi(
    folder: Path, name: str = "ang20180814t224053_rfl_v2r2_img", *, interleave: str = "bil",
    lookup: str = "glt", big: bool = True, sensor: str = "AVIRIS-NG", unit: str = "Micrometers",
) -> Product:  # fmt: skip
    """ENVI reflectance of an airborne sensor in sensor geometry, with GLT or IGM; big-endian if asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = np.round(cube(7) * 10000).astype("i2")
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[3, 3] = False
    stored[~valid] = -9999
    order = {"bil": (0, 2, 1), "bip": (0, 1, 2), "bsq": (2, 0, 1)}[interleave]
    path = folder / name
    stored.transpose(order).astype(">i2" if big else "<i2").tofile(path)
    wavelength = np.array([450.0, 550, 650, 640, 900, 1380, 2200])
    listed = wavelength / (1000 if unit == "Micrometers" else 1)
    _header(
        path, 7, 2, interleave, big, f"sensor type = {sensor}", "data ignore value = -9999",
        "reflectance scale factor = 10000", f"wavelength units = {unit}",
        f"wavelength = {{{', '.join(f'{value:g}' for value in listed)}}}",
        f"fwhm = {{{', '.join(['0.006' if unit == 'Micrometers' else '6'] * 7)}}}",
        "bbl = {1, 1, 1, 1, 1, 0, 1}",
    )  # fmt: skip
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    before = name.split("_")[0] if name.startswith(("ang", "f1", "AV")) else Path(name).stem
    place = None
    if lookup == "glt":
        place = centres(5.0, margin=1)
        table = np.zeros((2, HEIGHT + 2, WIDTH + 2), "<i4")
        # Negative where the sensor saw none of the cell: the nearest pixel stands in.
        sign = np.where((rows + columns) % 3, 1, -1)
        table[0, 1:-1, 1:-1], table[1, 1:-1, 1:-1] = sign * (columns + 1), sign * (rows + 1)
        table.tofile(folder / f"{before}_glt")
        _header(
            folder / f"{before}_glt", 2, 3, "bsq", False,
            f"map info = {{UTM, 1, 1, {PLACE[0]}, {PLACE[1]}, 5.0, 5.0, 33, North, WGS-84, units=Meters}}",
            size=table.shape[1:],
        )  # fmt: skip
    elif lookup == "igm":
        place = 13 + columns * 5e-5, 52 - rows * 5e-5
        np.stack([*place, 0.0 * rows]).astype("<f8").tofile(folder / f"{before}_igm")
        _header(folder / f"{before}_igm", 3, 5, "bsq", False)
    kept = [0, 1, 2, 3, 4, 6]
    return Product(path, (stored / 10000)[..., kept], wavelength[kept], valid, {}, 1, place)


def classic(folder: Path) -> Product:
    """AVIRIS classic radiance on a rotated map grid: -50 in all bands beside the flight line."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "f201013t01p00r10rdn_e_sc01_ort_img"
    stored = np.round(cube(7) * 10000).astype("i2")
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[:3, :2] = False
    stored[~valid] = -50
    stored[9, 9, 2] = -50  # a number like others, as its neighbours are there
    stored.astype(">i2").tofile(path)
    wavelength = np.array([450.0, 550, 667.5, 655.5, 900, 1380, 2200])
    _header(
        path, 7, 2, "bip", True,
        f"map info = {{UTM, 1, 1, {PLACE[0]}, {PLACE[1]}, 5.2, 5.2, 33, North, WGS-84, rotation=42}}",
        "wavelength units = Nanometers", f"wavelength = {{{', '.join(map(str, wavelength))}}}",
    )  # fmt: skip
    # Of ornldaac/AVIRIS-NG_ENVI-rotatedgrid: rotation=42 is 3.864353 and 3.479479 of 5.2 m.
    (row, column), (along, across) = np.mgrid[:HEIGHT, :WIDTH] + 0.5, (3.864353, 3.479479)
    place = PLACE[0] + along * column + across * row, PLACE[1] + across * column - along * row
    return Product(path, stored.astype(float), wavelength, valid, place=place)


def hyspex(folder: Path) -> Product:
    """Raw numbers of a HySpex camera, after a head of its own; the header has an ID and no sensor type."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "line_raw.hyspex"
    stored = np.round(cube(7) * 10000).astype("<u2")
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[3, 3] = False
    stored[~valid] = 65535
    path.write_bytes(b"HYSPEX".ljust(512) + stored.transpose(0, 2, 1).tobytes())
    wavelength = np.linspace(954.98, 2511.03, 7)
    path.with_suffix(".hdr").write_text(
        "ENVI\ndescription = { \n Frameperiod = 456249\n ID = SWIR_384me_SN3122\n Serialnumber = 3122\n"
        f" Scanningmode = translation }}\nlines = {HEIGHT}\nbands = 7\nsamples = {WIDTH}\n"
        "header offset = 512\ndata type = 12\ndata ignore value = 65535\ninterleave  = bil\n"
        "default bands = {2,3,5}\nbyte order = 0\nwavelength units  = nm\n"
        f"wavelength  = {{{', '.join(f'{value:.6f}' for value in wavelength)}}}\n"
    )
    return Product(path, stored.astype(float), wavelength, valid)


def _header(
    path: Path, bands: int, kind: int, interleave: str, big: bool, *lines: str,
    size: tuple[int, ...] = (HEIGHT, WIDTH),
) -> None:  # fmt: skip
    text = [
        "ENVI", f"samples = {size[1]}", f"lines = {size[0]}", f"bands = {bands}", "header offset = 0",
        "file type = ENVI Standard", f"data type = {kind}", f"interleave = {interleave}",
        f"byte order = {int(big)}", *lines,
    ]  # fmt: skip
    path.with_name(f"{path.name}.hdr").write_text("\n".join(text) + "\n")


def pace(folder: Path, *, version: str = "3.1") -> Product:
    """PACE OCI L2 surface reflectance, or of version 3.2 remote-sensing reflectance: a packed cube, flags."""
    import h5py

    folder.mkdir(parents=True, exist_ok=True)
    suite, quantity = ("SFREFL", "rhos") if version == "3.1" else ("OC_AOP", "Rrs")
    path = folder / f"PACE_OCI.20240601T120000.L2.{suite}.V{version.replace('.', '_')}.nc"
    stored = np.round((cube(9) - 0.01) / 2e-5).astype("i2")
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[-1, 0] = False
    stored[~valid] = -32767
    wavelength = np.linspace(340, 2258, 9)
    flags = {"clouds": marks(row=1), "saturated": marks(row=2), "defective": marks(row=3)}
    bits = {
        "ATMFAIL": 1,
        "LAND": 2,
        "HILT": 16,
        "CLDICE": 512,
        "NAVFAIL": 1 << 25,
        "SPARE": -(2**31),
    }
    layer = np.full((HEIGHT, WIDTH), 2 - 2**31, "i4")
    for flag, name in {"clouds": "CLDICE", "saturated": "HILT", "defective": "NAVFAIL"}.items():
        layer[flags[flag]] |= bits[name]
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    with h5py.File(path, "w") as file:
        cells = file.create_dataset(
            f"geophysical_data/{quantity}", data=stored, chunks=(9, 8, 9), compression="gzip"
        )
        cells.attrs["scale_factor"], cells.attrs["add_offset"] = np.float32(2e-5), np.float32(0.01)
        cells.attrs["_FillValue"] = np.array([-32767], "i2")
        file["geophysical_data/l2_flags"] = layer
        attributes = file["geophysical_data/l2_flags"].attrs
        attributes["flag_masks"] = np.array(list(bits.values()), "i4")
        attributes["flag_meanings"] = np.bytes_(" ".join(bits))
        nominal = wavelength if version == "3.1" else np.round(wavelength)
        file["sensor_band_parameters/wavelength_3d"] = nominal
        if version != "3.1":
            file["geophysical_data/wavelength"] = wavelength
        place = 10 + columns * 0.01, 50 - rows * 0.01
        file["navigation_data/longitude"], file["navigation_data/latitude"] = (
            axis.astype("f4") for axis in place
        )
    exact = stored * float(np.float32(2e-5)) + float(np.float32(0.01))
    return Product(path, exact, wavelength, valid, flags, place=place)
