"""A finished run for use on other scenes: classes, classifier, keys that may be set."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eigenscape.applied.ways import ByNeighbors, choose_way
from eigenscape.errors import InputError, JobError, SceneError
from eigenscape.job.explanations import tables_of
from eigenscape.job.files.overrides import override
from eigenscape.job.jobfile import Job, parse_job
from eigenscape.scenes.formats.tables.tabularfiles import is_tabular
from eigenscape.scenes.labels.sources import is_vector
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.registry import is_registered
from eigenscape.scenes.types import Bands, Legend
from eigenscape.scenes.views.resampled import ResampledScene, counterparts, to_bands
from eigenscape.store.manifest import applied_run, read_manifest
from eigenscape.store.run import Run
from eigenscape.store.verification import require_whole

_SETTABLE = ("scene", "output", "limits")


@dataclass(frozen=True)
class Model:
    """A finished run. Small, so that every task can carry it.

    Attributes
    ----------
    path
        Run directory.
    key
        Content key of its learn stage.
    job
        Its job.
    bands
        Of its scene.
    numbers
        Class numbers of its map, ascending.
    legend
        Names and colours of its classes.
    clusters
        Whether its classes are clusters.
    way
        How it classifies new samples.
    why
        Why not by its eigenvectors, where it is not; and why not by a machine either.
    origin
        What is subtracted from its bands before they go to single precision, None for nothing.
    """

    path: Path
    key: str
    job: Job
    bands: Bands
    numbers: tuple[int, ...]
    legend: Legend
    clusters: bool
    way: ByNeighbors
    why: str
    origin: tuple[float, ...] | None

    @property
    def count(self) -> int:
        """Number of classes."""
        return len(self.numbers)

    def unchanged(self) -> bool:
        """Whether the run is still the one that was opened."""
        record = read_manifest(self.path)["stages"].get("learn")
        return record is not None and record["key"] == self.key


def open_model(path: str | Path) -> Model:
    """Open a run directory whose class map is finished.

    Raises
    ------
    InputError
        There is none, or it has no class map.
    StoreError
        One of its files is damaged.
    """
    path = Path(path).resolve()
    manifest = read_manifest(path) if path.is_dir() else {"stages": {}}
    stages = manifest["stages"]
    if "applies" in manifest:
        raise InputError(
            f"{path}: is itself a run applied to a scene. Apply {applied_run(path, manifest)}, which "
            "holds the graph and the labels."
        )
    if "learn" not in stages or "classes" not in stages["learn"]["summary"]:
        raise InputError(
            f"{path}: no run directory, or a run without a class map. Give a directory in which "
            "`eigenscape run` has finished the stage learn on a scene with labels (or a clustering)."
        )
    require_whole(path, exclude="export")
    table = tomllib.loads((path / "job.toml").read_text(encoding="utf-8"))
    job = parse_job(
        table, name=manifest.get("name", path.name), base=path, source=str(path), strict=False
    )
    ingest, learn = stages["ingest"]["summary"], stages["learn"]["summary"]
    numbers = tuple(learn["classes"])
    clusters = "names" in learn
    names = learn["names"] if clusters else ingest["class_names"]
    colors = {} if clusters else ingest["class_colors"]
    legend = Legend(
        names={int(number): name for number, name in names.items()},
        colors={int(number): tuple(color) for number, color in colors.items()},
    )
    run = Run(path, create=False)
    way, why = choose_way(run, job, numbers, learn)
    origin = run.read("samples/origin")
    return Model(
        path, stages["learn"]["key"], job, Bands.from_json(ingest["bands"]), numbers, legend, clusters,
        way, why, None if origin is None else tuple(origin.tolist()),
    )  # fmt: skip


def applied_job(
    model: Model,
    scene: str | Sequence[str],
    labels: Mapping[str, Any],
    overrides: Sequence[str] = (),
) -> Job:
    """Return the job of a run with another scene.

    Parameters
    ----------
    model
        The run.
    scene
        A file, a list of files (one band each), a URL or a registered data set; relative to the
        working directory.
    labels
        Keys ``labels`` and ``classes`` of the scene, to compare with; empty without labels.
    overrides
        As in `eigenscape.load_job`, of the tables scene, output and limits.

    Raises
    ------
    JobError
        A key of another table is set, or one that does not exist.
    SceneError
        The bands are not those of the run, and cannot be brought to them.
    """
    given = model.job
    paths = [scene] if isinstance(scene, str) else list(scene)
    table: dict[str, Any] = given.model_dump(mode="json", exclude_none=True, exclude={"study"})
    old = given.scene
    table["scene"] = {
        "scale": old.scale,
        "path": scene if isinstance(scene, str) else paths,
        "drop_wavelengths": "none",
    }
    table["output"].pop("directory", None)
    table["output"]["eigenvectors"] = 0
    same_kind = isinstance(old.path, str) and Path(old.path).suffix == Path(paths[0]).suffix
    inherited: dict[str, Any] = {"nodata": old.nodata, **labels}
    if same_kind and not is_registered(paths[0]):
        inherited |= {"variable": old.variable, "layout": old.layout}
        # Flags are those of the product; files of masks lie on the grid of the run's own scene.
        inherited["mask"] = list(old.mask_flags) or None
    if old.grid != "finest" and (same_kind or (len(paths) > 1 and not isinstance(old.path, str))):
        inherited["grid"] = old.grid
    names = model.bands.names
    if is_tabular(paths[0]) and is_tabular(old.path) and names is not None:
        # By name, whatever their order: the columns that the run learned from.
        inherited["columns"] = [names[place] for place in model.bands.good_index]
    beside = labels.get("labels")
    if is_tabular(beside) or is_vector(beside):  # a raster or an array has no columns
        inherited["labels_field"] = old.labels_field
    table["scene"] |= {name: value for name, value in inherited.items() if value is not None}
    for text in overrides:
        section = text.partition(".")[0].strip()
        if section not in _SETTABLE:
            raise JobError(
                f"--set {text}: what was learned stays as the run has it. Keys of "
                f"{', '.join(f'[{name}]' for name in _SETTABLE)} can be set; for others run the "
                "job again."
            )
        override(table, text, tables_of(Job))
    source = " ".join([str(model.path), *(f"--set {text}" for text in overrides)])
    job = parse_job(table, name=Path(paths[0]).stem or "scene", base=Path.cwd(), source=source)
    return _with_bands(model, job)


def _with_bands(model: Model, job: Job) -> Job:
    """Return the job without the bands of its scene that the run has no use for.

    These are the run's bad bands in a scene that has the run's bands, and in a scene that has all bands of
    the run among others, the others.
    """
    found, wanted = open_scene(job.scene, job.resolve), model.bands
    if len(found.bands.good) == len(wanted.good):
        bad = tuple(number for number, good in enumerate(wanted.good, 1) if not good)
        without = _without(job, bad)
        try:
            fitting = to_bands(open_scene(without.scene, job.resolve), wanted)
        except SceneError:
            # The run's bad bands may be of use where wavelengths differ.
            pass
        else:
            if not isinstance(fitting, ResampledScene):
                return without
    fitting = to_bands(found, wanted)
    # Several lines may number their bands each in its own way.
    if not isinstance(fitting, ResampledScene) or hasattr(found, "lines"):
        return job
    places = counterparts(found.bands, wanted)
    if (places < 0).any():
        return job
    return _without(job, tuple((np.delete(found.bands.good_index, places) + 1).tolist()))


def _without(job: Job, bad: tuple[int, ...]) -> Job:
    """Return the job with further bad bands, by their numbers."""
    further = {"bad_bands": (*job.scene.bad_bands, *bad)}
    return job.model_copy(update={"scene": job.scene.model_copy(update=further)})


def manifest_entry(model: Model) -> Mapping[str, str]:
    """Return what the manifest of an applied run says of the run."""
    return {"run": str(model.path), "key": model.key, "how": model.way.name, "why": model.why}
