"""The page in a browser: Debian's Chromium, driven by Playwright. Skipped where either is absent."""

import json
import shutil

import numpy as np
import pytest

from eigenscape.workflow.finished.reports import report, report_many

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# A failed contrast, or a control that nobody can reach, is serious; advice is not.
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """Open a page; in the end no request may have left it, and its script may have failed nowhere."""
    tabs, asked, wrong = [], [], []

    def open_page(path, **options):
        options = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light", **options}
        tab = browser.new_page(**options)
        tabs.append(tab)
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
        tab.goto(path.resolve().as_uri())
        if tab.query_selector("#figure"):
            tab.wait_for_selector("#figure[data-ready]", timeout=60_000)
        return tab

    yield open_page
    for tab in tabs:
        tab.close()
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert not wrong


@pytest.fixture(scope="module")
def path(result, tmp_path_factory):
    return report(result.path, tmp_path_factory.mktemp("page") / "report.html")


def state(tab, expression):
    return tab.evaluate(f"eigenscapeReport.{expression}")


def span(tab):
    return tab.evaluate("eigenscapeReport.fig.x_range.end - eigenscapeReport.fig.x_range.start")


def colors(tab):
    """Return the colours that the upper layer of the map has, and how many pixels each."""
    return tab.evaluate("""() => {
        const renderers = eigenscapeReport.fig.renderers;
        const image = renderers[1].data_source.data.image[0];
        const found = {};
        for (const value of image) found[value] = (found[value] || 0) + 1;
        return found;
    }""")


def greyness(tab):
    """Return how far from grey the scene is, of the distance that it has by itself."""
    return tab.evaluate("""() => {
        const spread = (image) => {
            let sum = 0;
            for (const value of image) {
                const rgb = [value & 255, value >> 8 & 255, value >> 16 & 255];
                sum += Math.max(...rgb) - Math.min(...rgb);
            }
            return sum;
        };
        const now = spread(eigenscapeReport.fig.renderers[0].data_source.data.image[0]);
        const slider = document.getElementById("opacity"), kept = slider.value;
        const move = (value) => { slider.value = value; slider.dispatchEvent(new Event("input")); };
        move(0);
        const whole = spread(eigenscapeReport.fig.renderers[0].data_source.data.image[0]);
        move(kept);
        return now / whole;
    }""")


def middle(tab):
    box = tab.query_selector("#figure").bounding_box()
    return box["x"] + 0.4 * box["width"], box["y"] + 0.6 * box["height"]


def test_browser__zooms_by_buttons_keys_and_wheel(visit, path):
    tab = visit(path)
    whole = span(tab)
    assert whole >= 40
    tab.click("#zoom-in")
    assert span(tab) == pytest.approx(whole / 1.6)
    tab.focus("#figure")
    tab.keyboard.press("+")
    assert span(tab) == pytest.approx(whole / 1.6**2)
    tab.keyboard.press("0")
    assert span(tab) == pytest.approx(whole)
    # Without the focus the wheel scrolls the page.
    tab.evaluate("document.activeElement.blur()")
    tab.query_selector("#figure").scroll_into_view_if_needed()
    tab.mouse.move(*middle(tab))
    tab.mouse.wheel(0, -300)
    tab.wait_for_timeout(300)
    assert span(tab) == pytest.approx(whole)
    tab.query_selector("#figure").scroll_into_view_if_needed()
    tab.mouse.click(*middle(tab))
    tab.wait_for_timeout(300)
    tab.mouse.wheel(0, -300)
    tab.wait_for_timeout(500)
    assert span(tab) < 0.95 * whole


def test_browser__legend_layers_and_opacity(visit, path):
    tab = visit(path)
    before = colors(tab)
    assert len(before) == 5  # four classes, and no data
    tab.uncheck("#legend input[data-class='2']")
    after = colors(tab)
    assert len(after) == 4
    assert sum(after.values()) == sum(before.values())
    tab.click("#legend-none")
    assert list(colors(tab)) == ["0"]
    tab.click("#legend-all")
    assert colors(tab) == before
    tab.check("input[name=layer][value=confidence]")
    assert colors(tab) != before
    assert tab.is_visible("#ramp")
    tab.check("input[name=layer][value=given]")
    assert colors(tab)["0"] > before["0"]
    # Below what covers it the scene is grey, so that classes keep the hues of the legend.
    assert greyness(tab) < 0.25
    tab.check("input[name=layer][value=none]")
    assert list(colors(tab)) == ["0"]
    assert greyness(tab) == 1
    tab.focus("#opacity")
    tab.keyboard.press("Home")
    assert state(tab, "opacity") == 0
    assert tab.inner_text("#opacity-value") == "0 %"


