"""Every value of every key of a job on scenes of several sizes: does it run, is it right, does it fit?

    python tests/bench/correctness/matrix.py [--size NAME]... [--only TEXT]... [--workers] [--directory DIR]
                                             [--without LINES]... [--on FILE] [--every N]

A cell is one key set to one value (with what that value needs), or one of the combinations below,
on one scene. The keys come from the option models: a key or a value without a cell is an error.
Each cell is planned first. A job that `plan` refuses is "refused"; one that it lets through runs, and
what it stored is compared with the slow and obvious where there is such a thing. One JSON object per
line: cell, size, where, verdict, problems, seconds, peak and projected peak of the stages that ran
(those that an earlier cell left behind are reused; but no key of a stage holds a limit, so cells of
limits start from nothing), and the limit. Cells of one and the same job run once. Each job is a
command of its own (a fork of a process that has loaded everything), so that its memory is its own;
with --quick all run in this process.

    equal     ran, and what it stored is that of the references
    refused   by `plan`, for the reason that was expected; or a radius, by a sample before the search; or
              shift-invert or too many components, by the graph before the spectrum
    wrong     ran, and is not that of the references; or no refusal where one was expected
    late      refused, but only after `plan` had let it through
    crashed   any other exception
"""

import argparse
import contextlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

import tomlkit
from nursery import Nursery, nursery

import references
from eigenscape import apply, plan, run
from eigenscape.base.memory import collected_quickly
from eigenscape.clusters import ClusterOptions, connect
from eigenscape.clusters.loading import load_cluster
from eigenscape.errors import EigenscapeError, InputError
from eigenscape.job.explanations import keys_of
from eigenscape.job.jobfile import Job, load_job, parse_job
from eigenscape.job.options import Options
from eigenscape.job.registry import MethodOptions
from eigenscape.job.relevance import unread
from inputs import scenery

BASE: dict[str, Any] = {
    "scene.path": "scene.tif",
    "scene.labels": "labels.tif",
    "features.dimension": 6,
    "neighbors.k": 8,
    "spectrum.dimension": 8,
    "learn.trials": 1,
    "output.formats": ["geotiff"],
    "output.eigenvectors": 2,
    "limits.threads": 2,
    "limits.memory": "1GiB",
}
"""What every cell starts from: small numbers, all labels learned from."""

