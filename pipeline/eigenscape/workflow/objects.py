"""Jobs from what a program has at hand: tables, a path, or a cube in memory."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eigenscape.errors import JobError
from eigenscape.job.jobfile import Job, load_job, parse_job
from eigenscape.scenes.objects import raster_of, write_frame, write_raster, write_table

_SCENES = "scenes"
"""Folder below the output directory where scenes in memory are written."""


def as_job(job: Job | Mapping[str, Any] | str | Path) -> Job:
    """Return a job that is given as such, as nested mappings, or as the path of a job file.

    Raises
    ------
    JobError
        It is something else, or it cannot work.
    """
    if isinstance(job, Job):
        return job
    if isinstance(job, Mapping):
        return parse_job(job)
    if isinstance(job, str | os.PathLike):
        return load_job(job)
    raise JobError(
        f"a job of type {type(job).__name__}: give a Job, its tables as a mapping, or the path of a job "
        "file. eigenscape.job_for makes the job of a cube in memory."
    )


def job_for(
    scene: Any,
    /,
    labels: Any = None,
    *,
    name: str = "scene",
    directory: str | Path = "runs",
    **tables: Any,
) -> Job:
    """Return the job of a scene, which may be in memory: the two lines of a job file, in Python.

    Cubes and labels in memory are written below ``directory/scenes``, a strip of rows at a time, named by
    their content: the same job on the same cube goes on where it was.

    Parameters
    ----------
    scene
        `xarray.DataArray` or `xarray.Dataset` with axes y, x and band, and the coordinate system that
        rioxarray or a coordinate ``spatial_ref`` gives it; a NumPy or dask array, shape (rows, columns,
        bands), or (samples, features) for a table; or what ``scene.path`` takes: a path, or a list of paths.
    labels
        Class of each pixel, 0 for none, on any grid: `xarray.DataArray`, array of shape (rows, columns) or
        (samples,); a `geopandas.GeoDataFrame`, whose column of classes ``scene={"labels_field": ...}``
        names; a path; or None.
    name
        First half of the names of files and of the run directory.
    directory
        Where runs are made: ``output.directory``.
    tables
        Further tables and keys of the job: ``preset="halevy-2011"``, ``learn={"method": "tikhonov"}``,
        ``limits={"memory": "4GiB"}``.

    Returns
    -------
    Job
        For `eigenscape.run`, `eigenscape.plan` and `eigenscape.tune`.

    Raises
    ------
    SceneError
        An array has no such axes.
    JobError
        A table cannot work.
    OutputError
        The files cannot be written.

    Examples
    --------
    >>> import numpy as np
    >>> import eigenscape
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([1, 2], 200).reshape(20, 20)
    >>> cube = rng.normal(size=(20, 20, 8)) + 5 * truth[:, :, None]
    >>> job = eigenscape.job_for(cube, np.where(rng.random((20, 20)) < 0.2, truth, 0))
    >>> result = eigenscape.run(job)
    >>> result.scores["overall_accuracy"]
    1.0
    """
    for key in ("scene", "output"):
        if not isinstance(tables.get(key, {}), Mapping):
            raise JobError(
                f"{key} of type {type(tables[key]).__name__}: give keys of the table [{key}] as a mapping. "
                "The scene itself comes first: job_for(scene, labels)."
            )
    given: dict[str, Any] = dict(tables.pop("scene", {}))
    given |= files_of(scene, labels, Path(directory), name)
    output = {"directory": str(directory), **tables.pop("output", {})}
    return parse_job({"scene": given, "output": output, **tables}, name=name)


def files_of(scene: Any, labels: Any, directory: Path, name: str) -> dict[str, Any]:
    """Return the keys ``path`` and ``labels`` of a scene; what is in memory is written.

    Parameters
    ----------
    scene, labels
        As in `job_for`.
    directory
        In its folder "scenes" files are written.
    name
        First half of their names.
    """
    folder = directory / _SCENES
    given: dict[str, Any] = {}
    if _is_path(scene) or (isinstance(scene, list | tuple) and all(map(_is_path, scene))):
        given["path"] = str(scene) if _is_path(scene) else [str(path) for path in scene]
    else:
        given["path"] = str(_write(scene, folder, name, "scene", flat=2).resolve())
    if labels is None:
        return given
    if _is_path(labels):
        given["labels"] = str(labels)
    elif hasattr(labels, "geometry"):
        given["labels"] = str(write_frame(labels, folder, f"{name}-labels").resolve())
    else:
        given["labels"] = str(_write(labels, folder, f"{name}-labels", "labels", flat=1).resolve())
    return given


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _write(given: Any, folder: Path, name: str, what: str, *, flat: int) -> Path:
    """Write an array: one of `flat` axes without names as a table, others as a raster."""
    if not hasattr(given, "dims") and not hasattr(given, "data_vars"):
        values = given if hasattr(given, "dask") else np.asarray(given)
        if values.ndim == flat:
            return write_table(values, folder, name)
    return write_raster(raster_of(given, what), folder, name)
