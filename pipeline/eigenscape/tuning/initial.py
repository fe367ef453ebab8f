"""A first job file for a scene, with its metadata, bands to drop, labels and suitable methods."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.names import own_path
from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.base.shares import inflected
from eigenscape.errors import JobError, OutputError, SceneError
from eigenscape.job.jobfile import Job, parse_job
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.formats.tables.sparse import SparseScene
from eigenscape.scenes.formats.tables.tabular import TabularScene
from eigenscape.scenes.formats.tables.tabularfiles import TabularFile
from eigenscape.scenes.ingest.content import check_counts, check_two_classes
from eigenscape.scenes.ingest.storage import strips_of
from eigenscape.scenes.labels.sources import open_labels
from eigenscape.scenes.labels.tables import label_column
from eigenscape.scenes.labels.vectorclasses import LIKELY
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.preview import count_labels, preview_labels
from eigenscape.scenes.registry import is_registered
from eigenscape.scenes.types import Scene
from eigenscape.scenes.windows import DEFAULT, BadBands, band_ranges, find_windows
from eigenscape.workflow.choice.auto import has_few_labels
from eigenscape.workflow.choice.candidates import FEW_LABELS, candidate, fitted
from eigenscape.workflow.choice.survey import Survey, survey

_LABEL_NAMES = ("{stem}_labels", "{stem}_gt", "{stem}_groundtruth", "labels_{stem}")
_LABEL_ENDINGS = (".tif", ".tiff", ".img", ".mat", ".npy", ".gpkg", ".shp", ".geojson")
_LEAST_ROWS = 3
"""Least number of rows for each text on average, if the texts of a column are classes."""
_READ_ROWS = 2**16
_PLACES, _PIXELS = 16, 2**12
"""Blocks of rows by which bands are looked at first, and the pixels that they hold together, at least."""
_STRIP_BYTES = 2**26
"""Of values that are read at once."""
_NAMES = (
    "The labels have no names of the classes. For names in the legend and tables, add:",
    'classes = {1 = "forest", 2 = "meadow"}',
)
_LEAST_VALID = 0.5
"""Share of the pixels that the median band has, below which a band costs more pixels than it is worth."""


def stem_of(scene: str) -> str:
    """Return a name for the job of a scene: that of its file, without ending, wildcards and query.

    Examples
    --------
    >>> stem_of("tiles/lsat7_2000_*.tif"), stem_of("https://example.org/a.tif?token=1"), stem_of("*.tif")
    ('lsat7_2000', 'a', 'scene')
    """
    name = scene.rstrip("/").rpartition("/")[2].partition("?")[0] if "://" in scene else scene
    stem = re.sub(r"[*?\[\]{}:\"<>|]+", "", Path(name).stem)
    return stem.strip(" ._-") or "scene"


def job_text(
    scene: Sequence[str],
    labels: str | None,
    *,
    base: Path,
    name: str,
    field: str | None = None,
    layer: str | None = None,
) -> str:
    """Return a commented job file for a scene.

    Parameters
    ----------
    scene
        A file, or a list of single-band files; a URL; the name of a data set.
    labels
        Their file; looked for beside the scene and in its own file by default.
    base
        Directory of the job file, which relative paths are relative to.
    name
        Stem of the job file.
    field, layer
        Attribute or column, and layer of a vector file, with the class.

    Raises
    ------
    SceneError
        The scene or its labels cannot be read.
    """
    path: str | list[str] = [_located(one, base) for one in scene]
    path = path[0] if len(path) == 1 else path
    table: dict[str, dict[str, object]] = {"scene": {"path": path}}

    def parse() -> Job:
        return parse_job(table, name=name, base=base, source=f"{name}.toml")

    given = {"labels_field": field, "labels_layer": layer}
    table["scene"] |= {key: value for key, value in given.items() if value is not None}
    if labels:
        table["scene"]["labels"] = _located(labels, base)
    opened = open_scene(parse().scene, parse().resolve)
    remarks: list[str] = []
    if isinstance(opened, TabularScene) and not labels and field is None:
        column, remarks = _find_column(opened.file)
        if column:
            table["scene"]["labels_field"] = column
            # Once more: the column of the labels is not counted as a band.
            opened = open_scene(parse().scene, parse().resolve)
    bad = find_bad_bands(parse(), opened)
    if bad:
        table["scene"]["bad_bands"] = list(band_ranges([n for each in bad for n in each.numbers]))
    if find_windows(parse().scene, opened.bands):
        # The default, said: whoever reads the job sees what is left out.
        table["scene"]["drop_wavelengths"] = list(DEFAULT)
    # A field of a table that is named, or was found, is a column of its own.
    own = isinstance(opened, TabularScene) and "labels_field" in table["scene"]
    if not labels and not own:
        found, refused = _find_labels(path, base, table, name)
        remarks = [*remarks, *refused]
        table["scene"] |= {"labels": found} if found else {}
    for key in ("labels", "labels_layer", "labels_field"):  # in this order, below what is left out
        if key in table["scene"]:
            table["scene"][key] = table["scene"].pop(key)
    job = parse()
    # Labels that do not fit are refused here, not when the job runs.
    opened = open_scene(job.scene, job.resolve)
    notes, *_ = preview_labels(job, opened)
    about = survey(job)
    small, things = fitted(job, about), opened.grid.things
    # So are scenes and labels that no run could use.
    check_counts(candidate(job, small).job, about.samples, f"{about.samples} valid {things}")
    if about.labelled:
        check_two_classes(about.labelled, about.names)
    advice = _advice(about, things, candidate(job, FEW_LABELS).title)
    return _write(table, opened, about, small, bad, [*remarks, *notes], advice)


def write_new(path: Path, text: str, *, force: bool) -> None:
    """Write a file that is not there yet, or any if forced.

    Raises
    ------
    OutputError
        It is there.
    """
    if path.exists() and not force:
        raise OutputError(f"{path}: already exists. Give another name, or --force to replace it.")
    with explain_write_errors(path), written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def find_bad_bands(job: Job, scene: Scene) -> list[BadBands]:
    """Return the bands to leave out beside those that the metadata marks, by reason.

    Bands that lie where water vapour leaves no light are left out of any job: `eigenscape.scenes.windows`.
    Some rows are read first. Of bands without values in most pixels, which cost those pixels, the scene is
    read band by band there; and where a band is constant there, the scene is read until it is not.
    """
    bands, things = scene.bands, scene.grid.things
    if isinstance(scene, SparseScene) or bands.count < 2:
        return []
    found = []
    rows = np.array(scene.row_numbers if isinstance(scene, TabularScene) else (), np.intp)
    if len(rows) < bands.count:
        found.append(BadBands(_numbers(rows), "rises by 1 from row to row, as row numbers do"))
    empty = _empty_bands(job, scene)
    found.append(
        BadBands(
            _numbers(empty),
            f"has no value in most {things} where other {_word(scene)}s have one",
        )
    )
    constant = np.setdiff1d(_constant_bands(job, scene, empty), empty)
    # Where all are, nothing is said about the bands; a run refuses pixels that are all alike.
    if len(constant) + len(empty) + len(rows) < bands.count:
        found.append(BadBands(_numbers(constant), f"constant in all valid {things}"))
    return [each for each in found if each.numbers]


def _word(scene: Scene) -> str:
    return "column" if scene.grid.is_table else "band"


def _numbers(indices: NDArray[np.intp]) -> tuple[int, ...]:
    return tuple(int(index) + 1 for index in indices)


def _some_rows(scene: Scene) -> list[Block]:
    """Return blocks of rows that are spread over a scene; a row of a table is one sample."""
    height, width = scene.grid.height, scene.grid.width
    rows = -(-_PIXELS // (_PLACES * width))
    if height <= _PLACES * rows:
        return blocks(height, rows)
    starts = np.linspace(0, height - rows, _PLACES).astype(int).tolist()
    return [(start, start + rows) for start in starts]


def _without(job: Job, indices: Sequence[int]) -> Scene:
    """Return the scene of a job with further bands left out, by index."""
    bad = (*job.scene.bad_bands, *(int(index) + 1 for index in indices))
    return open_scene(job.scene.model_copy(update={"bad_bands": bad}), job.resolve)


def _valid(scene: Scene, rows: Sequence[Block]) -> float:
    """Return the share of the pixels of some rows that are valid."""
    return float(np.concatenate([scene.read(*block)[1] for block in rows]).mean())


def _empty_bands(job: Job, scene: Scene) -> NDArray[np.intp]:
    """Return the indices of bands without a value in most pixels in which other bands have one."""
    rows, good = _some_rows(scene), scene.bands.good_index
    if _valid(scene, rows) > 1 - _LEAST_VALID:
        return np.zeros(0, np.intp)  # pixels have values in all bands at once
    shares = np.array(
        [_valid(_without(job, np.setdiff1d(good, one).tolist()), rows) for one in good]
    )
    return np.asarray(good[shares < _LEAST_VALID * np.median(shares)])


def _constant_bands(job: Job, scene: Scene, empty: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the indices of bands that have one value in all valid pixels."""
    left = _without(job, empty.tolist()) if len(empty) else scene
    low = np.full(left.bands.count, np.inf)
    high = np.full(left.bands.count, -np.inf)
    strips = chain.from_iterable(strips_of(left, _STRIP_BYTES).groups)
    for block in chain(_some_rows(left), strips):
        values, valid = left.read(*block)
        pixels = np.asarray(values)[valid]
        if len(pixels):
            low, high = np.minimum(low, pixels.min(axis=0)), np.maximum(high, pixels.max(axis=0))
        if (low < high).all():
            break
    return np.asarray(left.bands.good_index[low == high])