EXAMPLES: dict[str, list[Any]] = {
    "scene.variable": ["cube"],
    "scene.labels": ["labels.tif", "points.csv"],
    "scene.labels_crs": ["EPSG:4326"],
    "scene.labels_variable": ["truth"],
    "scene.labels_field": ["kind"],
    "scene.labels_layer": ["fields"],
    "scene.classes": [{1: "oats", 2: "rye"}],
    "scene.geometry": ["none", "places.tif"],
    "scene.geometry_crs": ["EPSG:32633"],
    "scene.mask": ["mask.tif"],
    "scene.grid": ["finest", "coarsest"],
    "scene.bad_bands": [[1, "3-4"]],
    "scene.drop_wavelengths": ["auto", ["water-vapour", "400-415 nm"]],
    "scene.scale": ["auto", 0.5],
    "scene.nodata": [-1.0],
    "scene.columns": [["b1", "3-9"]],
    "scene.samples": [300],
    "scene.seed": [1],
    "features.dimension": [1, 6, 12],
    "features.seed": [1],
    "features.spectral": [{}],
    "features.spatial": [{}],
    "features.spatial.radius": [2, [1, 3]],
    "features.spatial.space_sigma": [1.5],
    "features.spatial.range_sigma": [2.0, [2.0, 6.0]],
    "features.spatial.epsilon": [0.5],
    "features.spatial.components": [2],
    "neighbors.k": [1, 8, 20],
    "neighbors.radius": ["$few", "$many"],
    "neighbors.overlap": [0.0, 0.3],
    "neighbors.leaf_size": [64],
    "neighbors.refine": [0, 1],
    "neighbors.recall": [0.9],
    "neighbors.landmarks": [60],
    "neighbors.seed": [1],
    "graph.bandwidth": ["auto", 0.5],
    "graph.spatial": [{}],
    "graph.spatial.weight": [0.1],
    "graph.spatial.bandwidth": ["auto", 2.0],
    "graph.potential": [{"pixels": [[3, 0], [5, 0]]}],
    "graph.potential.labels": ["all", "train", "labels.tif"],
    "graph.potential.classes": [[1, 2]],
    "graph.potential.pixels": [[[3, 0], [5, 0]]],
    "graph.potential.raster": ["barrier.tif"],
    "graph.potential.alpha": [20.0],
    "spectrum.dimension": [1, 30],
    "spectrum.tolerance": [1e-3, 1e-8],
    "learn.clusters": ["auto", 3],
    "learn.ncut": [0.5],
    "learn.gamma": [1.0],
    "learn.power": [2],
    "learn.time": [5.0],
    "learn.k": [1, 7],
    "learn.cost": [3.0],
    "learn.rbf_gamma": [0.2],
    "learn.trees": [7],
    "learn.eigenvectors": ["auto", 4],
    "learn.train": ["all", 0.2, 60, "labels.tif"],
    "learn.test": ["test.tif", "points.csv"],
    "learn.trials": [2],
    "learn.seed": [1],
    "learn.prior": ["none", "training", "uniform", [0.2, 0.3, 0.3, 0.2]],
    "learn.smoothing": [0.0, 2.0],
    "learn.queries": [3],
    "output.formats": [
        [],
        ["geotiff"],
        ["png"],
        ["report"],
        ["geotiff", "png"],
        ["qml", "envi", "gpkg", "stac", "zarr"],
    ],
    "output.colors": [{"1": "#0000ff"}],
    "output.eigenvectors": [0, 4],
    "limits.memory": ["512MiB"],
    "limits.threads": [1],
    "limits.layout": ["columns", "rows"],
}
"""Values of the keys that take more than a few words: "$few" and "$many" are radii of the scene."""

OUTSIDE = ("scene.path", "output.directory", "study", "name", "base", "left_out")
"""Keys that say where: the scenes are all of them."""

NEEDS: dict[str, dict[str, Any]] = {
    "scene.variable": {"scene.path": "cube.npz", "scene.labels_variable": "truth"},
    "scene.labels_variable": {"scene.path": "cube.npz", "scene.variable": "cube"},
    "scene.labels_field": {"scene.labels": "fields.geojson"},
    "scene.labels_layer": {"scene.labels": "fields.geojson"},
    "scene.columns": {"scene.path": "table.csv"},
    "scene.layout": {"scene.path": "flat.npy"},
    "scene.geometry": {
        "scene.path": "cube.npz",
        "scene.variable": "cube",
        "scene.labels": "cube.npz",
        "scene.labels_variable": "truth",
    },
    "scene.geometry_crs": {
        "scene.path": "cube.npz",
        "scene.variable": "cube",
        "scene.labels": "cube.npz",
        "scene.labels_variable": "truth",
        "scene.geometry": "places.tif",
    },
    "scene.grid": {"scene.path": "band-*.tif"},
    "scene.seed": {"scene.samples": 300},
    # In so many dimensions of noise a tree and three rounds find four of five neighbours.
    "features.method=none": {"neighbors.recall": 0.95},
    "features.dimension=12": {"neighbors.recall": 0.95},
    # It may choose them.
    "preset=auto": {"neighbors.recall": 0.95},
    "features.spatial.epsilon": {"features.spatial.method": "guided"},
    "features.spatial.components": {"features.spatial.method": "profiles"},
    # Refinement joins no halves that share nothing: further trees do.
    "neighbors.overlap=0.0": {"neighbors.recall": 0.95},
    "neighbors.method=radius": {"neighbors.radius": "$few", "features.method": "none"},
    "neighbors.method=landmarks": {"neighbors.landmarks": 60},
    "neighbors.radius": {"neighbors.method": "radius", "features.method": "none"},
    "neighbors.landmarks": {"neighbors.method": "landmarks"},
    "neighbors.seed": {"neighbors.method": "landmarks", "neighbors.landmarks": 60},
    "graph.potential.kind": {"graph.potential.pixels": [[3, 0], [5, 0]]},
    "graph.potential.classes": {"graph.potential.labels": "all"},
    "graph.potential.labels=train": {"learn.train": 0.2},
    "graph.potential.alpha": {"graph.potential.pixels": [[3, 0], [5, 0]]},
    "graph.potential.relative": {"graph.potential.pixels": [[3, 0], [5, 0]]},
    "learn.clusters": {"learn.method": "spectral-clustering"},
    "learn.assign": {"learn.method": "spectral-clustering"},
    "learn.ncut": {"learn.method": "normalized-cut"},
    "learn.gamma": {"learn.method": "tikhonov"},
    "learn.power": {"learn.method": "tikhonov"},
    "learn.kernel": {"learn.method": "tikhonov"},
    "learn.time": {"learn.method": "tikhonov", "learn.kernel": "heat"},
    "learn.k": {"learn.method": "k-nn"},
    "learn.cost": {"learn.method": "svm"},
    "learn.rbf_gamma": {"learn.method": "svm"},
    "learn.trees": {"learn.method": "random-forest"},
    "learn.thresholds": {"learn.method": "random-forest"},
    "learn.eigenvectors": {"learn.method": "eigenfunctions"},
    "scene.labels_crs": {"scene.labels": "points.csv"},
    "learn.areas": {"learn.train": 0.2},
    "learn.seed": {"learn.train": 0.2},
    "learn.split": {"learn.train": 0.2},
    "learn.prior=training": {"learn.method": "poisson"},
    "learn.prior=uniform": {"learn.method": "poisson"},
    "learn.prior=[0.2, 0.3, 0.3, 0.2]": {"learn.method": "interpolated"},
}
"""What else a key, or a key with one of its values, needs to mean something."""

