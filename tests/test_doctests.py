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

LONG = {"eigenscape.applied.run", "eigenscape.tuning.outcomes", "eigenscape.workflow.objects"}
"""Modules whose examples take seconds."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Return a directory with the scene of the examples, as a user has one who tries them all there."""
    folder = tmp_path_factory.mktemp("scene")
    synthesize(folder / "scene.tif", height=40, width=40, bands=8, classes=3, seed=0)
    return folder


@pytest.mark.parametrize(
    "module",
    [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in MODULES],
)
def test_examples(module, scene, monkeypatch):
    monkeypatch.chdir(scene)
    result = doctest.testmod(
        importlib.import_module(module.removesuffix(".__init__")),
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert result.attempted > 0
    assert result.failed == 0
