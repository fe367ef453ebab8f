"""What a batch works on: job files; or one job as the template of many scenes."""

import glob
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from eigenscape.base.files.names import own_path
from eigenscape.base.files.tables import read_table
from eigenscape.errors import EigenscapeError, InputError, JobError
from eigenscape.job.files.named import NAMED_FILES, with_files
from eigenscape.job.jobfile import Job, load_job, unknown_key
from eigenscape.scenes.registry import is_registered
from eigenscape.store.manifest import is_run


@dataclass(frozen=True)
class Scene:
    """One scene of a batch.

    Attributes
    ----------
    name
        What the table and the run directory call it; no two are alike.
    job
        What to run; None where it cannot be read.
    error
        Why it cannot.
    """

    name: str
    job: Job | None
    error: str | None = None


@dataclass(frozen=True)
class Found:
    """What a source finds.

    Attributes
    ----------
    scenes
        In a fixed order.
    left_out
        Number of paths of the pattern that are no scenes: they lie in the directory of the batch or of a run.
    """

    scenes: tuple[Scene, ...]
    left_out: int = 0


@dataclass(frozen=True)
class Source:
    """Where the scenes of a batch come from; asked again, it finds those that arrived meanwhile.

    Attributes
    ----------
    jobs
        Job files, a scene each.
    template
        Job file for many scenes, which come from one of the two below.
    scenes
        Pattern of scene files, such as ``tiles/*.tif``; ``**`` stands for folders at any depth.
    table
        CSV file whose columns are keys of the job.
    overrides
        As for `eigenscape.load_job`, for every scene.
    """

    jobs: tuple[Path, ...] = ()
    template: Path | None = None
    scenes: str | None = None
    table: Path | None = None
    overrides: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = [name for name in ("scenes", "table") if getattr(self, name) is not None]
        if self.template is None and given:
            raise InputError(f"--{given[0]} needs --template JOB: the job file for all scenes.")
        if self.template is not None and len(given) != 1:
            raise InputError(
                f"--template {self.template}: give the scenes either as --scenes 'PATTERN' or as "
                f"--table FILE.csv; given are {' and '.join(given) or 'neither'}."
            )
        if self.template is not None and self.jobs:
            raise InputError(
                f"{self.jobs[0]}: give either job files or --template, not both. If the shell "
                "expanded a pattern, put it in quotes: --scenes 'tiles/*.tif'."
            )
        if self.template is None and not self.jobs:
            raise InputError(
                "No scenes: give job files, or --template JOB with --scenes or --table."
            )

    @property
    def name(self) -> str:
        """What the batch is called."""
        return "batch" if self.template is None else self.template.stem

    def first_job(self) -> Job | None:
        """Return the job that says where the batch is written, None for job files.

        Raises
        ------
        JobError
            The template is wrong.
        """
        if self.template is None:
            return None
        # The scene is what the template need not say.
        job = load_job(self.template, [*self.overrides, "scene.path=scene"])
        if job.study is not None:
            raise JobError(
                f"{self.template}: is a study. Take its table [study] out, or run it by "
                "`eigenscape run`."
            )
        return job

    def find(self, directory: Path) -> Found:
        """Return the scenes as they are now.

        Parameters
        ----------
        directory
            That of the batch. A pattern may cover it; results are no scenes.

        Raises
        ------
        InputError
            The table cannot be used. What is wrong with one scene is its `error`.
        """
        if self.table is not None:
            return Found(tuple(_from_table(self.table, self._load)))
        if self.scenes is not None:
            given = [
                Path(own_path(path)) for path in sorted(glob.glob(self.scenes, recursive=True))
            ]
            is_result = _results(directory.resolve())
            # A link to a result is a result.
            paths = [path for path in given if not is_result(Path(os.path.realpath(path)).parent)]
            scenes = (
                self._load(name, {"scene.path": _quoted(path)})
                for name, path in zip(_distinct_names(paths), paths, strict=True)
            )
            return Found(tuple(scenes), len(given) - len(paths))
        names = _distinct_names([Path(own_path(path)) for path in self.jobs])
        jobs = zip(names, self.jobs, strict=True)
        return Found(tuple(_load(name, path, self.overrides) for name, path in jobs))

    def _load(self, name: str, values: Mapping[str, str]) -> Scene:
        assert self.template is not None, "scenes have a template"
        changes = [f"{key}={value}" for key, value in values.items()]
        return _load(name, self.template, [*self.overrides, *changes])


