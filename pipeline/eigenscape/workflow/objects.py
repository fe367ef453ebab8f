"""Jobs from Python objects: tables, a path, or a cube in memory."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from eigenscape.errors import JobError, SceneError
from eigenscape.job.jobfile import Job, load_job, parse_job
from eigenscape.scenes.objects import filled, numbered, raster_of, samples_of
from eigenscape.scenes.writing import (
    as_pandas,
    has_named_columns,
    holds_points,
    write_columns,
    write_frame,
    write_points,
    write_raster,
    write_sparse,
    write_table,
)

_SCENES = "scenes"
"""Folder below the output directory where scenes in memory are written."""

_LONGEST_NAME = 150
"""Bytes; a file has 255 at most, and a name gets more parts."""


def as_job(job: Job | Mapping[str, Any] | str | Path) -> Job:
    """Return a job given as a `Job`, as nested mappings, or as the path of a job file.

    Raises
    ------
    JobError
        The argument is something else, or the job is invalid.
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
    """Return a job for a scene, which may be in memory.

    Cubes and labels in memory are written to ``directory/scenes`` in strips of rows. The files are named by
    their content, so that the same job on the same cube continues an unfinished run.

    Parameters
    ----------
    scene
        `xarray.DataArray` or `xarray.Dataset` with axes y, x and band, and the coordinate system that
        rioxarray or a coordinate ``spatial_ref`` gives it; a NumPy or dask array, shape (rows, columns,
        bands), or (samples, features) for a table; also for a table, a sparse array of scipy, a
        `xarray.DataArray` whose first axis is called sample, or a data frame of pandas or polars or a table
        of pyarrow, whose columns keep their names; or what ``scene.path`` takes: a path, or a list of paths.
    labels
        Class of each pixel, a number with 0 for none, or a name that is empty where there is none: a
        `xarray.DataArray` on any grid; an array, list or series of shape (rows, columns) or (samples,); a
        `geopandas.GeoDataFrame`, with ``scene={"labels_field": ...}`` as the name of its class column; a
        `pandas.DataFrame` of points with columns ``row`` and ``column``, ``x`` and ``y``, or ``lon`` and
        ``lat``, and a class; a path; or None.
    name
        First part of the names of the files and of the run directory.
    directory
        Parent of the run directories, ``output.directory``.
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
        An array has other axes.
    JobError
        A table, or the name, is invalid.
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
    field = given.get("labels_field")
    files = files_of(scene, labels, Path(directory), name, field=field)
    if both := given.keys() & files.keys():
        key = min(both)
        raise JobError(
            f"scene.{key} is given twice: as {given[key]!r}, and by the scene or labels themselves. Leave "
            "one of them out."
        )
    given |= files
    output = {"directory": str(directory), **tables.pop("output", {})}
    return parse_job({"scene": given, "output": output, **tables}, name=name)


def files_of(
    scene: Any, labels: Any, directory: Path, name: str, *, field: str | None = None
) -> dict[str, Any]:
    """Return the keys ``path``, ``labels`` and ``classes`` of a scene; write data in memory to files.

    Parameters
    ----------
    scene, labels
        As in `job_for`.
    directory
        Directory with the folder "scenes" for the files.
    name
        First part of the file names.
    field
        Column of a `geopandas.GeoDataFrame` that holds the class; None if it is not given.

    Raises
    ------
    JobError
        The name is no name of a file.
    """
    _check_name(name)
    folder = directory / _SCENES
    scene, labels = (
        as_pandas(samples_of(given), what) for given, what in ((scene, "scene"), (labels, "labels"))
    )
    given: dict[str, Any] = {}
    if _is_path(scene) or (isinstance(scene, list | tuple) and all(map(_is_path, scene))):
        given["path"] = str(scene) if _is_path(scene) else [str(path) for path in scene]
    elif has_named_columns(scene):
        given["path"] = str(write_columns(scene, folder, name).resolve())
    elif issparse(scene):
        given["path"] = str(write_sparse(scene, folder, name).resolve())
    else:
        given["path"] = str(_write(scene, folder, name, "scene", flat=2).resolve())
    if labels is None:
        return given
    if _is_path(labels):
        given["labels"] = str(labels)
    elif hasattr(labels, "geometry"):
        path = write_frame(labels, folder, f"{name}-labels", field)
        given["labels"] = str(path.resolve())
    elif holds_points(labels):
        given["labels"] = str(write_points(labels, folder, f"{name}-labels").resolve())
    else:
        labels, names = numbered(labels)
        given["labels"] = str(_write(labels, folder, f"{name}-labels", "labels", flat=1).resolve())
        if names:
            given["classes"] = names
    return given


def _check_name(name: Any) -> None:
    """Refuse a name that is no name of a file in the folder."""
    if not isinstance(name, str) or not name or name.startswith(".") or {*name} & {*"/\\\0"}:
        raise JobError(
            f"name = {name!r}: is the first part of names of files: a text without slashes that does not "
            'begin with a dot, such as "scene".'
        )
    if (size := len(os.fsencode(name))) > _LONGEST_NAME:
        raise JobError(
            f"name: has {size} bytes, and names of files are made of it. Give one of {_LONGEST_NAME} at most."
        )


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _write(given: Any, folder: Path, name: str, what: str, *, flat: int) -> Path:
    """Write an array as a table if it has `flat` unnamed axes, otherwise as a raster; return the path."""
    if np.isnan(getattr(given, "shape", ())).any():
        raise SceneError(
            f"{what}: a dask array of unknown length. Call its method compute_chunk_sizes() first."
        )
    if not hasattr(given, "dims") and not hasattr(given, "data_vars"):
        values, nodata = filled(given)
        if values.ndim == flat:
            if values.dtype.kind not in "uifb":
                raise SceneError(
                    f"{what}: an array of type {values.dtype} and shape {values.shape}; real numbers are "
                    f"needed. The first value is {values.flat[0]!r}."
                )
            if nodata is not None:
                # A table has NaN alone to mark what is missing.
                values = np.where(values == nodata, np.nan, values)
            return write_table(values, folder, name)
    return write_raster(raster_of(given, what), folder, name)
