"""Limits on what GDAL and fsspec open for a scene.

They open raster files on this machine, and addresses that the job names.

A job names files and addresses, and these are opened. What a *file* names is opened only if it is a raster
on this machine, and nothing that a file holds is run.
"""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.xmlfiles import parse_xml

DRIVERS = (
    "AAIGrid", "ACE2", "AIG", "AirSAR", "BIGGIF", "BMP", "BSB", "BT", "BYN", "CEOS", "COASP",
    "COSAR", "CPG", "DIMAP", "DOQ1", "DOQ2", "DTED", "ECW", "EHdr", "EIR", "ELAS", "ENVI", "ERS",
    "ESAT", "FAST", "FIT", "GenBin", "GFF", "GIF", "GRASSASCIIGrid", "GRIB", "GS7BG", "GSAG",
    "GSBG", "GSC", "GTiff", "GXF", "HDF4", "HDF4Image", "HDF5", "HDF5Image", "HF2", "HFA", "ILWIS",
    "IRIS", "ISCE", "ISIS2", "ISIS3", "JAXAPALSAR", "JDEM", "JP2ECW", "JP2KAK", "JP2MrSID",
    "JP2OpenJPEG", "JPEG", "JPEGXL", "KEA", "KRO", "L1B", "LAN", "LCP", "Leveller", "LOSLAS", "MAP",
    "MFF", "MFF2", "MrSID", "MSGN", "NDF", "netCDF", "NITF", "NOAA_B", "NSIDCbin", "NWT_GRC",
    "NWT_GRD", "PAux", "PCIDSK", "PCRaster", "PDS", "PDS4", "PNG", "PNM", "PRF", "RIK", "RMF",
    "ROI_PAC", "RRASTER", "RS2", "RST", "S102", "SAFE", "SAGA", "SAR_CEOS", "SDTS", "SENTINEL2",
    "SGI", "SIGDEM", "SNAP_TIFF", "SNODAS", "SRP", "SRTMHGT", "Terragen", "TGA", "TIL", "TSX",
    "USGSDEM", "VICAR", "VRT", "WEBP", "XPM", "XYZ", "ZMap",
)  # fmt: skip
"""Formats of GDAL that are opened: those of files with pixels. Left out are services (WMS, WCS, STACIT,
EEDAI, PLMOSAIC, HTTP ...), databases and indices of other files (GPKG, MBTiles, Rasterlite, GTI, MRF),
programs (GDALG, DERIVED) and what has a reader of its own (Zarr)."""

VECTOR_DRIVERS = (
    "ESRI Shapefile", "ESRIJSON", "FlatGeobuf", "GML", "GPKG", "GPX", "GeoJSON", "GeoJSONSeq", "JSONFG",
    "KML", "LIBKML", "MapInfo File", "OpenFileGDB", "SQLite", "TopoJSON",
)  # fmt: skip
"""Formats of vectors that are opened: those of `scenes.labels`."""

VECTOR_SETTINGS = {
    "GML_DOWNLOAD_SCHEMA": "NO",
    "OGR_SQLITE_LOAD_EXTENSIONS": "",
    "OGR_SQLITE_ALLOW_EXTERNAL_ACCESS": "NO",
}
"""Of GDAL for vectors, whatever the environment says: nothing is fetched, and no code of a file loaded."""

SETTINGS = {"GDAL_VRT_ENABLE_PYTHON": "NO"}
"""Of GDAL, whatever the environment says: the pixel functions of a VRT are not run."""

_SCHEME = re.compile(
    r"(?:(?:zip|tar|gzip)\+)?"
    r"(?:https?|ftp|s3|gs|gcs|az|abfss?|adl|oss|swift|hdfs|webhdfs|file|zip|tar|gzip)://",
    re.IGNORECASE,
)
_CONTAINED = re.compile(r'[A-Za-z0-9_]+:"')
_ARCHIVES = {"vsizip", "vsitar", "vsigzip", "vsi7z", "vsirar"}
_REMOTE = {
    "vsicurl", "vsis3", "vsigs", "vsiaz", "vsiadls", "vsioss", "vsiswift", "vsihdfs", "vsiwebhdfs",
}  # fmt: skip
_SOURCES = {"SourceFilename", "SourceDataset"}
_PROGRAMS = (b"<OGR", b"<GDAL", b"<VRT", b"gdal_streamed_alg")
"""How files begin whose features come from elsewhere: OGR's VRT and services, GDAL's pipelines."""
_HEAD = 2**16
_NAMED = {"X_DATASET", "Y_DATASET", "RPC_DEM"}
"""Metadata and options of a VRT that name files."""


def is_contained(path: str) -> bool:
    """Return whether a path is GDAL's name of a raster within a file, such as ``HDF5:"cube.h5"://data``."""
    return bool(_CONTAINED.match(path))