def _results(directory: Path) -> Callable[[Path], bool]:
    """Return a function that tells whether a folder lies in the directory of a batch, or of any run."""

    @cache
    def is_result(folder: Path) -> bool:
        if folder == directory or (is_run(folder) and (folder / "store.zarr").exists()):
            return True
        return folder != folder.parent and is_result(folder.parent)

    return is_result


def _load(name: str, path: Path, overrides: Sequence[str]) -> Scene:
    try:
        job = load_job(path, overrides)
        if job.study is not None:
            raise JobError(f"{path}: is a study: run it by `eigenscape run`.")
    except EigenscapeError as error:
        return Scene(name, None, str(error))
    return Scene(name, job.model_copy(update={"name": name}))


def _from_table(table: Path, load: Callable[[str, Mapping[str, str]], Scene]) -> list[Scene]:
    try:
        rows = read_table(table)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{table}: cannot be read as a table of scenes ({error}). Give a CSV file with the "
            "column scene.path."
        ) from None
    header = [column for row in rows for column in row]
    for column in dict.fromkeys(header):
        if column != "name" and (message := unknown_key(column)) is not None:
            raise InputError(f"{table}: column {column}: {message} Beside these: name.")
    if rows and "scene.path" not in header:
        raise InputError(f"{table}: has no column scene.path. Its columns are keys of the job.")
    values = [
        {key: _absolute(table, key, cell) for key, cell in row.items() if key != "name"}
        for row in rows
    ]
    given = Counter(row["name"] for row in rows if "name" in row)
    if twice := [name for name, count in given.items() if count > 1]:
        raise InputError(
            f"{table}: name {twice[0]!r} stands in {given[twice[0]]} rows. Give each its own."
        )
    paths = [
        Path(row.get("name") or row.get("scene.path") or f"row-{number}")
        for number, row in enumerate(rows, 1)
    ]
    names = _distinct_names(paths, whole=[row.get("name") for row in rows])
    missing = f"{table}: the row has no scene.path."
    return [
        load(name, row) if "scene.path" in row else Scene(name, None, missing)
        for name, row in zip(names, values, strict=True)
    ]


def _absolute(table: Path, key: str, cell: str) -> str:
    """Return a cell as ``--set`` takes it, with paths that hold wherever the job file lies."""
    if key not in NAMED_FILES or (key == "learn.train" and re.fullmatch(r"[0-9.]+", cell)):
        return cell

    def located(path: str) -> str:
        if is_registered(path) or "://" in path:
            return path
        return own_path(Path(own_path(table)).parent / Path(path).expanduser())

    given: Any = cell
    if cell.startswith("["):
        with suppress(ValueError):  # what is wrong with it is said when the job is checked
            given = json.loads(cell)
    return json.dumps(with_files(key, given, located), ensure_ascii=False)


def with_name(scene: Scene, name: str) -> Scene:
    """Return a scene under another name."""
    job = scene.job and scene.job.model_copy(update={"name": name})
    return replace(scene, name=name, job=job)


def stem_of(name: str) -> str:
    """Return the name that a scene would have if no other one had its stem.

    Examples
    --------
    >>> stem_of("tile-3fa2b1"), stem_of("tile-3fa2b1-2"), stem_of("tile-2")
    ('tile', 'tile', 'tile-2')
    """
    return _DISTINCT.sub("", name)


def _quoted(path: Path) -> str:
    return json.dumps(str(path), ensure_ascii=False)


_DISTINCT = re.compile(r"-[0-9a-f]{6}(-\d+)?$")
"""What `_distinct_names` adds."""


_MOST_CHARACTERS, _MOST_BYTES = 80, 160
"""Of a stem. File systems take names of 255 bytes, and those of runs, their choices and logs are longer."""


def _shortened(stem: str) -> str:
    return stem[:_MOST_CHARACTERS].encode()[:_MOST_BYTES].decode(errors="ignore")


def _distinct_names(paths: Sequence[Path], whole: Sequence[str | None] = ()) -> list[str]:
    """Return a name for each path that a directory can have: its stem, and more where two share it.

    A name depends on its own path and those of the same stem alone: the others keep theirs when more
    scenes arrive.
    """
    given = list(whole) or [None] * len(paths)
    stems = [
        _shortened(re.sub(r"[^\w.+-]+", "-", name or path.stem).strip("-.")) or "scene"
        for name, path in zip(given, paths, strict=True)
    ]
    shared = {stem for stem, count in Counter(stems).items() if count > 1}
    seen: Counter[str] = Counter()
    names = []
    for stem, path in zip(stems, paths, strict=True):
        name = stem
        if stem in shared:
            name = f"{stem}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:6]}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names
