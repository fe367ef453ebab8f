"""Class names and colours as GDAL itself reads them from the sidecar."""

import csv
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import rasterio
import rasterio.shutil

from eigenscape.errors import OutputError
from eigenscape.export.geotiff import write_raster
from eigenscape.export.sidecar import (
    sidecar_path,
    write_categories,
    write_legend_csv,
)
from eigenscape.scenes.labels.legends import read_legend
from eigenscape.scenes.types import Grid, Legend

LEGEND = Legend(
    names={1: "corn & <soy>", 3: 'Straße "Ä" 水', 4: "wheat"},
    colors={1: (1, 2, 3), 3: (255, 254, 253), 4: (0, 0, 9)},
)


def _raster(path):
    grid = Grid(2, 2, None, (5.0, 0.0, 4e5, 0.0, -5.0, 4e6))
    write_raster(path, grid, [(0, np.ones((2, 2), np.uint16))], dtype="u2", nodata=0)


def legend_of(path):
    with rasterio.open(path) as dataset:
        return read_legend(dataset, str(path))


def test_write_categories__gdal_reads_them(tmp_path):
    path = tmp_path / "a.tif"
    _raster(path)
    write_categories(path, LEGEND)
    # A copy by GDAL carries what GDAL understood of the sidecar, not the sidecar's text.
    rasterio.shutil.copy(path, tmp_path / "copy.vrt", driver="VRT")
    categories = ET.parse(tmp_path / "copy.vrt").findall(".//CategoryNames/Category")
    assert [item.text or "" for item in categories] == [
        "unclassified",
        LEGEND.names[1],
        "",
        LEGEND.names[3],
        "wheat",
    ]
    rasterio.shutil.copy(path, tmp_path / "copy.tif", driver="GTiff")
    table = ET.parse(sidecar_path(tmp_path / "copy.tif")).find(".//GDALRasterAttributeTable")
    assert table.get("tableType") == "thematic"
    columns = [tuple(part.text for part in item)[:3] for item in table.findall("FieldDefn")]
    assert columns == [
        ("Value", "0", "5"),
        ("Class", "2", "2"),
        ("Red", "0", "6"),
        ("Green", "0", "7"),
        ("Blue", "0", "8"),
    ]
    rows = [[cell.text or "" for cell in row] for row in table.findall("Row")]
    assert rows[2] == ["3", LEGEND.names[3], "255", "254", "253"]
    assert legend_of(tmp_path / "copy.tif") == LEGEND


def test_write_categories__read_as_a_legend_of_labels(tmp_path):
    path = tmp_path / "a.tif"
    _raster(path)
    assert legend_of(path) == Legend()
    write_categories(path, LEGEND)
    assert legend_of(path) == LEGEND
    write_categories(path, Legend({2: "new"}, {2: (5, 6, 7)}))
    assert legend_of(path) == Legend({2: "new"}, {2: (5, 6, 7)})


def test_write_categories__large_numbers_have_a_table_only(tmp_path):
    path = tmp_path / "a.tif"
    _raster(path)
    legend = Legend({1: "a", 65535: "b"}, {1: (1, 1, 1), 65535: (2, 2, 2)})
    write_categories(path, legend)
    root = ET.parse(sidecar_path(path)).getroot()
    assert root.find(".//CategoryNames") is None
    assert len(root.findall(".//Row")) == 3
    assert legend_of(path) == legend


def test_write_categories__keeps_what_else_the_sidecar_holds(tmp_path):
    path = tmp_path / "a.tif"
    sidecar_path(path).write_text(
        '<PAMDataset><SRS>x</SRS><PAMRasterBand band="1"><Description>d</Description>'
        "<CategoryNames><Category>old</Category></CategoryNames></PAMRasterBand></PAMDataset>"
    )
    write_categories(path, LEGEND)
    root = ET.parse(sidecar_path(path)).getroot()
    assert root.findtext("SRS") == "x"
    assert root.findtext("PAMRasterBand/Description") == "d"
    assert len(root.findall(".//CategoryNames")) == 1


def test_write_categories__control_characters_are_dropped(tmp_path):
    path = tmp_path / "a.tif"
    _raster(path)
    write_categories(path, Legend({1: "a\x00b\x1b\ud800c"}, {1: (0, 0, 0)}))
    assert legend_of(path).names == {1: "abc"}


def test_write_categories__unwritable(tmp_path):
    with pytest.raises(OutputError, match="there is no directory"):
        write_categories(tmp_path / "missing" / "a.tif", LEGEND)


def test_write_legend_csv(tmp_path):
    path = tmp_path / "legend.csv"
    write_legend_csv(path, Legend({1: 'a, "b"', 2: "c"}, {1: (1, 2, 3)}), {0: 5, 1: 7})
    with open(path, newline="", encoding="utf-8") as stream:
        assert list(csv.reader(stream)) == [
            ["value", "name", "red", "green", "blue", "pixels"],
            ["0", "unclassified", "", "", "", "5"],
            ["1", 'a, "b"', "1", "2", "3", "7"],
            ["2", "c", "", "", "", "0"],
        ]
    write_legend_csv(path, Legend({2: "c"}))
    assert path.read_text(encoding="utf-8").splitlines()[1] == "2,c,,,,"
