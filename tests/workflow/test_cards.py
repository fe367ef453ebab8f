"""Objects in a notebook: cards in its own colours; a notebook that runs, and what a browser makes of it."""

import shutil

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import eigenscape
from eigenscape.store.run import Run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CELLS = [
    """import numpy, xarray, rioxarray, eigenscape
from distributed import Client, LocalCluster
cluster = LocalCluster(1, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50)
client = Client(cluster)
rng = numpy.random.default_rng(0)
truth = numpy.repeat([1, 2], 200).reshape(20, 20)
places = {"y": 5000.0 - 30 * numpy.arange(20), "x": 400.0 + 30 * numpy.arange(20)}
values = rng.normal(size=(20, 20, 8)) + 4 * truth[:, :, None]
labels = numpy.where(rng.random(truth.shape) < 0.3, truth, 0)""",
    """cube = xarray.DataArray(values, dims=("y", "x", "band"), coords=places).rio.write_crs(32633)
job = eigenscape.job_for(cube, labels, preset="halevy-2011", spectrum={"dimension": 5})
result = eigenscape.run(job, client=client)
result.class_map.rio.to_raster("map.tif")
result.class_map.rio.crs.to_epsg()""",
    "job",
    "eigenscape.plan(job, client=client)",
    "result",
    "result.plot()",
]


def test_cards__of_job_plan_run_and_result(tmp_path):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(200, 5)) + 6 * (np.arange(200) % 2)[:, None]
    labels = np.where(np.arange(200) < 40, np.arange(200) % 2 + 1, 0)
    job = eigenscape.job_for(
        samples, labels, directory=tmp_path, name="two <clouds>", spectrum={"dimension": 3},
        limits={"threads": 1}, output={"formats": []}, preset="halevy-2011",
    )  # fmt: skip
    result = eigenscape.run(job)
    cards = {
        "Job": (job, ("lanczos-bisection", "dimension = 3", "2GiB")),
        "Plan": (eigenscape.plan(job), ("up to 200", "finished", "peak of memory")),
        "Result": (result, ("overall accuracy", "7 stages", "legend.csv")),
        "Run": (Run(result.path, create=False), ("spectrum", "finished", "iB")),
    }
    for name, (value, words) in cards.items():
        text = value._repr_html_()
        assert f"<b>{name}</b>" in text
        assert "two &lt;clouds&gt;" in text
        assert len(text) < 20_000
        for word in words:
            assert word in text, (name, word)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_notebook__a_cube_in_memory_to_a_map(tmp_path):
    """Five lines, on the client of the notebook; a browser asks for nothing outside, light and dark."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    notebook = new_notebook(cells=[new_code_cell(text) for text in CELLS])
    nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    nbformat.validate(notebook)
    ran, *cards, _, picture = (cell["outputs"] for cell in notebook.cells[1:])
    progress, epsg = ran
    assert epsg["data"]["text/plain"] == "32633"
    for stage in ("ingest", "spectrum", "export"):
        assert f">{stage}</td>" in progress["data"]["text/html"]
    assert all("text/html" in output["data"] for outputs in cards for output in outputs)
    assert "image/png" in picture[0]["data"]
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    page = tmp_path / "cards.html"
    htmls = [progress["data"]["text/html"], *(one[0]["data"]["text/html"] for one in cards)]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for color, paper in (("black", "white"), ("white", "#111")):
            body = "".join(htmls)
            page.write_text(f'<body style="color:{color};background:{paper}">{body}</body>')
            tab, asked = browser.new_page(), []
            tab.on("request", lambda request, asked=asked: asked.append(request.url))
            tab.goto(page.as_uri())
            inks = tab.evaluate(
                "[...document.querySelectorAll('td, pre, b')].map(e => getComputedStyle(e).color)"
            )
            assert {*inks} == {"rgb(0, 0, 0)" if color == "black" else "rgb(255, 255, 255)"}
            assert asked == [page.as_uri()]
        browser.close()