def _located(path: str, base: Path) -> str:
    """Return a path as the job file says it: relative to it where the file lies below."""
    if is_registered(path) or "://" in path:
        return path
    absolute = Path(own_path(path))
    return str(absolute.relative_to(base) if absolute.is_relative_to(base) else absolute)


def _find_labels(
    path: str | list[str], base: Path, table: dict[str, dict[str, object]], name: str
) -> tuple[str | None, list[str]]:
    """Return labels beside a scene, or in its own file, that fit it, and remarks on those that do not.

    None where there are none.
    """
    if not isinstance(path, str) or is_registered(path) or "://" in path:
        return None, []
    whole = base / path
    beside = [
        whole.with_name(pattern.format(stem=whole.stem) + ending)
        for pattern in _LABEL_NAMES
        for ending in _LABEL_ENDINGS
    ]
    own = [whole] if whole.suffix in (".npz", ".mat") else []
    remarks: list[str] = []
    for one in (*beside, *own):
        if not one.exists():
            continue
        tried = {**table, "scene": {**table["scene"], "labels": str(one)}}
        try:
            job = parse_job(tried, name=name, base=base)
            scene = open_scene(job.scene, job.resolve)
            preview_labels(job, scene)
            if (labels := open_labels(job.scene, scene, job.resolve)) is not None:
                check_two_classes(count_labels(labels, scene), labels.legend.names)
        except (SceneError, JobError) as error:
            if one is not whole:  # which need not hold any
                reason = " ".join(str(error).removeprefix(f"{one}: ").split())
                remarks.append(f"{one.name}: not used: {reason}")
            continue
        return _located(str(one), base), remarks
    return None, remarks


