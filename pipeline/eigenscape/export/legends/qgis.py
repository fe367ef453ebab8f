"""Styles of QGIS (QML): classes of a raster and of polygons in their colours, with their names."""

from xml.etree import ElementTree as ET

from eigenscape.export.sidecar import printable
from eigenscape.scenes.types import Legend

_DOCTYPE = "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
# Styles are read by every QGIS from 3.0 on; newer ones know how to read an older style.
_VERSION = "3.0.0"


def raster_style(legend: Legend) -> str:
    """Return the style of a class map: a palette with the names of the classes."""
    root = ET.Element("qgis", version=_VERSION)
    pipe = ET.SubElement(root, "pipe")
    renderer = ET.SubElement(
        pipe, "rasterrenderer", type="paletted", band="1", opacity="1", alphaBand="-1"
    )
    ET.SubElement(renderer, "rasterTransparency")
    palette = ET.SubElement(renderer, "colorPalette")
    for number, name in sorted(legend.names.items()):
        ET.SubElement(
            palette, "paletteEntry", value=str(number), label=printable(name), alpha="255",
            color="#{:02x}{:02x}{:02x}".format(*legend.colors[number]),
        )  # fmt: skip
    ET.SubElement(root, "blendMode").text = "0"
    return _text(root)


def polygon_style(legend: Legend, field: str) -> str:
    """Return the style of polygons by the class numbers in a field."""
    root = ET.Element("qgis", version=_VERSION)
    renderer = ET.SubElement(
        root, "renderer-v2", type="categorizedSymbol", attr=field, forceraster="0",
        symbollevels="0", enableorderby="0",
    )  # fmt: skip
    categories = ET.SubElement(renderer, "categories")
    symbols = ET.SubElement(renderer, "symbols")
    for place, (number, name) in enumerate(sorted(legend.names.items())):
        ET.SubElement(
            categories, "category", value=str(number), label=printable(name), symbol=str(place),
            render="true",
        )  # fmt: skip
        symbol = ET.SubElement(symbols, "symbol", name=str(place), type="fill", alpha="1")
        layer = ET.SubElement(symbol, "layer", {"class": "SimpleFill"}, enabled="1", locked="0")
        color = ",".join(map(str, (*legend.colors[number], 255)))
        for key, value in (
            ("color", color), ("style", "solid"), ("outline_color", color),
            ("outline_style", "solid"), ("outline_width", "0.1"), ("outline_width_unit", "MM"),
        ):  # fmt: skip
            ET.SubElement(layer, "prop", k=key, v=value)
    return _text(root)


def _text(root: ET.Element) -> str:
    ET.indent(root)
    return _DOCTYPE + ET.tostring(root, encoding="unicode") + "\n"
