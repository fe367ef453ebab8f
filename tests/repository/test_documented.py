"""What the documentation names is there, and what is there is explained."""

import ast
import inspect
import operator
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import eigenscape
from eigenscape.estimators import base, documents
from eigenscape.job.options import REGISTRIES

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *(
        page
        for name in ("jobs", "pipeline", "cluster")
        for page in sorted((ROOT / name).glob("*.md"))
    ),
    *sorted(page for page in (ROOT / "pipeline" / "docs").rglob("*.md") if "api" not in page.parts),
]
NAMED = sorted(
    {
        name
        for page in PAGES
        for name in re.findall(
            # A group of entry points is no module.
            r"(?<!entry-points\.\")\beigenscape(?:\.[A-Za-z_]\w*)+",
            page.read_text(encoding="utf-8"),
        )
    }
)
ESTIMATORS = [
    value for name in eigenscape.__all__
    if inspect.isclass(value := getattr(eigenscape, name)) and issubclass(value, base.GraphEstimator)
]  # fmt: skip
FUNCTIONS = [
    value for name in eigenscape.__all__
    if inspect.isfunction(value := getattr(eigenscape, name))
]  # fmt: skip


@pytest.mark.slow
def test_names__all_there_after_a_bare_import():
    assert len(NAMED) > 8
    lines = [
        "import eigenscape",
        *NAMED,
        "dir(eigenscape.datasets)",
        "eigenscape.errors.InputError",
    ]
    for name in ("eigenscape.datasets.swiss_roll", "eigenscape.classify_new"):
        lines.append(f"assert callable({name})")
    lines.append("assert eigenscape.theory.lle.__name__ == 'eigenscape.theory.lle'")
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, timeout=120)


def test_pages__name_files_that_exist():
    named = {
        (page.name, path)
        for page in PAGES
        for path in re.findall(
            r"\b(?:tests|pipeline|cluster)/[\w/]+\.py\b", page.read_text(encoding="utf-8")
        )
    }
    assert len(named) > 20
    assert not [(page, path) for page, path in named if not (ROOT / path).exists()]


def anchors(page):
    """The headings of a page, as links name them; those of the text that a page of the site shows."""
    text = page.read_text(encoding="utf-8")
    if shown := re.fullmatch(r"```\{include\} (\S+)\n```\n", text):
        text = (page.parent / shown[1]).read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_pages__links_lead_to_files_and_headings():
    wrong, seen = [], 0
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if re.match(r"\w+:", link):
                continue
            file, _, anchor = link.partition("#")
            target, seen = (page.parent / file if file else page), seen + 1
            # What is made of the code has headings when the site is built, which checks these.
            if anchor and target.exists() and "```{made}" in target.read_text(encoding="utf-8"):
                continue
            if not target.exists() or (anchor and anchor not in anchors(target)):
                wrong.append((page.name, link))
    assert seen > 50
    assert not wrong


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=lambda registry: registry.table)
def test_methods__and_their_keys_are_in_the_readme_of_jobs(registry):
    text = (ROOT / "jobs" / "README.md").read_text(encoding="utf-8")
    compared = (ROOT / "jobs" / "MEASUREMENTS.md").read_text(encoding="utf-8")
    for name in registry.names():
        assert f'`"{name}"`' in text or f"| `{name}`" in compared, name
        for key in set(registry.find(name).model_fields) - {"method"}:
            assert re.search(rf"`{registry.table}\.{key}[`.]", text), f"{registry.table}.{key}"


def test_measurements__every_command_can_be_given(tmp_path):
    """Scripts are there, and jobs take the keys that they are given, in every turn of a loop."""
    text = (ROOT / "jobs" / "MEASUREMENTS.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    \$ (.+)$", text, re.MULTILINE)
    # What the shell would start, word by word.
    said = "".join(
        f'{name}() {{ printf "%s\\x1f" {name} "$@"; echo; }}\n'
        for name in ("eigenscape", "python", "pytest")
    )
    done = subprocess.run(
        ["bash", "-eu", "-c", said + "\n".join(commands)], cwd=ROOT, capture_output=True, text=True,
        check=True, env={**os.environ, "DATA": str(tmp_path)},
    )  # fmt: skip
    calls = [line.split("\x1f")[:-1] for line in done.stdout.splitlines()]
    assert len(calls) > 60
    for call in calls:
        assert (ROOT / call[2 if call[1] == "-q" or call[1] == "run" else 1]).exists(), call
        if call[0] == "eigenscape":
            given = [word for before, word in pairwise(call) if before == "--set"]
            eigenscape.load_job(ROOT / call[2], given)


def test_dir__lists_what_is_public():
    code = "import eigenscape; print(*dir(eigenscape)); print(*dir(eigenscape.theory))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    package, theory = (set(line.split()) for line in done.stdout.splitlines())
    assert package >= {*eigenscape.__all__, "datasets", "errors", "estimators", "learn", "theory"}
    assert theory >= {"lle", "operators", "spectra"}


