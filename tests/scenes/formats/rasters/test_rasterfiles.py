"""What opening rasters leaves behind in the process, and the XML beside them."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np

from eigenscape.scenes.formats.rasters.rasterfiles import declared_text, open_raster

NAMES = "<PAMDataset><CategoryNames><Category>none</Category></CategoryNames></PAMDataset>"


def test_open_raster__overlapping_opens_leave_one_hook(write, cube, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    paths = [write(name, cube) for name in ("a.tif", "b.tif")]
    with open_raster(paths[0]):
        hook = sys.unraisablehook
    is_open = [threading.Event(), threading.Event()]

    def read(number):
        with open_raster(paths[number]):
            is_open[number].set()
            # The first one is closed while the second one is open.
            is_open[1].wait(10) if number == 0 else first.result()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(read, 0)
        is_open[0].wait(10)
        pool.submit(read, 1).result()
    assert sys.unraisablehook is hook
    hook(SimpleNamespace(object="rasterio._env.log_error"))
    hook(other := SimpleNamespace(object="another"))
    assert seen == [other]


def test_declared_text__damaged_and_dangerous_side_cars_are_ignored(write, tmp_path):
    path = write("labels.tif", np.ones((4, 5), "u1"))
    side = tmp_path / "labels.tif.aux.xml"
    side.write_text(NAMES)
    assert [one.tag for one in declared_text(path, "Category")] == ["Category"]
    entity = '<!DOCTYPE x [<!ENTITY a "text">]>'
    for text in (NAMES[:-3], entity + NAMES.replace("none", "&a;"), entity + NAMES):
        side.write_text(text)
        assert list(declared_text(path, "Category")) == []
