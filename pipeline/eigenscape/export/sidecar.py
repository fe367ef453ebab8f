"""What lies beside a raster: class names and colours as GDAL and QGIS read them, and as CSV.

A palette says what a class looks like, not what it is called. The one place where GDAL and QGIS
look for class names of a GeoTIFF is the PAM sidecar, ``<name>.tif.aux.xml``.
"""

import contextlib
import csv
import io
import os
import secrets
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path

from eigenscape.base.files.cells import to_cell
from eigenscape.base.memory import format_bytes
from eigenscape.errors import OutputError
from eigenscape.scenes.types import Legend

UNCLASSIFIED = "unclassified"
"""Name of class 0 in every legend that is written."""

LONGEST_CATEGORY_LIST = 1024
"""Categories are a dense list from 0: past this number there is only the attribute table."""

# Name, GDALRATFieldType (0 integer, 2 string), GDALRATFieldUsage (5 MinMax, 2 Name, 6-8 RGB).
_COLUMNS = (("Value", 0, 5), ("Class", 2, 2), ("Red", 0, 6), ("Green", 0, 7), ("Blue", 0, 8))


def sidecar_path(tif_path: str | Path) -> Path:
    """Return where GDAL keeps what does not fit into the raster at `tif_path`."""
    return Path(f"{tif_path}.aux.xml")


def output_error(path: str | Path, reason: object) -> OutputError:
    """Return the error to raise when `path` could not be written, with the fix."""
    folder = Path(path).parent
    if not folder.is_dir():
        return OutputError(
            f"{path}: there is no directory {folder}. Make it, or give another path."
        )
    try:
        room = f"{format_bytes(shutil.disk_usage(folder).free)} are free there"
    except OSError:
        room = "Its directory cannot be opened"
    detail = (reason.strerror if isinstance(reason, OSError) else None) or reason
    return OutputError(
        f"{path}: cannot be written ({detail}). {room}: free some space, "
        "or choose a writable directory on a larger disk."
    )


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Write a file under a temporary name that becomes `path` only when the block succeeds.

    The PAM sidecar that GDAL may have written beside the temporary file moves along, and an older
    one beside `path` goes: it would describe the file that is no longer there.

    Raises
    ------
    OutputError
        The finished file cannot be brought to disk or renamed.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    try:
        yield temporary
        try:
            _sync(temporary)
            sidecar_path(path).unlink(missing_ok=True)
            os.replace(temporary, path)
            if sidecar_path(temporary).exists():
                os.replace(sidecar_path(temporary), sidecar_path(path))
            _sync(path.parent)
        except OSError as error:
            raise output_error(path, error) from error
    finally:
        for leftover in (temporary, sidecar_path(temporary)):
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_categories(tif_path: str | Path, legend: Legend) -> None:
    """Write the class names and colours of a single-band raster to its PAM sidecar.

    Category names run from 0 to the largest class number without gaps (left out when that number
    exceeds `LONGEST_CATEGORY_LIST`); the thematic attribute table has one row per class. What else
    the sidecar holds (statistics, a coordinate system) is kept.

    Parameters
    ----------
    tif_path
        The raster; it need not exist yet.
    legend
        Names and colours by class number.

    Raises
    ------
    OutputError
        The sidecar cannot be written.
    """
    path = sidecar_path(tif_path)
    root = _existing(path)
    band = next((item for item in root.iter("PAMRasterBand") if item.get("band") == "1"), None)
    if band is None:
        band = ET.SubElement(root, "PAMRasterBand", band="1")
    for stale in band.findall("CategoryNames") + band.findall("GDALRasterAttributeTable"):
        band.remove(stale)
    classes = sorted({0, *legend.names, *legend.colors})
    if classes[-1] <= LONGEST_CATEGORY_LIST:
        categories = ET.SubElement(band, "CategoryNames")
        for number in range(classes[-1] + 1):
            ET.SubElement(categories, "Category").text = printable(name_of(legend, number))
    band.append(attribute_table(legend))
    _write_root(path, root)


def write_crs(tif_path: str | Path, crs_wkt: str) -> None:
    """Write a coordinate reference system that GeoTIFF keys cannot hold to the PAM sidecar.

    GDAL prefers it to the keys in the file.

    Parameters
    ----------
    tif_path
        The raster.
    crs_wkt
        The system as WKT, with x (east) before y (north) in the raster's transform.

    Raises
    ------
    OutputError
        The sidecar cannot be written.
    """
    path = sidecar_path(tif_path)
    root = _existing(path)
    for stale in root.findall("SRS"):
        root.remove(stale)
    element = ET.Element("SRS", dataAxisToSRSAxisMapping="1,2")
    element.text = crs_wkt
    root.insert(0, element)
    _write_root(path, root)


def write_legend_csv(
    path: str | Path, legend: Legend, counts: Mapping[int, int] | None = None
) -> None:
    """Write a legend as CSV with the columns value, name, red, green, blue, pixels.

    Parameters
    ----------
    path
        The CSV file, UTF-8.
    legend
        Names and colours by class number; a class without colour gets empty cells.
    counts
        Pixels per class number (0 for those that are not in it); the column stays empty without it.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    stream = io.StringIO(newline="")
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(["value", "name", "red", "green", "blue", "pixels"])
    for number in sorted({*legend.names, *legend.colors, *(counts or {})}):
        color = legend.colors.get(number, ("", "", ""))
        pixels = "" if counts is None else counts.get(number, 0)
        table.writerow([number, to_cell(name_of(legend, number)), *color, pixels])
    _write_text(Path(path), stream.getvalue())


def name_of(legend: Legend, number: int) -> str:
    """Return the name of a class, "unclassified" of 0."""
    if number == 0:
        return legend.names.get(0, UNCLASSIFIED)
    return legend.names.get(number, "")


def _existing(path: Path) -> ET.Element:
    try:
        root = ET.parse(path).getroot()
    except (OSError, ET.ParseError):
        # None yet, or one that GDAL itself would ignore.
        return ET.Element("PAMDataset")
    return root if root.tag == "PAMDataset" else ET.Element("PAMDataset")


def attribute_table(legend: Legend) -> ET.Element:
    """Return a legend as GDAL's raster attribute table, class 0 included."""
    table = ET.Element("GDALRasterAttributeTable", tableType="thematic")
    for index, (name, kind, usage) in enumerate(_COLUMNS):
        column = ET.SubElement(table, "FieldDefn", index=str(index))
        for tag, text in (("Name", name), ("Type", str(kind)), ("Usage", str(usage))):
            ET.SubElement(column, tag).text = text
    for index, number in enumerate(sorted({0, *legend.names, *legend.colors})):
        row = ET.SubElement(table, "Row", index=str(index))
        color = legend.colors.get(number, (0, 0, 0))
        for cell in (number, name_of(legend, number), *color):
            ET.SubElement(row, "F").text = printable(str(cell))
    return table


def printable(text: str) -> str:
    """Drop what XML 1.0 cannot carry even escaped: control characters and lone surrogates."""
    return "".join(
        mark
        for mark in text
        if (mark >= " " or mark in "\t\n\r")
        and not "\ud800" <= mark <= "\udfff"
        and mark not in "\ufffe\uffff"
    )


def _write_root(path: Path, root: ET.Element) -> None:
    ET.indent(root)
    _write_text(path, ET.tostring(root, encoding="unicode") + "\n")


def _write_text(path: Path, text: str) -> None:
    try:
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise output_error(path, error) from error