@pytest.mark.parametrize("name", ["nothing", "_nothing", "datasets.nothing", "theory.nothing"])
def test_names__that_are_not_there(name):
    place, _, last = f"eigenscape.{name}".rpartition(".")
    with pytest.raises(AttributeError, match=f"module '{place}' has no attribute '{last}'"):
        operator.attrgetter(name)(eigenscape)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_estimators__explain_every_parameter(estimator):
    text = inspect.getdoc(estimator)
    for name, parameter in inspect.signature(estimator).parameters.items():
        entry = rf"^{name} : default={re.escape(repr(parameter.default))}\n    \S.{{8,}}"
        assert len(re.findall(entry, text, re.MULTILINE)) == 1, name
    assert (
        text.index("Parameters\n---") < text.index("Attributes\n---") < text.index("Examples\n---")
    )
    for method in ("fit", "transform", "predict", "predict_proba", "score", "fit_predict"):
        if hasattr(estimator, method):
            assert inspect.getdoc(getattr(estimator, method))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_functions__explain_every_parameter(function):
    text = inspect.getdoc(function)
    for name in inspect.signature(function).parameters:
        assert re.search(rf"^(\w+, )*{name}\b(, \w+)*( :.*)?$", text, re.MULTILINE), name


def sections(text):
    """Return the sections of a numpydoc docstring by their head."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.cleandoc(text or ""), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(section):
    """Return the names that a section explains, in their order."""
    heads = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return [name.strip() for head in heads for name in head.partition(" :")[0].split(",")]


def described(function):
    """Return the parameters of a parsed function that a reader gives; those that begin with _ are unused."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    # Numba hands an intrinsic its context of types.
    own = {"self", "cls"} | (
        {"typing"} if "intrinsic" in map(ast.unparse, function.decorator_list) else set()
    )
    names = [one.arg for one in named if one is not None]
    return {name for name in names if name not in own and not name.startswith("_")}


def test_docstrings__sections_of_parameters_name_all_of_them():
    wrong, seen = [], 0
    package = Path(eigenscape.__file__).parent
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            told = sections(ast.get_docstring(node))
            if "Parameters" in told:
                seen += 1
                if {name.lstrip("*") for name in entries(told["Parameters"])} != described(node):
                    wrong.append(f"{path.relative_to(package)}:{node.lineno} {node.name}")
    assert seen > 400
    assert not wrong


def parameters(value):
    return [name for name in inspect.signature(value).parameters if name != "self"]


@pytest.mark.parametrize("name", [name for name in eigenscape.__all__ if name != "__version__"])
def test_help__is_complete(name):
    """Each parameter once and in its order; what comes back, what goes wrong, an example."""
    value = getattr(eigenscape, name)
    told = sections(value.__doc__)
    assert value.__doc__.strip().splitlines()[0].endswith(".")
    assert ">>> " in told["Examples"]
    if inspect.isfunction(value):
        assert entries(told["Parameters"]) == parameters(value)
        assert told["Returns"].strip()
        assert told["Raises"].strip()
        return
    # Fields of data classes are attributes.
    explained = entries(told.get("Parameters", "") + "\n" + told.get("Attributes", ""))
    assert {*parameters(value)} <= {*explained}
    for method, function in inspect.getmembers(value, inspect.isfunction):
        if method.startswith("_") or not function.__module__.startswith("eigenscape"):
            continue
        own = sections(function.__doc__)
        assert entries(own.get("Parameters", "")) == parameters(function), method
        returns = "Returns" in own or function.__doc__.startswith("Return")
        assert returns or inspect.signature(function).return_annotation is None, method


def test_help__names_what_the_guides_name():
    """Names that a guide uses as ``eigenscape.NAME`` are public, or modules."""
    named = {name.split(".")[1] for name in NAMED}
    modules = {path.stem for path in Path(eigenscape.__file__).parent.iterdir()}
    assert named <= {*eigenscape.__all__, *modules}


def test_explain_parameters__own_words_first_and_none_left_out():
    class Base:
        """Base.

        Parameters
        ----------
        one
            First.
        two : int
            Second,
            in two lines.
        """

        def __init__(self, one=1, two=2):
            pass

    class Own(Base):
        """Own.

        More.

        Attributes
        ----------
        kept
            Third.
        """

    class Other(Base):
        """Other.

        Parameters
        ----------
        one
            Anew.

        Notes
        -----
        Last.
        """

        def __init__(self, two=2, *, one="1"):
            pass

    documents.explain_parameters(Own)
    assert Own.__doc__ == (
        "Own.\n\nMore.\n\nParameters\n----------\none : default=1\n    First.\ntwo : default=2\n"
        "    Second,\n    in two lines.\n\nAttributes\n----------\nkept\n    Third.\n"
    )
    documents.explain_parameters(Other)
    assert Other.__doc__ == (
        "Other.\n\nParameters\n----------\ntwo : default=2\n    Second,\n    in two lines.\n"
        "one : default='1'\n    Anew.\n\nNotes\n-----\nLast.\n"
    )

    class Silent(Base):
        """Silent."""

        def __init__(self, three=3):
            pass

    with pytest.raises(TypeError, match="Silent: the parameter three is explained nowhere"):
        documents.explain_parameters(Silent)
    Silent.__doc__ = None
    documents.explain_parameters(Silent)
    assert Silent.__doc__ is None
