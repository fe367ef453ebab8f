"""What a report is made of: the stages of a run that are finished, and the legend of its map."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from eigenscape.base.files.cells import from_cell
from eigenscape.base.process.progress import Reporter
from eigenscape.context import Context
from eigenscape.export.arrays import Folders, RunDirectory
from eigenscape.scenes.types import Color, Grid


@dataclass(frozen=True)
class MapClass:
    """One class of the map.

    Attributes
    ----------
    number, name, color, pixels
        As in ``legend.csv``.
    """

    number: int
    name: str
    color: Color
    pixels: int

    @property
    def hex(self) -> str:
        """The colour as CSS has it."""
        return "#{:02x}{:02x}{:02x}".format(*self.color)


@dataclass(frozen=True)
class Source:
    """A run as its report reads it.

    Attributes
    ----------
    run
        The run directory.
    outputs
        Folder with the files of the export stage, which need not be committed yet.
    reporter
        Where progress is reported.
    workspace
        Where arrays are copied to, of which any sample is to be taken.
    """

    run: RunDirectory
    outputs: Path
    reporter: Reporter
    workspace: Folders

    @classmethod
    def of_context(cls, context: Context) -> "Source":
        """Return the source of a run whose export stage is at its end."""
        files = context.workspace.path / "files"
        return cls(context.run, files, context.reporter, context.workspace)

    def open(self, name: str) -> Any:
        """Open an array of the run."""
        return self.run.open(name)

    def has(self, name: str) -> bool:
        """Return whether the run has an array."""
        return self.run.has(name)

    def summary(self, stage: str) -> Mapping[str, Any]:
        """Return the summary of a stage, an empty one of a stage that the run does not have."""
        record = self.run.record(stage)
        return {} if record is None else record.summary

    @property
    def name(self) -> str:
        """Name of the job."""
        return str(self.run.manifest.get("name", self.run.path.name))

    @property
    def job_text(self) -> str:
        """The job file, with what was chosen at its head."""
        file = self.run.path / "job.toml"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    @cached_property
    def grid(self) -> Grid:
        """Grid of the maps: that of the scene, unless it is in sensor geometry."""
        summary = self.summary("ingest")
        return Grid.from_json(summary["map"]["grid"] if summary.get("map") else summary["grid"])

    @cached_property
    def classes(self) -> tuple[MapClass, ...]:
        """The classes of map and labels, or the clusters, as ``legend.csv`` has them."""
        path = self.outputs / "legend.csv"
        if not path.exists():
            return ()
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        return tuple(
            MapClass(
                int(row["value"]), from_cell(row["name"]),
                (int(row["red"]), int(row["green"]), int(row["blue"])), int(row["pixels"] or 0),
            )
            for row in rows
            if int(row["value"])
        )  # fmt: skip

    @property
    def scores(self) -> Mapping[str, Any]:
        """Scores of the classes or clusters, empty without any to compare with."""
        stage = "learn" if "learn" in self.run.manifest["stages"] else "extend"
        found: Mapping[str, Any] = self.summary(stage).get("scores", {})
        return found

    @property
    def reads(self) -> str:
        """What the classes or clusters follow from: "eigenvectors", "graph", "features", or "" if unknown."""
        if "clusters" in self.scores:
            return "eigenvectors"
        return str(self.summary("learn").get("reads", ""))

    @property
    def score_classes(self) -> list[int]:
        """Numbers of the classes in the order of the scores."""
        found: list[int] = self.scores.get("classes") or self.summary("learn").get("classes", [])
        return found
