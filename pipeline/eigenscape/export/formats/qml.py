"""A style of QGIS beside the class map, which QGIS takes when it opens the map."""

from typing import ClassVar

from eigenscape.base.files.whole import written_whole
from eigenscape.export.format import Format, Product
from eigenscape.export.legends.qgis import raster_style


class Qml(Format):
    """A QGIS style with names and colours of the classes, found by QGIS beside ``class_map.tif``."""

    name: ClassVar[str] = "qml"

    def write(self, product: Product) -> dict[str, str]:
        """Write the style."""
        assert product.legend is not None
        name = "class_map.qml"
        with written_whole(product.path(name)) as path:
            path.write_text(raster_style(product.legend), encoding="utf-8")
        return {"qgis_style": name}