def _find_column(file: TabularFile) -> tuple[str | None, list[str]]:
    """Return the column of a table that holds the classes, None if that is not plain, and remarks on it."""
    names = [column.name for column in file.columns]
    texts = [column.name for column in file.columns if not column.numbers and column.name]
    likely = [name for name in names if name.lower() in LIKELY]
    for name in likely or texts if len(likely or texts) == 1 else ():
        try:
            classes = label_column(file, name)
        except SceneError:
            continue  # fractions, or more texts than classes can be
        known = sum(
            int(np.count_nonzero(classes.read(start, stop)))
            for start, stop in blocks(file.rows, _READ_ROWS)
        )
        count = len({number for number in classes.numbers.values() if number})
        if 1 < count <= known / _LEAST_ROWS:
            what = "has a name that suggests classes" if likely else "is the only one with text"
            return name, [f"The column {name!r} {what}: taken for the class."]
        if count == 1 and 0 in classes.numbers.values():
            return None, [
                f"May hold the class: {name!r}, but 0 means no label, so one class is left."
            ]
    listed = ", ".join(f"{name!r}" for name in likely or texts)
    return None, [f"May hold the class: {listed}."] if listed else []


def _write(
    table: dict[str, dict[str, object]],
    scene: Scene,
    about: Survey,
    small: Mapping[str, Any],
    bad: Sequence[BadBands],
    notes: Sequence[str],
    advice: Sequence[str],
) -> str:
    document = tomlkit.document()

    def say(where: tomlkit.TOMLDocument | tomlkit.items.Table, *lines: str) -> None:
        for line in lines:
            where.add(tomlkit.comment(line))

    say(document, *describe_scene(scene))
    document.add(tomlkit.nl())
    part = tomlkit.table()
    labelled = (key for key in table["scene"] if key.startswith("labels"))
    about_labels = next(labelled, None)
    for key, value in table["scene"].items():
        if key == "bad_bands":
            for each in bad:
                listed = ", ".join(map(str, band_ranges(each.numbers)))
                word = inflected(_word(scene).capitalize(), len(each.numbers))
                say(part, f"{word} {listed}: {each.reason}.")
        if key == about_labels:
            say(part, *notes)
        part[key] = value
    if about.labelled and not about.names:
        say(part, *_NAMES)
    if about_labels is None:
        example = 'labels = "labels.tif"     # class numbers, 0 for none'
        if isinstance(scene, TabularScene):
            example = 'labels_field = "NAME"     # column with the class, empty for none'
        elif scene.grid.is_table:
            example = 'labels = "labels.npy"     # class numbers of the samples, 0 for none'
        say(part, *(notes or [example]))
    document["scene"] = part
    say(document["scene"], *_ground(about))
    learn = tomlkit.table()
    say(learn, *advice)
    if about.labelled:
        learn["method"] = "auto"
    else:  # a choice of methods sets them by itself
        for dotted, value in small.items():
            name, _, key = dotted.partition(".")
            part = tomlkit.table()
            say(part, f"As many as {about.samples} valid {scene.grid.things} allow.")
            part[key] = value
            document[name] = part
    document["learn"] = learn
    return tomlkit.dumps(document)


def _ground(about: Survey) -> list[str]:
    """Return what is to be said of the place of the pixels."""
    if about.table:
        return ["A table: no squares, no spatial edges, no noise fractions."]
    if about.alike is None:
        return []
    share = (
        f"adjacent pixels differ by {100 * about.alike:.0f} % of the difference of random pixels"
    )
    if about.contiguous:
        return [
            f"Adjacent pixels are alike ({share}): noise fractions and spatial methods may help."
        ]
    return [f"Adjacent pixels are not alike ({share}): no noise fractions, no spatial methods."]


def _advice(about: Survey, things: str, few: str) -> list[str]:
    """Return what is to be said of the methods, of which `few` are those for few labels."""
    if not about.labelled:
        return [
            "Without labels the run writes eigenvectors. Clusters: set",
            'method = "spectral-clustering"',
            "clusters = 8",
        ]
    labels = f"{sum(about.labelled.values()):,} labelled {things} of {len(about.labelled)} classes"
    if has_few_labels(about):
        return [f"{labels} are few: nothing is compared, and the run takes", few]
    return [
        f"{labels}: about twelve methods are compared before the first",
        "stage. `eigenscape tune` takes longer and compares more.",
    ]
