"""The result of a run: reports of its stages, output files, and maps as lazy arrays."""

import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eigenscape.base import html
from eigenscape.base.memory import format_bytes
from eigenscape.base.shares import counted
from eigenscape.errors import InputError

if TYPE_CHECKING:
    import scipy.sparse
    import xarray
    from matplotlib.figure import Figure

RESULT_SCHEMA = 1
"""Version of the format of `Result.to_json`; it rises when a key changes its meaning or is removed."""

_SHOWN_FIGURES = 4
"""Digits of a share in a table: 0.9868."""


class NeighborReport(dict[str, Any]):
    """The report of the neighbour search: method, recall with its interval, intrinsic dimension.

    Parameters
    ----------
    summary
        Entries by name.
    path
        The run directory with the lists.
    """

    def __init__(self, summary: Mapping[str, Any], path: Path) -> None:
        super().__init__(summary)
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), self.path)

    def to_csr(self) -> "scipy.sparse.csr_array":
        """Return the neighbour lists as a sparse matrix of distances, as scikit-learn takes them.

        Returns
        -------
        scipy.sparse.csr_array, shape (samples, samples), float32
            Each row holds the neighbours of a sample, nearest first, without the sample itself. Distances of
            0 are stored explicitly. The matrix is in memory and takes 8 bytes per entry.

        Raises
        ------
        InputError
            The run has no lists, because it was made by `eigenscape.apply`.

        Examples
        --------
        >>> import eigenscape
        >>> scene = {"path": "scene.tif", "labels": "scene_labels.tif"}
        >>> job = eigenscape.parse_job({"scene": scene, "neighbors": {"k": 5}})
        >>> eigenscape.run(job).neighbors.to_csr().shape
        (1600, 1600)
        """
        from eigenscape.workflow.finished.lists import read_lists

        return read_lists(self.path)