_NO_SPACE = "table of"
_LARGE = ("400x400", "679x944", "table", "sparse")
_MEASURED = re.compile(
    "random samples have|samples have about .* neighbours within it|factors of a graph of .* can take"
    "|connected components, the limit is"
)
REFUSED: dict[str, dict[str, str]] = {
    "features.spectral.continuum=true": {"sparse": "sparse table"},
    "features.spectral.normalize=true": {"sparse": "sparse table"},
    "features.spectral.derivative=true": {"sparse": "sparse table"},
    "features.spatial": {"table": _NO_SPACE, "sparse": _NO_SPACE},
    "graph.spatial": {"table": _NO_SPACE, "sparse": _NO_SPACE},
    "learn.smoothing=2.0": {"table": _NO_SPACE, "sparse": _NO_SPACE},
    "learn.split=blocked": {"table": _NO_SPACE, "sparse": _NO_SPACE},
    "features.method=mnf": {"table": "mnf", "sparse": "mnf"},
    "scene.samples": {"pixels": "table"},
    "scene.seed": {"pixels": "table"},
    "scene.layout=image": {"table": "labels"},
    # Pairs of nearest neighbours: more components than bridges are sought for.
    "neighbors.k=1": dict.fromkeys(_LARGE, "components"),
    "spectrum.solver=dense": dict.fromkeys(("chunk", *_LARGE), "the stage spectrum is projected"),
    "apply x pynndescent": {"679x944": "the stage neighbors is projected"},
    "spectrum.solver=lobpcg": {"679x944": "the stage spectrum is projected"},
    "spectrum.solver=shift-invert": dict.fromkeys(_LARGE, "the factors"),
    "learn.train=60": {"100": "labelled pixels"},
}
"""What `plan` refuses, and a word of its reason, for the kinds of scene or the scenes where it does."""

PIXELS_ONLY = (
    "scene.variable", "scene.labels_variable", "scene.labels_field", "scene.labels_layer", "scene.mask",
    "scene.scale",
    "scene.nodata", "scene.bad_bands", "scene.grid", "scene.drop_wavelengths", "scene.geometry",
    "scene.geometry_crs", "graph.potential.raster",
    "graph.potential.labels=labels.tif", "learn.train=labels.tif", "learn.test", "scene.labels",
    "scene.labels_crs",
)  # fmt: skip
"""Keys about files of a raster."""