def test_browser__reads_a_pixel_by_mouse_and_keys(visit, path, small, result):
    import eigenscape

    tab = visit(path)
    tab.query_selector("#figure").scroll_into_view_if_needed()
    tab.mouse.move(*middle(tab))
    tab.wait_for_selector("#readout dd")
    told = tab.inner_text("#readout")
    assert "confidence" in told
    assert "x, y" in told
    tab.focus("#figure")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Shift+ArrowDown")
    told = tab.inner_text("#readout")
    row, column = map(int, told.split("row, column")[1].split("x, y")[0].strip().split(", "))
    arrays = eigenscape.open_run(result.path)
    here = int(np.flatnonzero((arrays.row == row) & (arrays.column == column))[0])
    names = json.loads(arrays.attrs["class_names"])
    assert names[str(int(arrays["class"][here]))] in told
    assert f"{100 * float(arrays['confidence'][here]):.0f} %"[:-3] in told
    x = 364095 + 30 * (column + 0.5)
    assert f"{x:.1f}" in told
    assert tab.query_selector("#spectrum-chart polyline") is not None
    assert "Spectrum of" in tab.inner_text("#spectrum-chart")
    # What lies outside the scene's data says so.
    tab.evaluate("eigenscapeReport.read(0, 0)")
    assert "not a valid pixel" in tab.inner_text("#readout")


def test_browser__dark_by_system_and_by_choice(visit, path):
    tab = visit(path, color_scheme="dark")
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.click("#theme")
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    assert tab.evaluate("eigenscapeReport.fig.border_fill_color") == "#ffffff"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_browser__axe_finds_nothing_serious(visit, path, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab = visit(path, color_scheme=scheme, viewport={"width": width, "height": 900})
    check(axe, tab)
    # Nothing is wider than the window but what scrolls by itself.
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def check(axe, tab):
    tab.evaluate("window.scrollTo(0, 0)")
    found = axe.run(tab).response["violations"]
    told = [
        (one["id"], node["html"][:160], node["any"][:1]) for one in found if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]  # fmt: skip
    assert not told


def test_browser__index_and_table(visit, result, make_run, rng, tmp_path):

    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    rows = [
        {"name": "first", "state": "done", "run": result.path},
        {"name": "second <b>", "state": "failed", "run": None, "reason": "no such file"},
    ]
    tab = visit(report_many(tmp_path, None, "batch", rows))
    assert tab.locator(".cards li").count() == 2
    assert tab.locator(".cards img").count() == 1
    assert "second <b>" in tab.inner_text("main")
    check(axe, tab)
    tab.click("text=first")
    tab.wait_for_selector("#figure[data-ready]")
    classes = rng.integers(1, 4, 300)
    np.save(tmp_path / "rows.npy", rng.random((4, 12))[classes] + 0.05 * rng.random((300, 12)))
    np.save(tmp_path / "kinds.npy", classes.astype(np.uint8))
    scene = {"path": str(tmp_path / "rows.npy"), "labels": str(tmp_path / "kinds.npy")}
    tab = visit(report(make_run("plane", scene=scene).path, tmp_path / "plane.html"))
    tab.uncheck("#legend input[data-class='1']")
    assert tab.evaluate("eigenscapeReport.shown[0]") is False
    tab.evaluate("eigenscapeReport.read(5)")
    assert "row" in tab.inner_text("#readout")
    check(axe, tab)


def test_browser__prints(visit, path, tmp_path):
    tab = visit(path)
    pdf = tab.pdf(path=str(tmp_path / "report.pdf"), format="A4")
    assert pdf.startswith(b"%PDF")
    # All sections, none cut off: a few pages, not one and not dozens.
    assert 3 <= pdf.count(b"/Type /Page\n") <= 12
