"""A class map of every scene of a folder, by Prefect.

    python jobs/workflows/prefect_flow.py --job template.toml tiles/*.tif

Prefect and eigenscape need not be in one environment: the flow calls the command `eigenscape`.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.states import Failed

REFUSED, NOT_CONVERGED = 2, 3


class MapError(Exception):
    """A run that ended with another status than 0 and 3."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _may_be_repeated(_task: Any, _run: Any, state: Any) -> bool:
    """Repeat what was stopped or killed, not what cannot work."""
    try:
        state.result()
    except MapError as error:
        return error.status != REFUSED
    except Exception:
        return True
    return False


@task(
    retries=2,
    retry_delay_seconds=1,
    retry_condition_fn=_may_be_repeated,
    task_run_name="map-{scene.stem}",
)
def map_scene(scene: Path, job: Path, runs: Path, memory: str) -> dict[str, Any]:
    """Map a scene; the same run directory each time, so that a repetition goes on where it was."""
    done = subprocess.run(
        ["eigenscape", "run", job, "--set", f"scene.path={scene.resolve()}", "--run-dir", runs / scene.stem,
         "--set", f"limits.memory={memory}", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, NOT_CONVERGED):
        raise MapError(done.returncode, (done.stderr.splitlines() or ["no message"])[-1])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@flow(name="eigenscape")
def map_scenes(
    scenes: list[Path], job: Path, runs: Path = Path("runs"), memory: str = "2GiB"
) -> Any:
    """Map scenes one after the other; one bad scene never stops the others."""
    states = [map_scene(scene, job, runs, memory, return_state=True) for scene in scenes]
    for scene, state in zip(scenes, states, strict=True):
        if state.is_completed():
            print(f"{scene.stem}: {state.result()['outputs']['class_map']}")
        else:
            print(f"{scene.stem}: {state.message}")
    failed = sum(not state.is_completed() for state in states)
    return Failed(message=f"{failed} of {len(scenes)} scenes failed") if failed else len(scenes)


def main() -> None:
    """Run the flow from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scenes", nargs="+", type=Path)
    parser.add_argument("--job", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--memory", default="2GiB")
    given = parser.parse_args()
    state = map_scenes(given.scenes, given.job, given.runs, given.memory, return_state=True)
    sys.exit(0 if state.is_completed() else REFUSED)


if __name__ == "__main__":
    main()