TABLES_ONLY = ("scene.columns", "scene.layout")
"""Keys about files of tables."""

SHARED = ("features.", "neighbors.method", "neighbors.metric", "graph.", "learn.method")
"""Keys that a quick matrix tries on tables too; the others it tries on pixels alone."""


SLOW = "pynndescent"
"""What a quick matrix leaves out: its compiled code is not kept, and takes half a minute to make."""


@dataclass(frozen=True)
class Cell:
    """A job: what it sets, and what is expected of it.

    Attributes
    ----------
    name
        ``key=value``, or a combination.
    keys
        Keys of the job, dotted, with their values.
    refused
        Words of the reason for which `plan` is to refuse it, by kind of scene or scene.
    kinds
        Kinds of scene that it is for.
    applied
        Whether the run is applied to the scene again.
    """

    name: str
    keys: dict[str, Any]
    refused: dict[str, str] = field(default_factory=dict)
    kinds: tuple[str, ...] = ("pixels", "table", "sparse")
    applied: bool = False

    @property
    def alone(self) -> bool:
        """Whether it reuses no stage of another cell: limits are in no key."""
        return any(key.startswith("limits.") for key in self.keys)


def cells() -> list[Cell]:
    """Return all cells: one for each value of each key, then the combinations."""
    found = [Cell("base", {})]
    for key, values in all_values().items():
        for value in values:
            name = f"{key}={_text(value)}"
            keys = {**NEEDS.get(key, {}), **NEEDS.get(name, {}), key: value}
            refused = {**_expected(key), **_expected(name)}
            pixels_only = key in PIXELS_ONLY or name in PIXELS_ONLY
            kinds = ("pixels",) if pixels_only else ("pixels", "table", "sparse")
            kinds = ("table",) if key in TABLES_ONLY else kinds
            found.append(Cell(name, keys, refused, kinds, applied=key == "learn.method"))
    return found + combinations()


def combinations() -> list[Cell]:
    """Return the pairs that have met in the code: edges and filters in space, smoothing, and `apply`."""
    landmarks = {"neighbors.method": "landmarks", "neighbors.landmarks": 60}
    by_radius = {
        "neighbors.method": "radius", "neighbors.radius": "$many", "features.method": "none",
    }  # fmt: skip
    spatial: dict[str, tuple[dict[str, Any], str]] = {
        "each": ({"graph.components": "each"}, ""),
        "largest": ({"graph.components": "largest"}, ""),
        "landmarks": (landmarks, "landmarks"),
        "barrier": ({"graph.potential.pixels": [[1, 2], [3, 4]]}, ""),
        "identification": (
            {"graph.potential.labels": "all", "graph.potential.kind": "identification"}, "",
        ),
        "radius": (by_radius, ""),
        "angle": ({"neighbors.metric": "angle"}, ""),
        "angle-radius": (
            {"neighbors.metric": "angle", "neighbors.method": "radius", "neighbors.radius": 0.1}, "",
        ),
        "smoothing": ({"learn.smoothing": 2.0}, ""),
        "poisson-mbo": ({"learn.method": "poisson-mbo"}, ""),
    }  # fmt: skip
    found = [
        Cell(f"spatial x {name}", {"graph.spatial": {}, **keys}, {"pixels": why} if why else {},
             ("pixels",), applied=True)
        for name, (keys, why) in spatial.items()
    ]  # fmt: skip
    found.append(
        Cell("spatial x sparse", {"graph.spatial": {}}, {"sparse": _NO_SPACE}, ("sparse",))
    )
    filters: dict[str, dict[str, Any]] = {
        "apply": {},
        "mnf": {"features.method": "mnf"},
        "angle": {"neighbors.metric": "angle"},
        "mask": {"scene.mask": "mask.tif"},
        "spatial": {"graph.spatial": {}},
    }
    for method in literals("features.spatial.method"):
        found += [
            Cell(f"{method} x {name}", {"features.spatial.method": method, **keys}, {},
                 ("pixels",), applied="scene.mask" not in keys)
            for name, keys in filters.items()
        ]  # fmt: skip
    for name, keys in {
        "apply": {},
        "mnf": filters["mnf"],
        "bilateral": {"features.spatial": {}},
    }.items():
        spectral = {"features.spectral": {"continuum": True, "normalize": True}}
        found.append(Cell(f"spectral x {name}", spectral | keys, {}, ("pixels",), applied=True))
    for method in literals("learn.method"):
        clustering = method in ("spectral-clustering", "normalized-cut")
        found.append(
            Cell(
                f"smoothing x {method}",
                {"learn.smoothing": 2.0, "learn.method": method},
                {"pixels": "smoothing"} if clustering else {},
                ("pixels",),
            )
        )
    for method, need in (
        ("exact", {}), ("pynndescent", {}), ("radius", by_radius),
        ("landmarks", {"neighbors.landmarks": 60}),
    ):  # fmt: skip
        keys = {"neighbors.method": method, **need}
        name = f"apply x {method}"
        found.append(Cell(name, keys, _expected(name), applied=True))
    for components in ("largest", "each"):
        # Few neighbours: several components.
        keys = {"graph.components": components, "neighbors.k": 2, "learn.method": "eigenfunctions"}
        found.append(Cell(f"apply x {components}", keys, applied=True))
    smooth = {"learn.method": "eigenfunctions", "learn.gamma": 0.1}
    found += [
        Cell("roughness x apply", smooth, applied=True),
        Cell("roughness x each", {**smooth, "graph.components": "each", "neighbors.k": 2}),
        Cell("roughness x barrier", {**smooth, **spatial["barrier"][0]}, {}, ("pixels",)),
    ]
    return found


