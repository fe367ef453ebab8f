"""The documentation site: its references are complete, no link is dead, and all can use its pages.

Building runs every cell of its pages: tutorial, how-tos and notebooks work as they are written. The tests
that are not exhaustive build it without the cells.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import eigenscape
from eigenscape.job.files.schema import job_schema
from forks import write_program

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "pipeline" / "docs"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
COMMAND = """\
import sys
from eigenscape.cli.app import main
sys.argv[0] = "eigenscape"
main()
"""
"""The program that an installation writes."""

MAIN_PAGES = (
    "index", "installation", "tutorial", "howto/index", "howto/guide", "howto/scanpy",
    "explanation/eigenmaps", "explanation/chebyshev", "notebooks/shapes", "reference/keys", "reference/api",
    "reference/api/eigenscape.run", "performance/index", "troubleshooting",
)  # fmt: skip


@pytest.fixture(scope="module")
def pages():
    """Return the module that makes pages of the code."""
    pytest.importorskip("docutils", reason="the extra docs is not installed")
    spec = importlib.util.spec_from_file_location("docs_pages", DOCS / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_api__lacks_no_public_name():
    text = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(set(eigenscape.__all__) - {"__version__"})
    assert "`eigenscape.__version__`" in text


def keys_of(schema, node, table):
    """Yield the keys of a table of the JSON Schema, of all its methods and of the tables within it."""
    node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    for each in node.get("anyOf", []):
        yield from keys_of(schema, each, table)
    for name, value in node.get("properties", {}).items():
        inner = [value, *value.get("anyOf", [])]
        kinds = [kind.get("items", kind) for kind in inner]
        if any("$ref" in kind for kind in kinds):
            yield from keys_of(schema, {"anyOf": kinds}, f"{table}{name}.")
        else:
            yield f"{table}{name}"


def test_keys__lack_none_of_the_schema(pages):
    schema = json.loads(job_schema())
    wanted = set(keys_of(schema, {"properties": schema["properties"]}, ""))
    text = pages.keys()
    shown = set(re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE))
    assert len(wanted) > 120
    assert shown == wanted
    # Each is explained, with its type.
    assert not re.findall(r"^\| `[\w.]+` \| *\|.*$|^\| `.*\| *\|$", text, re.MULTILINE)


def test_commands_and_kinds_of_cluster__lack_none(pages, cli):
    text, kinds = pages.commands(), pages.cluster_keys()
    names = re.findall(r"^[│|] (\w+) |^  (\w+) {2,}\S", cli("--help").stdout, re.MULTILINE)
    found = {a or b for a, b in names}
    assert {"run", "doctor", "schema"} <= found
    for name in found:
        assert f"## eigenscape {name}" in text, name
    for file in (ROOT / "cluster").glob("*.toml"):
        assert f'## kind = "{file.stem}"' in kinds


def test_texts__are_shown_whole_and_once(pages):
    """Each text of the repository that users read is a page, and none is a copy."""
    shown = {path.relative_to(ROOT).as_posix() for path in pages.texts()}
    texts = {path.relative_to(ROOT).as_posix() for name in ("jobs", "cluster", "pipeline")
             for path in (ROOT / name).glob("*.md")}  # fmt: skip
    assert shown >= texts | {"CHANGELOG.md", "CONTRIBUTING.md"}


TEXTS = ["nb_execution_mode=off", "suppress_warnings=myst-nb.lexer"]
"""Settings that leave the cells out: a kernel would say what language they are in."""

BUILT = [
    pytest.param(TEXTS, id="texts"),
    pytest.param([], id="cells", marks=pytest.mark.exhaustive),
]
"""With what settings the site is built."""


@pytest.fixture(scope="module")
def site(tmp_path_factory, request):
    """Build the site; a warning is an error, and so is a cell that fails."""
    pytest.importorskip("myst_nb", reason="the extra docs is not installed")
    target, programs = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("programs")
    # Commands and kernels of the cells, which would load for 2 to 4 processor seconds each.
    write_program(programs / "eigenscape", "-c", COMMAND)
    kernel = programs / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    launch = write_program(programs / "kernel", "-m", "ipykernel_launcher", "-f")
    kernel.write_text(json.dumps({
        "argv": [str(launch), "{connection_file}"], "display_name": "Python 3", "language": "python",
        "metadata": {"debugger": True},
    }))  # fmt: skip
    around = {
        **os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "JUPYTER_PATH": str(programs),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d",
         target / "doctrees", *(f"-D{setting}" for setting in request.param), DOCS, target / "html"],
        capture_output=True, text=True, check=False, env=around,
    )  # fmt: skip
    wrong = [line for line in done.stderr.splitlines() if "IPKernelApp" not in line]
    assert done.returncode == 0, "\n".join(wrong[-40:])
    return target / "html"


class Links(HTMLParser):
    """What a page links to, and where others may link to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places, self.silent = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places |= {given.get("id"), given.get("name")}
        self.links += [given[key] for key in ("href", "src") if given.get(key)]
        if tag == "img" and not given.get("alt"):
            self.silent.append(given.get("src"))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("site", BUILT, indirect=True)
def test_site__has_no_dead_link_and_no_picture_without_words(site):
    # The theme leaves a template among its files.
    pages = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    found = {page: Links(page.read_text(encoding="utf-8")) for page in pages}
    assert len(found) > 60
    dead, silent = [], []
    for page, links in found.items():
        silent += [(page.name, source) for source in links.silent]
        for link in links.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            if not target.exists() or (
                place and target in found and place not in found[target].places
            ):
                dead.append((str(page.relative_to(site)), link))
    assert not dead
    assert not silent


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("site", BUILT, indirect=True)
def test_site__axe_finds_nothing_serious(site, scheme):
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    serious, asked = [], []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name in MAIN_PAGES:
            tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
            tab.on("request", lambda request: asked.append(request.url))
            tab.goto((site / f"{name}.html").as_uri())
            for violation in axe.run(tab).response["violations"]:
                if violation["impact"] in ("serious", "critical"):
                    place = violation["nodes"][0]["target"]
                    serious.append((name, violation["id"], len(violation["nodes"]), place))
            tab.close()
        browser.close()
    assert not serious
    # The pages need nothing from elsewhere.
    assert not [url for url in asked if not url.startswith(("file:", "data:"))]
