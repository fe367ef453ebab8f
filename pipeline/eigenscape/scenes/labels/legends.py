"""Names and colours of the classes as a label raster or array carries them."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from eigenscape.scenes.formats.rasters.metadata import braced_list
from eigenscape.scenes.formats.rasters.rasterfiles import declared_text
from eigenscape.scenes.labels.flags import flag_names
from eigenscape.scenes.types import Color, Legend

# Usage codes of the columns of a GDAL raster attribute table.
_NAME, _MIN, _VALUE, _RED, _GREEN, _BLUE = "2", "3", "5", "6", "7", "8"
_VALUE_NAMES = {"value", "class", "class_id", "id", "code"}
_BLACK = (0, 0, 0)
_BRIGHTEST = 255
_WHITE = (_BRIGHTEST, _BRIGHTEST, _BRIGHTEST)
_NO_CLASS = {
    "unclassified", "unlabelled", "unlabeled", "background", "none", "no class", "no data", "nodata",
    "undefined", "unknown", "masked", "no label", "ignore", "void", "missing", "null", "na", "n/a",
}  # fmt: skip
"""Names of what is no class, in lower case."""
_MOST_READ = 2**22
"""Pixels."""
_ITEM = re.compile("class_[1-9][0-9]{0,4}")


def read_legend(dataset: Any, path: str) -> Legend:
    """Collect the legend of an open label raster.

    Taken from, the later winning: its colour table, items ``class_1`` and so on of its first band (as our own
    class maps have them), ``flag_meanings`` of NetCDF, ENVI's ``class lookup`` and ``class names``,
    GDAL's category names and raster attribute table (.aux.xml side-car, or the VRT itself). Without names,
    colours that tell no classes apart are left out: those of a table of greys, and that of most entries.
    """
    colors = _color_table(dataset)
    items = {key: text.strip() for key, text in dataset.tags(1).items() if _ITEM.fullmatch(key)}
    names = {int(key.removeprefix("class_")): text for key, text in items.items() if text}
    names |= {number: word for number, word in flag_names(dataset.tags(1)).items() if number}
    envi_names, looked_up = _envi_classes(dataset.tags(ns="ENVI"))
    names |= envi_names
    colors |= looked_up
    for categories in declared_text(path, "CategoryNames"):
        names |= _numbered(element.text or "" for element in categories)
    for table in declared_text(path, "GDALRasterAttributeTable"):
        table_names, table_colors = _attribute_table(table)
        names |= table_names
        colors |= table_colors
    # A damaged file may have larger numbers, which no map can be written with.
    colors = {number: color for number, color in colors.items() if max(color) <= _BRIGHTEST}
    if names:
        colors = {number: color for number, color in colors.items() if number in names}
    else:
        colors = _chosen(colors)
    return Legend(names, colors)


def _chosen(colors: Mapping[int, Color]) -> dict[int, Color]:
    """Return the colours that somebody chose: none of a ramp of greys, and no filler of a table."""
    if all(red == green == blue for red, green, blue in colors.values()):
        return {}
    # GDAL fills the entries that nobody set with black, others with what is then the colour of most.
    filler, count = Counter(colors.values()).most_common(1)[0]
    dropped = {_BLACK, filler} if count > len(colors) / 2 and count > 1 else {_BLACK}
    return {number: color for number, color in colors.items() if color not in dropped}


def array_legend(attributes: Mapping[str, Any], path: str) -> tuple[Legend, tuple[str, ...]]:
    """Return the names of the classes of an array, by its attributes, and what to note of 0."""
    names = flag_names(attributes)
    zero = names.pop(0, "")
    return Legend(names), (_note_zero(zero, path),) if zero and not _is_no_class(zero) else ()


def told_zero(dataset: Any, path: str) -> str | None:
    """Return what 0 means in a label raster, if it may be meant as a class; None if not.

    That is so where 0 has a name, or a colour, or another value is declared as nodata, unless a small raster
    has no 0.
    """
    if dataset.nodata == 0:
        return None
    name = _name_of_zero(dataset, path)
    if _is_no_class(name):
        return None
    if not name and not _is_colored(dataset) and dataset.nodata is None:
        return None
    if dataset.height * dataset.width <= _MOST_READ and dataset.read(1).all():
        return None
    return _note_zero(name, path)


def _note_zero(name: str, path: str) -> str:
    called = f" (its name in the file is {name!r})" if name else ""
    return f"0 means no label. If it is a class{called}, number the classes from 1 in {Path(path).name}"


def _is_no_class(name: str) -> bool:
    return re.sub("[-_]", " ", name.lower()) in _NO_CLASS


def _name_of_zero(dataset: Any, path: str) -> str:
    """Return the name that a raster gives to 0, "" if it gives none."""
    names = [
        dataset.tags(1).get("class_0", ""),
        flag_names(dataset.tags(1)).get(0, ""),
        *braced_list(dataset.tags(ns="ENVI").get("class_names", ""))[:1],
    ]
    for categories in declared_text(path, "CategoryNames"):
        names += [element.text or "" for element in list(categories)[:1]]
    for table in declared_text(path, "GDALRasterAttributeTable"):
        names.append(_attribute_table(table, least=0)[0].get(0, ""))
    return next((name.strip() for name in reversed(names) if name.strip()), "")


def _is_colored(dataset: Any) -> bool:
    """Return whether the colour table shows 0 in another colour than black and white."""
    try:
        red, green, blue, *alpha = dataset.colormap(1).get(0, (0, 0, 0, 0))
    except ValueError:
        return False
    return (red, green, blue) not in (_BLACK, _WHITE) and alpha != [0]


def _color_table(dataset: Any) -> dict[int, Color]:
    try:
        table: Mapping[int, tuple[int, ...]] = dataset.colormap(1)
    except ValueError:
        return {}
    return {number: (entry[0], entry[1], entry[2]) for number, entry in table.items() if number}


def _envi_classes(tags: Mapping[str, str]) -> tuple[dict[int, str], dict[int, Color]]:
    parts = [int(item) for item in braced_list(tags.get("class_lookup", "")) if item.isdigit()]
    triples = zip(parts[::3], parts[1::3], parts[2::3], strict=False)
    colors: dict[int, Color] = {number: color for number, color in enumerate(triples) if number}
    return _numbered(braced_list(tags.get("class_names", ""))), colors


def _numbered(texts: Any) -> dict[int, str]:
    """Names by their place, from 0; that of 0 ("Unclassified") is no class."""
    return {number: text.strip() for number, text in enumerate(texts) if number and text.strip()}


def _attribute_table(
    table: ElementTree.Element, *, least: int = 1
) -> tuple[dict[int, str], dict[int, Color]]:
    usage: dict[str, int] = {}
    for place, column in enumerate(table.iter("FieldDefn")):
        usage.setdefault(column.findtext("Usage", "0").strip(), place)
        if column.findtext("Name", "").strip().lower() in _VALUE_NAMES:
            usage.setdefault("value by name", place)
    value = next((usage[key] for key in (_VALUE, "value by name", _MIN) if key in usage), None)
    names: dict[int, str] = {}
    colors: dict[int, Color] = {}
    if value is None:
        return names, colors
    for row in table.iter("Row"):
        cells = [(cell.text or "").strip() for cell in row.iter("F")]
        try:
            number = int(float(cells[value]))
            if number >= least and _NAME in usage and cells[usage[_NAME]]:
                names[number] = cells[usage[_NAME]]
            if number > 0 and {_RED, _GREEN, _BLUE} <= usage.keys():
                red, green, blue = (int(float(cells[usage[key]])) for key in (_RED, _GREEN, _BLUE))
                colors[number] = red, green, blue
        except (ValueError, IndexError):
            # A row without a number describes no class.
            continue
    return names, colors