def source_file(path: str) -> str:
    """Return the file of GDAL's name of a raster within a file, any other path as it is.

    Examples
    --------
    >>> source_file('NETCDF:"/data/cube.nc":refl'), source_file("cube.tif")
    ('/data/cube.nc', 'cube.tif')
    """
    return path.split('"')[1] if is_contained(path) else path


def is_address(path: str) -> bool:
    """Return whether a path of a job is none of this machine's files: a URL, or a /vsi path of GDAL."""
    return ("://" in path or path.startswith("/vsi")) and not is_contained(path)


def is_archived(path: str) -> bool:
    """Return whether an address is that of a member of an archive."""
    scheme = path.partition("://")[0].lower()
    return bool(set(re.findall(r"/(vsi\w+)", path)) & _ARCHIVES) or scheme.startswith(
        ("zip", "tar", "gzip")
    )


def check_address(path: str) -> None:
    """Refuse an address of a kind that is not read.

    Parameters
    ----------
    path
        For which `is_address` is true.

    Raises
    ------
    SceneError
        It has another scheme, or several.
    """
    if path.startswith("/vsi"):
        kinds = set(re.findall(r"/(vsi\w+)", path))
        if wrong := sorted(kinds - _ARCHIVES - _REMOTE - {"vsimem"}):
            raise SceneError(
                f"{path}: /{wrong[0]}/ is not read. Give a file, a URL, or one of "
                f"{', '.join(f'/{kind}/' for kind in sorted(_ARCHIVES | _REMOTE))}."
            )
        return
    if "::" in path or not _SCHEME.match(path):
        raise SceneError(
            f"{path}: an address of this kind is not read. Give a file, or a URL with one of http, https, "
            "ftp, s3, gs, az, abfs, hdfs (zip+https://... within an archive)."
        )


def check_sources(path: str) -> tuple[str, ...]:
    """Refuse a VRT that refers to anything but raster files of this machine; other files pass.

    Returns
    -------
    tuple of str
        The files that a VRT refers to, and those that VRTs among them refer to; of other files none.

    Raises
    ------
    SceneError
        It refers to the network, to a service or database, or to a file that is not here.
    """
    if not os.path.isfile(path):
        return ()
    state = os.stat(path)
    return _check_file(path, state.st_mtime_ns, state.st_size)


def check_vectors(path: str) -> None:
    """Refuse a file of vectors that refers to others, or says how they are to be made.

    Raises
    ------
    SceneError
        It is one, whatever its name says.
    """
    if os.path.isfile(path) and any(mark in _start(path, _HEAD) for mark in _PROGRAMS):
        raise SceneError(
            f"{path}: holds no features but says where to take them from (a VRT, a service or a pipeline of "
            "GDAL). Write the features themselves to a file: ogr2ogr OUT.gpkg IN"
        )


@lru_cache(maxsize=64)
def _check_file(path: str, modified: int, size: int) -> tuple[str, ...]:
    """Check a file and what it refers to; a changed file is another entry."""
    found, left = list[str](), [path]
    while left:
        file = left.pop()
        if b"<VRTDataset" not in _start(file):
            continue
        for source in _references(file, path):
            if fault := _fault(source):
                raise SceneError(
                    f"{path}: the VRT refers to {source!r}, {fault}. Sources of a VRT are raster files on "
                    "this machine: bring it here first (gdal_translate) and build the VRT anew."
                )
            if source != path and source not in found:
                found.append(source)
                left.append(source)
    return tuple(found)


def _references(file: str, path: str) -> Iterator[str]:
    """Yield what a VRT refers to; relative names as paths from here."""
    try:
        root = parse_xml(Path(file).read_bytes(), path)
    except SceneError as error:
        raise SceneError(f"{error} It is a VRT: build it anew.") from None
    for element in root.iter():
        name = element.get("key") or element.get("name")
        text = (element.text or "").strip()
        if text and (element.tag in _SOURCES or name in _NAMED):
            relative = element.get("relativeToVRT") == "1"
            # GDAL follows a link to a VRT.
            yield str(Path(os.path.realpath(file)).parent / text) if relative else text


def _fault(source: str) -> str:
    """Return why a VRT may not refer to something, as the end of a sentence; "" if it may."""
    if is_address(source):
        return "which is not on this machine"
    if not os.path.isfile(source):
        return "which is not a file here"
    start = _start(source).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"{", b"[", b"SQLite format 3", b"fgb")) or (
        start.startswith(b"<") and b"<VRTDataset" not in start
    ):
        return "which is not a raster but refers to others"
    return ""


def _start(path: str, size: int = 1024) -> bytes:
    """Return the beginning of a file, by which GDAL recognises formats.

    Raises
    ------
    SceneError
        It cannot be read, such as a file of /proc or on a broken disk.
    """
    try:
        with open(path, "rb") as stream:
            return stream.read(size)
    except OSError as error:
        raise SceneError(
            f"{path}: cannot be read ({error.strerror}). Check the disk and the permissions, or bring the "
            "file here anew."
        ) from None
