"""How far a study is: which variant of how many, and how long the others will take."""

from collections.abc import Mapping, Sequence
from typing import Any

from eigenscape.base.process.progress import Relay, Reporter
from eigenscape.base.shares import counted


class StudyProgress(Relay):
    """Forwards the progress of a variant with its number; reused stages are not reported.

    The notes of a reused stage are passed on if none of the variants had them.

    The time left is what the stages that are still missing took so far, counted once where variants
    share them. It is not said while one of them has never run.

    Parameters
    ----------
    reporter
        Receives all reports.
    total
        Number of variants.
    finished
        Stage keys of those that are finished already.
    """

    def __init__(
        self, reporter: Reporter, total: int, finished: Sequence[Mapping[str, str]]
    ) -> None:
        super().__init__(reporter)
        self._total, self._number = total, len(finished)
        self._there = {key for keys in finished for key in keys.values()}
        self._seconds: dict[str, list[float]] = {}
        self._overhead: list[float] = []
        self._noted: set[str] = set()
        self._is_reused = False
        if finished:
            reporter.stage("study", f"{len(finished)} of {counted(total, 'variant')} finished")

    def variant(self, title: str, left: Sequence[Mapping[str, str]]) -> None:
        """Report that a variant begins; `left` are the stage keys of it and of those to come."""
        self._number += 1
        seconds = self._estimate(left)
        estimate = "" if seconds is None else f", {seconds:.0f} s left"
        self._inner.stage("study", f"variant {self._number} of {self._total}{estimate}: {title}")

    def finished(
        self, stages: Sequence[Mapping[str, Any]], keys: Mapping[str, str], wall: float
    ) -> None:
        """Record the times of a finished variant, which took `wall` seconds."""
        computed = [stage for stage in stages if not stage["reused"]]
        for stage in computed:
            self._seconds.setdefault(stage["name"], []).append(stage["seconds"])
        self._overhead.append(wall - sum(stage["seconds"] for stage in computed))
        self._there.update(keys.values())

    def finish(self, text: str) -> None:
        """Report that the study is finished."""
        self._inner.stage("study", text)

    def _estimate(self, left: Sequence[Mapping[str, str]]) -> float | None:
        missing = {
            key: name for keys in left for name, key in keys.items() if key not in self._there
        }
        missing = {key: name for key, name in missing.items() if name != "samples"}
        if not self._overhead or not set(missing.values()) <= set(self._seconds):
            return None
        means = {name: sum(values) / len(values) for name, values in self._seconds.items()}
        overhead = len(left) * sum(self._overhead) / len(self._overhead)
        return sum(means[name] for name in missing.values()) + overhead

    def stage(self, name: str, text: str) -> None:
        """See `Reporter`."""
        self._is_reused = text == "reused"
        if text not in ("reused", "running"):
            self._inner.stage(name, text)

    def note(self, text: str) -> None:
        """See `Reporter`."""
        if not self._is_reused or text not in self._noted:
            self._inner.note(text)
        self._noted.add(text)
