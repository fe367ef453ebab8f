"""Examples in docstrings run, and give what they say."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import eigenscape
from eigenscape.datasets.made.synthetic import synthesize

ROOT = Path(eigenscape.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
)

LONG = {
    "eigenscape.applied.run", "eigenscape.store.verification", "eigenscape.tuning.outcomes",
    "eigenscape.tuning.run", "eigenscape.workflow.objects",
}  # fmt: skip
"""Modules whose examples take seconds."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Return a directory with the scene of the examples, as a user has one who tries them all there."""
    folder = tmp_path_factory.mktemp("scene")
    synthesize(folder / "scene.tif", height=40, width=40, bands=8, classes=3, seed=0)
    return folder


def public_names(*modules):
    """Return the full names of what the modules offer, where it is defined."""
    offered = (getattr(module, name) for module in modules for name in module.__all__)
    return {f"{one.__module__}.{one.__qualname__}" for one in offered if hasattr(one, "__module__")}


@pytest.mark.parametrize(
    "module",
    [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in MODULES],
)
def test_examples(module, scene, monkeypatch):
    monkeypatch.chdir(scene)
    public = public_names(eigenscape, eigenscape.estimators)
    assert len(public) > 30
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    found = importlib.import_module(module.removesuffix(".__init__"))
    for test in doctest.DocTestFinder().find(found):
        if any(test.name == name or test.name.startswith(f"{name}.") for name in public):
            # Users paste these into an interpreter of their own, which has imported nothing.
            test.globs = {"__name__": "__main__"}
        runner.run(test)
    assert runner.summarize().attempted > 0
    assert runner.failures == 0
