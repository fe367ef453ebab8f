from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Serial
from eigenscape.context import Context
from eigenscape.store.rows import Rows
from harness import Harness
from lists import Found, check_found, cut_small, find_lists, put_features


@pytest.fixture
def find(tmp_path: Path) -> Callable[..., Found]:
    """Run the neighbors stage on given features and check what holds for all lists."""

    def run(features: Any, *, name: str = "run", **options: Any) -> Found:
        found = find_lists(tmp_path / name, features, **options)
        check_found(features, found, options.get("metric", "euclidean"))
        return found

    return run


@pytest.fixture
def surround(tmp_path: Path) -> Callable[..., tuple[Context, Rows]]:
    """Return what a neighbors stage would work with on given features."""

    def make(features: Any, *, unit: bool = False, **options: Any) -> tuple[Context, Rows]:
        harness = Harness(tmp_path / "surroundings", neighbors=options)
        put_features(harness, features)
        workspace = harness.run_directory.workspace("neighbors", "key")
        context = Context(harness.job, harness.run_directory, workspace, Serial(), Silent())
        return context, Rows(context.path("features/values"), unit=unit)

    return make


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let some thousand samples have several tasks in every step, on worker processes too."""
    cut_small(monkeypatch)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What stages say to whoever watches."""
    said: list[str] = []
    monkeypatch.setattr(Silent, "note", lambda _, text: said.append(text))
    return said
