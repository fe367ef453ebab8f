"""Does a lead in draws of squares hold on ground that no draw has, and how wide must its interval be?

    python tests/bench/quality/leads.py [--data ../shared/data] [--scenes pines enmap ...] [--shares 0.15 0.5]
                                        [--square 6] [--seeds 5 6]

Parts the labels of scenes by squares as `disjoint.py` does, and scores jobs as `eigenscape tune` does: by
ten draws of squares and by four random ones within the file to learn from, and by one fit to all of it on the
test file. For each pair of jobs the lead in the draws is compared with that on the test file. Prints a line
of JSON for each job, and one with

* ``covered``: share of the pairs whose difference on the test file lies within the 95 % interval of that in
  the draws, by draws alone and with what they share (`eigenscape.workflow.choice.tried.lead`),
* ``holds``: share of the leads that hold on the test file, by their size in half intervals of draws alone,
* ``ties``: the same of leads at random, in points, where squares leave the pair within noise.
"""

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from accuracy import NAMES, scenes
from disjoint import Bench

import eigenscape
from eigenscape.base.process.progress import Silent
from eigenscape.clusters import ClusterOptions, connect
from eigenscape.store.siblings import Siblings
from eigenscape.workflow.choice.accuracy import Accuracy
from eigenscape.workflow.choice.candidates import LADDER, WIDER, candidate
from eigenscape.workflow.choice.survey import survey
from eigenscape.workflow.choice.trials import Trials
from eigenscape.workflow.choice.tried import SHARED, Interval

PARTS = {
    "squares": Trials("choosing", "blocked", 0, 10),
    "random": Trials("choosing", "beside", 0, 4),
    "test": Trials("judging", "blocked", 0, 5),
}
MNF = {"features.method": "mnf", "features.dimension": 15}
EXTRA: tuple[dict[str, Any], ...] = (
    {**MNF, "graph.spatial.weight": 5.0, "learn.method": "tikhonov", "learn.gamma": 1e-3, "learn.power": 2},
    {**MNF, "features.spatial.method": "guided"},
    {**MNF, "features.spatial.method": "bilateral", "features.spatial.radius": 10},
    {"features.method": "none", "features.standardize": True},
    {"features.method": "pca", "features.dimension": 20, "features.spatial.method": "bilateral"},
)  # fmt: skip
"""Beside the jobs that a doubtful part is compared with: some that tuning tries."""

_SIZES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
_POINTS = (0.3, 1.0, 2.0, 4.0, 8.0)


def scored(job: eigenscape.Job, parent: Path) -> Iterator[dict[str, Any]]:
    """Yield the accuracies of each job that fits a scene, by part."""
    scene, on = survey(job), ClusterOptions()
    options = [one.keys for one in WIDER.rungs[0].options if one.fits(job, scene)]
    options += [{**LADDER.start, **keys} for keys in EXTRA]
    (parent / "variants").mkdir(parents=True)
    with connect(on, job.limits.threads, job.limits.memory_bytes, Silent().note) as executor:
        siblings = Siblings((parent / "variants").iterdir)
        scorer = Accuracy(parent, on, Silent(), executor, siblings)
        for keys in options:
            found = candidate(job, keys)
            yield {
                "job": found.title,
                **{
                    part: [
                        round(draw["overall_accuracy"], 5)
                        for draw in scorer.score(found.job, trials).summary["draws"]
                    ]
                    for part, trials in PARTS.items()
                },
            }


def summary(cases: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return what is said of all pairs of jobs of the same case; see the module."""
    covered: dict[str, list[bool]] = {"draws": [], "shared": []}
    leads: list[tuple[float, float]] = []
    ties: list[tuple[float, float]] = []
    for case in cases:
        for one, other in itertools.combinations(case, 2):
            squares, random, test = (np.subtract(one[part], other[part]) for part in PARTS)
            actual = 100 * float(test.mean())
            alone, wide = (Interval.of(squares.tolist(), shared=both) for both in (0.0, SHARED))
            if not alone.half or not wide.half:
                continue
            covered["draws"].append(abs(actual - alone.mean) <= alone.half)
            covered["shared"].append(abs(actual - wide.mean) <= wide.half)
            leads.append((alone.mean / alone.half, actual))
            if not alone.beyond_noise:
                ties.append((100 * float(random.mean()), actual))
    return {
        "pairs": len(leads),
        "covered": {name: round(float(np.mean(found)), 3) for name, found in covered.items()},
        "holds": _holds(leads, _SIZES),
        "ties": _holds(ties, _POINTS),
    }


def _holds(pairs: list[tuple[float, float]], edges: tuple[float, ...]) -> list[dict[str, Any]]:
    """Return by the size of the lead how many there are, how many hold, and the mean on the test file."""
    lead, actual = np.array(pairs).T
    size, gain = np.abs(lead), np.sign(lead) * actual
    return [
        {
            "from": low, "pairs": int(here.sum()), "hold": round(float((gain[here] > 0).mean()), 2),
            "mean": round(float(gain[here].mean()), 2),
        }
        for low, high in itertools.pairwise((*edges, np.inf))
        if (here := (size >= low) & (size < high)).any()
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--scenes", nargs="*", choices=NAMES, default=["pines", "enmap", "urban"])
    parser.add_argument("--shares", nargs="*", type=float, default=[0.15, 0.5])
    parser.add_argument("--square", type=int, default=6)
    parser.add_argument("--seeds", nargs="*", type=int, default=[5, 6])
    options = parser.parse_args()
    cases = []
    with tempfile.TemporaryDirectory() as temporary:
        known = scenes(options.data.resolve(), Path(temporary))
        for seed, name, share in itertools.product(options.seeds, options.scenes, options.shares):
            folder = Path(temporary) / f"{name}-{share:g}-{seed}"
            folder.mkdir()
            own = argparse.Namespace(**vars(options), seed=seed)
            bench = Bench(name, known[name], share, folder, own)
            cases.append([])
            for line in scored(bench.job({}), folder / "tried"):
                cases[-1].append(line)
                print(json.dumps({"scene": name, "share": share, "seed": seed, **line}), flush=True)
    print(json.dumps(summary(cases)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