def all_values() -> dict[str, list[Any]]:
    """Return the values to try of every key.

    Raises
    ------
    LookupError
        A key has none: add them to `EXAMPLES`.
    """
    found: dict[str, list[Any]] = {}
    for key, annotation in option_keys():
        words = list(_words(annotation))
        if key in EXAMPLES:
            known = list(map(_text, EXAMPLES[key]))
            words = [word for word in words if _text(word) not in known and word != "auto"]
        found[key] = [*EXAMPLES.get(key, []), *words]
        if not found[key]:
            raise LookupError(f"{key} has no cell: give values in EXAMPLES of {__file__}")
    return found


def literals(key: str) -> list[Any]:
    """Return the words that a key takes."""
    return list(_words(dict(option_keys())[key]))


def option_keys(options: type[Options] = Job, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every key of a job, dotted, and the type of its value; tables in tables too."""
    for name, info in keys_of(options).items():
        key = prefix + name
        if key in OUTSIDE:
            continue
        tables = [kind for kind in (info.annotation, *get_args(info.annotation))
                  if isinstance(kind, type) and issubclass(kind, Options)]  # fmt: skip
        if issubclass(options, MethodOptions) and name == "method":
            yield key, Literal[tuple(options.registry.names())]
        elif not tables or prefix:
            yield key, info.annotation
        for table in tables:
            yield from option_keys(table, f"{key}.")


def _words(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Literal:
        yield from get_args(annotation)
    elif annotation is bool:
        yield from (False, True)
    elif origin in (Union, UnionType, Annotated):
        for part in get_args(annotation)[: 1 if origin is Annotated else None]:
            yield from _words(part)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _expected(name: str) -> dict[str, str]:
    """Return the refusals of a key and of the tables that it is in."""
    found: dict[str, str] = {}
    for part, reasons in REFUSED.items():
        if name == part or name.startswith((f"{part}.", f"{part}=")):
            found |= reasons
    return found


def make_job(cell: Cell, scene: scenery.Scene, directory: Path) -> Job:
    """Return the job of a cell on a scene: what all cells start from, where the cell reads it."""
    runs = directory / (f"runs-{cell.name}" if cell.alone else "runs")
    table: dict[str, Any] = {"output": {"directory": str(runs)}}
    for key, value in {**BASE, **scene.keys, **cell.keys}.items():
        parts, section = key.split("."), table
        for part in parts[:-1]:
            section = section.setdefault(part, {})
        value = scene.radii.get(value, value) if isinstance(value, str) else value
        section[parts[-1]] = dict(value) if isinstance(value, dict) else value
    for key in unread(parse_job(table, base=scene.folder, strict=False)).keys() - cell.keys.keys():
        name, _, last = key.partition(".")
        del table[name][last]
    return parse_job(table, base=scene.folder)


def try_cell(
    cell: Cell, scene: scenery.Scene, directory: Path, on: ClusterOptions, executor: Any,
    checked: set[str],
) -> dict[str, Any]:  # fmt: skip
    """Plan and run one cell; return what came of it.

    The executor is that of this process, or a `Nursery`. For `checked` see `references.check_run`.
    """
    said: dict[str, Any] = {"cell": cell.name, "size": scene.name, "where": on.kind}
    start, why = time.perf_counter(), _reason(cell, scene)
    planned, problems = False, list[str]()
    try:
        job = make_job(cell, scene, directory)
        prepared = plan(job, on=on)
        prepared.check(job.limits.memory_bytes)
        planned = True
        if why:
            return {**said, "verdict": "wrong", "problems": [f"not refused: {why}"]}
        if isinstance(executor, Nursery):
            path, stages = _run_apart(job, on, directory, executor)
        else:
            result = run(job, on=on, executor=executor)
            path, stages = result.path, result.stages
        said |= _memory(job, prepared, stages)
        if job.open:  # The methods are those that were chosen.
            job = load_job(path / "job.toml").model_copy(update={"scene": job.scene})
        problems += references.check_run(path, job, scene, set() if cell.alone else checked)
        if cell.applied:
            problems += _apply(path, job, scene, on, executor)
        said |= {"verdict": "wrong" if problems else "equal", "problems": problems}
    except EigenscapeError as error:
        text = str(error)
        # No plan can know how many neighbours a radius has, how a graph fills in, or in how many parts
        # it falls: a sample says it before the search, and the graph before the spectrum.
        fine = (not planned and why and re.search(why, text)) or _MEASURED.search(text)
        verdict = "refused" if fine else "late" if planned else "wrong"
        said |= {"verdict": verdict, "problems": [*problems, text]}
    except Exception as error:
        told = f"{type(error).__name__}: {error}"[:400]
        said |= {"verdict": "crashed", "problems": [*problems, told]}
    return {**said, "seconds": round(time.perf_counter() - start, 2)}


def _reason(cell: Cell, scene: scenery.Scene) -> str | None:
    return cell.refused.get(scene.name, cell.refused.get(scene.kind))


def _run_apart(
    job: Job, on: ClusterOptions, directory: Path, commands: Nursery
) -> tuple[Path, tuple[dict[str, Any], ...]]:
    """Run a job by the command, in a process of its own; return its directory and its stages."""
    file, cluster = directory / "job.toml", directory / "cluster.toml"
    file.write_text(job.to_toml())
    cluster.write_text(tomlkit.dumps(on.model_dump(exclude_unset=True)))
    where = ["--on", str(cluster)] if on.model_fields_set else []
    told, errors = directory / "told", directory / "errors"
    status = commands.command(["run", str(file), *where, "--json"], told, errors)
    if status not in (0, 3):
        last = errors.read_text().strip().splitlines()[-1:] or ["no word"]
        kind = InputError if status == 2 else RuntimeError
        raise kind(f"status {status}: {last[0]}")
    said = json.loads(told.read_text().splitlines()[-1])
    return Path(said["run"]), tuple(said["stages"])


def _memory(job: Job, prepared: Any, stages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return peaks and projected peaks, in MiB, of the stages that ran, the worst first of all.

    In the process of the matrix itself, a peak has what the references left behind in it.
    """
    planned = {stage.name: stage.peak_bytes >> 20 for stage in prepared.stages}
    ran = {stage["name"]: stage["peak_bytes"] >> 20 for stage in stages if not stage["reused"]}
    if not ran:
        return {}
    return {
        "peak": max(ran.values()),
        "planned": max(planned.values()),
        "limit": job.limits.memory_bytes >> 20,
        "above_plan": {
            name: [peak, planned[name]] for name, peak in ran.items() if peak > planned[name]
        },
        "stages": {stage["name"]: stage["seconds"] for stage in stages if not stage["reused"]},
    }


def _apply(
    path: Path, job: Job, scene: scenery.Scene, on: ClusterOptions, executor: Any
) -> list[str]:
    """Apply a run to its own scene; return what is wrong with that."""
    target = path.with_name(f"{path.name}-applied")
    own = job.resolve(str(job.scene.path))
    within = None if isinstance(executor, Nursery) else executor
    applied = apply(path, own, run_dir=target, on=on, executor=within)
    return references.check_applied(path, Path(applied.path))


def chosen(scene: scenery.Scene, directory: Path, only: list[str], *, quick: bool) -> list[Cell]:
    """Return the cells to try on a scene, without those that are the same job as an earlier one.

    Parameters
    ----------
    scene, directory
        What their jobs are about.
    only
        Words of which their names hold one, which come in this order; none for all.
    quick
        Leave out those that are slow to compile, and on tables those of keys that know no difference
        between pixels and samples.
    """
    found: dict[str, Cell] = {}
    ranks = [[text in cell.name for text in only] + [True] for cell in cells()]
    for _, cell in sorted(zip(ranks, cells(), strict=True), key=lambda pair: pair[0].index(True)):
        if scene.kind not in cell.kinds or (only and not any(text in cell.name for text in only)):
            continue
        if quick and SLOW in cell.name:
            continue
        if quick and scene.kind != "pixels" and not cell.name.startswith(SHARED):
            continue
        try:
            content = make_job(cell, scene, directory).model_dump_json()
        except EigenscapeError:
            content = cell.name
        # A method's own cell is applied: it stays, whatever it is the same as.
        if cell.applied and not found.get(content, cell).applied:
            del found[content]
        found.setdefault(content, cell)
    return list(found.values())


def parse_arguments() -> argparse.Namespace:
    """Return what to try."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", action="append", choices=[*scenery.SIZES], default=[])
    parser.add_argument("--only", action="append", default=[], help="cells whose names hold this")
    parser.add_argument("--without", action="append", type=Path, default=[],
                        help="lines of an earlier call: their cells are left out")  # fmt: skip
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--workers", action="store_true", help="two worker processes, not threads")
    place.add_argument("--on", help="a cluster file, such as that of a scheduler with workers "
                       "that stay from cell to cell")  # fmt: skip
    parser.add_argument("--directory", type=Path, help="for scenes and runs; a temporary one")
    parser.add_argument("--quick", action="store_true", help="all in this process, no job twice")
    parser.add_argument("--every", type=int, default=1, help="of the cells, one in so many")
    return parser.parse_args()


def main() -> None:
    """Print a line for each cell."""
    given = parse_arguments()
    on = ClusterOptions(kind="local", workers=2) if given.workers else load_cluster(given.on)
    lines = [line for file in given.without for line in file.read_text().splitlines()]
    done = {(line["cell"], line["size"], line["where"]) for line in map(json.loads, lines)}
    wrong = 0
    with contextlib.ExitStack() as stack:
        # What is loaded by now stays: every stage looks through what may be freed.
        stack.enter_context(collected_quickly())
        temporary = stack.enter_context(tempfile.TemporaryDirectory())
        folder = (given.directory or Path(temporary)).resolve()
        if given.quick:  # Nothing is killed: it is left to the system when files reach the disk.
            stack.enter_context(patch("os.fsync", lambda descriptor: None))
        executor: Any = stack.enter_context(connect(on, 2, 2**30) if given.quick else nursery())
        for size in given.size or scenery.SIZES:
            scene = scenery.make(size, folder / size)
            checked: set[str] = set()
            cells = chosen(scene, folder / size, given.only, quick=given.quick)
            for cell in cells[:: given.every]:
                if (cell.name, size, on.kind) in done:
                    continue
                said = try_cell(cell, scene, folder / size, on, executor, checked)
                wrong += said["verdict"] not in ("equal", "refused")
                print(json.dumps(said), flush=True)
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
