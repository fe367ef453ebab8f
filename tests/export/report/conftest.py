"""One small run, whose report all tests look at; names of its classes are as bad as names can be."""

from html.parser import HTMLParser

import numpy as np
import pytest
import rasterio

import eigenscape
from eigenscape.export.palette import complete_legend
from eigenscape.export.sidecar import write_categories
from eigenscape.scenes.types import Legend

NAMES = {
    1: "<script>alert(1)</script>", 2: "oak & \"ash\"", 3: "</style><img src=x onerror=alert(2)>",
    4: "$$water$$",
}  # fmt: skip


class Page(HTMLParser):
    """Elements of a page: tag, attributes and text of each, and all text that a reader sees."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self._open = [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])
        if tag in ("script", "style"):
            self._open.append(self.elements[-1])

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._open.pop()

    def handle_data(self, data):
        if self._open:
            self._open[-1][2] += data
        else:
            self.text += data

    def all(self, tag):
        return [(attrs, text) for name, attrs, text in self.elements if name == tag]

    def ids(self):
        return {attrs["id"] for _, attrs, _ in self.elements if "id" in attrs}


def write_scene(folder, small):
    """Write the small scene and its labels with the names; return its table of a job."""
    cube = small.cube.astype(np.float32)
    cube[small.hole] = np.nan
    profile = {
        "driver": "GTiff", "height": cube.shape[0], "width": cube.shape[1], "crs": "EPSG:32633",
        "transform": rasterio.Affine(30, 0, 364095, 0, -30, 5809965),
    }  # fmt: skip
    with rasterio.open(
        folder / "scene.tif", "w", count=cube.shape[2], dtype="float32", nodata=np.nan, **profile
    ) as target:
        target.write(cube.transpose(2, 0, 1))
    labels = folder / "labels.tif"
    with rasterio.open(labels, "w", count=1, dtype="uint8", nodata=0, **profile) as target:
        target.write(small.labels.astype(np.uint8), 1)
    write_categories(labels, complete_legend(Legend(NAMES, {}), NAMES))
    return {"path": str(folder / "scene.tif"), "labels": str(labels)}


@pytest.fixture(scope="session")
def write_small(small):
    """Return what writes the small scene into a folder, and gives its table of a job."""
    return lambda folder: write_scene(folder, small)


@pytest.fixture(scope="session")
def parse_page():
    """Return what makes a `Page` of a text."""
    return Page


@pytest.fixture(scope="session")
def scene(tmp_path_factory, small):
    return write_scene(tmp_path_factory.mktemp("report"), small)


@pytest.fixture(scope="session")
def make_run(tmp_path_factory, scene):
    """Run a job on the scene; runs lie beside each other, so that they share their first stages."""
    runs = tmp_path_factory.mktemp("runs")

    def make(name="job", **tables):
        job = {
            "scene": scene, "features": {"dimension": 10}, "neighbors": {"k": 8},
            "spectrum": {"dimension": 8}, "learn": {"method": "eigenfunctions", "trials": 3},
            "output": {"directory": str(runs), "eigenvectors": 2}, "limits": {"threads": 2},
        }  # fmt: skip
        for table, keys in tables.items():
            job[table] = keys if table in ("scene", "learn") else {**job[table], **keys}
        return eigenscape.run(eigenscape.parse_job(job), run_dir=runs / name)

    return make


@pytest.fixture(scope="session")
def result(make_run):
    return make_run()


@pytest.fixture(scope="session")
def html(result):
    with open(result.outputs["report"], encoding="utf-8") as stream:
        return stream.read()


@pytest.fixture(scope="session")
def page(html):
    return Page(html)
