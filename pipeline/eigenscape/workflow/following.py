"""A run that another process works on, followed through the log of its directory."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from eigenscape.base.memory import parse_bytes
from eigenscape.store.manifest import read_manifest

_RESIDUAL = re.compile(r"pass (\d+): .*largest residual ([\d.e+-]+) \(tolerance ([\d.e+-]+)\)")

_MOST_NOTES = 4


@dataclass
class StageState:
    """How far a stage is.

    Attributes
    ----------
    name, state
        "to do", "running", "finished" or "reused".
    text
        Time and peak of a stage that has ended.
    projected
        Projected peak of memory in bytes; None if it is unknown.
    """

    name: str
    state: str = "to do"
    text: str = ""
    projected: int | None = None


@dataclass
class Step:
    """The progress of the current step.

    Attributes
    ----------
    label, done, total
        Text of the progress bar, number of finished blocks, and number of all blocks.
    before
        Number of blocks that an earlier attempt had finished.
    began, told
        Time of the beginning and of the last entry, in seconds since 1970.
    """

    label: str
    done: int
    total: int
    before: int
    began: float
    told: float

    def left(self, now: float) -> float | None:
        """Return the seconds that it will still take, as fast as so far; None before its first block."""
        fresh = self.done - self.before
        if fresh <= 0:
            return None
        pace = (self.told - self.began) / fresh
        return max(0.0, pace * (self.total - self.done) - max(0.0, now - self.told))

    def tell(self, done: int, when: float) -> None:
        """Take an entry about the progress; a clock that was set back in between stood still."""
        self.began -= max(0.0, self.told - when)
        self.done, self.told = done, when


@dataclass
class Followed:
    """What the log of a run says so far.

    Attributes
    ----------
    path
        Run directory.
    stages, step
        All stages in their order; the step at work, None between two.
    residuals
        Pass, largest residual and tolerance of the passes of the eigensolver.
    notes
        The last ones.
    around
        Memory of the driver in bytes, tasks at a time, workers, dashboard, as far as they are known.
    limit
        ``limits.memory`` in bytes, None where the job cannot be read.
    """

    path: Path
    stages: dict[str, StageState] = field(default_factory=dict)
    step: Step | None = None
    residuals: list[tuple[int, float, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    around: dict[str, Any] = field(default_factory=dict)
    limit: int | None = None
    _offset: int = 0

    @property
    def done(self) -> bool:
        """Whether all stages are finished."""
        return bool(self.stages) and all(
            stage.state in ("finished", "reused") for stage in self.stages.values()
        )

    def refresh(self) -> list[dict[str, Any]]:
        """Read what has been added to the log; return the new entries."""
        if not self.stages:
            self._describe()
        entries = list(self._entries())
        for entry in entries:
            self._take(entry)
        return entries

    def _describe(self) -> None:
        manifest = read_manifest(self.path)
        projected = manifest.get("projected", {})
        for name in manifest.get("order", []):
            self.stages[name] = StageState(name, projected=projected.get(name))
        for name in manifest["stages"]:
            if name in self.stages:
                self.stages[name].state = "finished"
        file = self.path / "job.toml"
        if file.exists():
            limits = tomllib.loads(file.read_text(encoding="utf-8")).get("limits", {})
            self.limit = parse_bytes(limits["memory"]) if "memory" in limits else None

    def _entries(self) -> Iterator[dict[str, Any]]:
        file = self.path / "log.jsonl"
        if not file.exists():
            return
        with file.open("rb") as stream:
            stream.seek(self._offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    return  # being written
                self._offset += len(line)
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # a killed process had begun it
                if isinstance(entry, dict) and "event" in entry:
                    yield entry

    def _take(self, entry: dict[str, Any]) -> None:
        when = datetime.strptime(entry["time"], "%Y-%m-%dT%H:%M:%S%z").timestamp()
        event = entry["event"]
        if event == "stage":
            self.step = None
            self._take_stage(entry["stage"], entry["text"])
        elif event == "step":
            done = entry["finished_before"]
            self.step = Step(entry["step"], done, entry["blocks"], done, when, when)
        elif event == "progress":
            if self.step is not None and self.step.label == entry["step"]:
                self.step.tell(entry["done"], when)
            known = ("memory", "tasks", "workers", "dashboard")
            self.around |= {key: entry[key] for key in known if key in entry}
        elif event == "note":
            self._take_note(entry["text"])

    def _take_stage(self, name: str, text: str) -> None:
        if name == next(iter(self.stages), name):
            # An attempt begins: what the log says of earlier ones does not hold for it.
            for other in self.stages.values():
                other.state, other.text = "to do", ""
            self.residuals = []
        stage = self.stages.setdefault(name, StageState(name))
        if text == "running":
            stage.state, stage.text = "running", ""
        elif text == "reused":
            stage.state = "reused"
        else:
            stage.state, stage.text = "finished", text

    def _take_note(self, text: str) -> None:
        self.notes = [*self.notes, text][-_MOST_NOTES:]
        if found := _RESIDUAL.search(text):
            number, residual, tolerance = found.groups()
            if int(number) == 1:
                self.residuals = []
            self.residuals.append((int(number), float(residual), float(tolerance)))


def left_of(seconds: float | None) -> str:
    """Return a time that is left, in words.

    Examples
    --------
    >>> left_of(7.2), left_of(200), left_of(None)
    ('8 s left', '3 min 20 s left', '')
    """
    if seconds is None:
        return ""
    whole = int(-(-seconds // 1))
    if whole < 60:
        return f"{whole} s left"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s left"
    return f"{whole // 3600} h {whole % 3600 // 60} min left"