@dataclass(frozen=True, repr=False)
class Result:
    """The result of a run; it can be used as the path of its run directory.

    Attributes
    ----------
    path
        The run directory.
    stages
        Name, seconds, reused, peak bytes of each stage.
    scores, neighbors, spectrum
        Reports of learn, neighbors and spectrum; ``neighbors.to_csr()`` returns the lists.
    outputs
        Absolute paths of the files, by their kind.
    converged
        Whether the eigensolver reached its tolerance.
    warnings
        Sentences about results of other stages that are less exact than they should be.
    applied
        For a run of `eigenscape.apply`: the way of classification (``how``), number of samples and warnings.
    class_map, confidence, eigenvectors
        Maps as lazy `xarray.DataArray`, with coordinates and the coordinate system: ``.rio.crs`` after
        ``import rioxarray``, an optional package (``pip install rioxarray``).

    Examples
    --------
    >>> import eigenscape
    >>> job = eigenscape.parse_job({"scene": {"path": "scene.tif", "labels": "scene_labels.tif"}})
    >>> result = eigenscape.run(job)
    >>> result.class_map.shape, result.class_map.dims
    ((40, 40), ('y', 'x'))
    """

    path: Path
    stages: tuple[dict[str, Any], ...]
    scores: Mapping[str, Any] = field(default_factory=dict)
    neighbors: NeighborReport = field(default_factory=lambda: NeighborReport({}, Path()))
    spectrum: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    converged: bool = True
    warnings: tuple[str, ...] = ()
    applied: Mapping[str, Any] = field(default_factory=dict)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Result({self.path.name!r}, {self._figure()}, {str(self.path)!r})"

    def _figure(self) -> str:
        """Return the accuracy in a few words, or what there is instead."""
        scores = self.scores
        if "clusters" in scores:
            return f"{scores['clusters']} clusters"
        if scores.get("overall_accuracy") is not None:
            return (
                f"overall accuracy {100 * scores['overall_accuracy']:.1f} %: {scores['protocol']}"
            )
        return scores.get("protocol") or "accuracy not measured"

    def to_json(self) -> dict[str, Any]:
        """Return the result as the one JSON object that ``--json`` prints (``result.schema.json``)."""
        return {
            "schema": RESULT_SCHEMA,
            "run": str(self.path),
            "converged": self.converged,
            "warnings": list(self.warnings),
            "stages": list(self.stages),
            "scores": dict(self.scores),
            "neighbors": dict(self.neighbors),
            "spectrum": dict(self.spectrum),
            "outputs": dict(self.outputs),
            **({"applied": dict(self.applied)} if self.applied else {}),
        }

    @property
    def class_map(self) -> "xarray.DataArray":
        """Return the class of every pixel (y, x), 0 for none, names in ``attrs``; for a table (sample,)."""
        return self._map("class", "classes")

    @property
    def confidence(self) -> "xarray.DataArray":
        """Return the probability of the mapped class (y, x), NaN without a class; for a table (sample,)."""
        return self._map("confidence", "confidence")

    @property
    def eigenvectors(self) -> "xarray.DataArray":
        """Return the non-constant eigenvectors (mode, y, x), or (sample, mode) for a table."""
        return self._map("eigenvector", "eigenvectors")

    def plot(self) -> "Figure":
        """Return the quick-look (scene, labels and class map) as a figure; for a table, a scatter plot.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it; ``.savefig("map.png")`` writes it.

        Raises
        ------
        InputError
            The run is not finished, or it has neither classes nor eigenvectors.
        """
        from eigenscape.workflow.finished.picture import draw

        return draw(self.path)

    def report(self, *, show: bool = False) -> Path:
        """Return the path of the report; write the report if it does not exist.

        Parameters
        ----------
        show
            Also open the report in the browser.

        Returns
        -------
        Path
            ``outputs/report.html`` of the run.
        """
        from eigenscape.workflow.finished.reports import report

        there = self.outputs.get("report")
        path = Path(there) if there and Path(there).exists() else report(self.path)
        if show:
            webbrowser.open(path.as_uri())
        return path

    def _map(self, name: str, what: str) -> "xarray.DataArray":
        from eigenscape.workflow.finished.xarrays import open_arrays

        arrays = open_arrays(self.path)
        if name not in arrays:
            raise InputError(f"{self.path}: the run has no {what}: its method computes none.")
        return arrays[name]

    def _repr_html_(self) -> str:
        scores = {
            name.replace("_", " "): _rounded(value)
            for name, value in self.scores.items()
            if isinstance(value, int | float | str) and not isinstance(value, bool)
        }
        about = {
            "directory": html.link(self.path, str(self.path)),
            "recall of neighbours": _rounded(self.neighbors.get("recall", "")),
            "eigenvectors": self.spectrum.get("modes", ""),
            "converged": "" if self.converged else "no: the results are kept",
            "warnings": " ".join(self.warnings),
            **{name: _rounded(value) for name, value in self.applied.items()},
        }
        rows = [
            (
                one["name"], "reused" if one["reused"] else f"{one['seconds']:.1f} s",
                format_bytes(one["peak_bytes"]),
            )
            for one in self.stages
        ]  # fmt: skip
        seconds = sum(one["seconds"] for one in self.stages if not one["reused"])
        files = [(name, html.link(file, Path(file).name)) for name, file in self.outputs.items()]
        return html.card(
            "Result", self.path.name, html.facts({**scores, **about}),
            html.folded(
                f"{counted(len(rows), 'stage')}, {seconds:.1f} s", html.table(("stage", "time", "peak"), rows)
            ),
            html.folded(counted(len(files), "file"), html.table((), files)),
        )  # fmt: skip


def _rounded(value: Any) -> Any:
    return f"{value:.{_SHOWN_FIGURES}g}" if isinstance(value, float) else value


def result_schema() -> str:
    """Return the JSON Schema of what ``run --json`` prints of a job."""
    return Path(__file__).with_name("result.schema.json").read_text(encoding="utf-8").rstrip()
