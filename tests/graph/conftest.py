from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs import Graph, Lists, brute_lists, build_graph, radius_lists


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Graph]:
    """Build the graph of the k nearest, of a radius, or of given lists."""

    def run(
        features: Any,
        k: int = 12,
        *,
        radius: float | None = None,
        lists: Lists | None = None,
        name: str = "run",
        **options: Any,
    ) -> Graph:
        if lists is None:
            features = np.asarray(features, np.float32)
            lists = brute_lists(features, k) if radius is None else radius_lists(features, radius)
        return build_graph(tmp_path / name, features, lists, **options)

    return run
