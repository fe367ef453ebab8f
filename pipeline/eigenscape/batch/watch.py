"""Scenes that arrive while a batch waits for them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import sleep, time

from eigenscape.batch.outcomes import SceneOutcome
from eigenscape.scenes.files.paths import scene_paths
from eigenscape.scenes.registry import is_registered

_ARRIVING = "its file changed since the last look: it is run once the file stops changing"


class Arrivals:
    """Which scenes are there whole, from one look to the next.

    Parameters
    ----------
    every
        Seconds between two looks; None if there is only one, which takes everything.
    """

    def __init__(self, every: float | None) -> None:
        self._every = every
        self._seen: dict[str, str] = {}
        self._known: dict[Path, SceneOutcome] = {}

    def plan(self, outcomes: Sequence[SceneOutcome]) -> list[SceneOutcome]:
        """Return the scenes with what earlier looks know of them.

        A scene that an earlier look saw fail is not tried again before it changes. One whose files
        are still being written, by their size and time, waits with a reason.
        """
        return [self._plan(outcome) for outcome in outcomes]

    def know(self, outcomes: Sequence[SceneOutcome]) -> None:
        """Remember what became of the scenes."""
        self._seen = {o.scene.name: o.keys["samples"] for o in outcomes if o.keys}
        self._known = {o.path: o for o in outcomes if o.path and o.state in ("done", "failed")}

    def wait(self) -> bool:
        """Wait for the next look; return False if the user ends the watch instead."""
        assert self._every is not None, "watching"
        try:
            sleep(self._every)
        except KeyboardInterrupt:
            return False
        return True

    def _plan(self, outcome: SceneOutcome) -> SceneOutcome:
        known = None if outcome.path is None else self._known.get(outcome.path)
        if known is not None and (known.state == "failed") == (outcome.state == "to do"):
            return known
        if outcome.state == "to do" and self._every is not None and not self._is_settled(outcome):
            return replace(outcome, reason=_ARRIVING)
        return outcome

    def _is_settled(self, outcome: SceneOutcome) -> bool:
        # The key of the samples holds size, time of change, first and last bytes of every file.
        if self._seen.get(outcome.scene.name) == outcome.keys["samples"]:
            return True
        assert self._every is not None, "watching"
        return time() - _newest(outcome) >= self._every


def _newest(outcome: SceneOutcome) -> float:
    """Return when the files of a scene were last changed."""
    job = outcome.scene.job
    assert job is not None, "it has keys"
    paths = scene_paths(job.scene, job.resolve)
    times = [0.0]
    for path in (Path(job.resolve(path)) for path in paths if not is_registered(path)):
        for part in [path, *path.glob("**/*")]:
            with suppress(OSError):  # it may be gone again
                times.append(part.stat().st_mtime)
    return max(times)
