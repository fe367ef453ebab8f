"""The extend stage: the classes of a run on the samples of another scene.

::

    model    one task        scale, degree, class of each sample of the run; index; usual distances; its
                             training samples; a machine on their labels, where there are enough
    filter   sample blocks   features, where the run filters them in the grid of its scene
    extend   sample blocks   features, nearest of the run, weights, eigenvectors, class
    write    sample blocks   what the blocks found -> chunks of labels/class, .../confidence, .../entropy
    score    one task        where the scene has labels, without those of training samples of the run

New samples do not see each other. A sample that coincides with one of the run's is taken for it.
"""

import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenscape.applied.index import Index
from eigenscape.applied.learned import Learned
from eigenscape.applied.machine import Machine, choose_machine, draw_labels
from eigenscape.applied.model import Model
from eigenscape.applied.shares import neighbor_shares, trust
from eigenscape.applied.shift import Shift, verdict
from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.base.files.mapped import (
    attach_memmap,
    create_memmap,
    note_rows,
    save_array,
    write_range,
)
from eigenscape.base.files.whole import write_json
from eigenscape.base.vectors import Vectors
from eigenscape.context import Context
from eigenscape.errors import StoreError
from eigenscape.features.spatial.filtering import filter_features, lay_out
from eigenscape.features.spatial.filters import make_filter
from eigenscape.job.jobfile import Job
from eigenscape.labels.priors import weigh_scores
from eigenscape.labels.splits import square_of
from eigenscape.learn.classmap import DTYPES, ClassMap, class_numbers
from eigenscape.learn.clustering.kernels.agreement import contingency
from eigenscape.learn.clustering.report import describe_agreement
from eigenscape.learn.decide.calibration import calibration_error
from eigenscape.learn.decide.kernels.decisions import (
    Calibration,
    Decided,
    choose,
    describe,
    probabilities,
)
from eigenscape.learn.decide.kernels.scores import accuracy, confusion_matrix
from eigenscape.learn.method import Classifier, learn_method
from eigenscape.neighbors.kernels.metrics import lengths
from eigenscape.neighbors.kernels.tiles import check_range
from eigenscape.neighbors.search.exhaustive import MOST_NEIGHBORS
from eigenscape.scenes.types import Grid
from eigenscape.scenes.views.centring import centre
from eigenscape.spectrum.extension import nystrom, weigh
from eigenscape.spectrum.trained import FlatNeighbors, Trained, read_origin
from eigenscape.store.arrays import chunk_rows, open_array
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run

RUN_BYTES = 96
"""Memory per sample of the run while it is read: hashes and their order, scale, degree, classes."""

_BANDS, _FEATURES = "bands", "features"
_FILTERED = "filtered"
_FOUND = {**DTYPES, "learned": "bool"}
"""What is found of every sample, by type: its class, and whether it is a training sample of the run."""

_ENTRY_BYTES = 64
_WIDTH_BYTES = 24
_TILE_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Extension:
    """A run, read, at work on the samples of another scene. Small, so that every task can carry it.

    Attributes
    ----------
    model
        The run.
    folder
        Where lies what was read of it, and what is found.
    values
        Samples of the scene.
    origin
        What they lack, None for nothing: what was subtracted as they were read.
    given
        Where the labels of the scene lie, None if it has none.
    """

    model: Model
    folder: Path
    values: Rows
    origin: tuple[float, ...] | None
    given: str | None

    def read(self, _: str) -> None:
        """Write what every block needs of the run."""
        trained = self._trained()
        scale, least = trained.scale
        save_array(self.folder / "scale.npy", scale)
        save_array(self.folder / "degree.npy", trained.degree)
        classes = np.asarray(trained.run.open("labels/class")[...])
        place = np.full(int(max(*self.model.numbers, classes.max())) + 1, -1, np.int32)
        place[list(self.model.numbers)] = np.arange(self.model.count)
        save_array(self.folder / "classes.npy", place[classes])
        sure = np.ones(len(classes), np.float32)
        if not self.model.clusters:
            sure = np.asarray(trained.run.open("labels/confidence")[...])
        save_array(self.folder / "sure.npy", sure)
        if self._indexed(trained):
            chosen = trained.candidates[trained.degree[trained.candidates] > 0]
            self._index(trained).plant(trained.rows, trained.run.open("neighbors/index"), chosen)
        if self.given is not None:
            Learned(self.folder).prepare(trained)
        Shift(self.folder).prepare(trained, self.values.shape[0])
        stored: dict[str, Any] = {"least": least, "bandwidth": trained.bandwidth}
        if self.model.how == "support-vectors":
            stored["machine"] = self._fit_machine(trained)
        write_json(self.folder / "run.json", stored)

    def _fit_machine(self, trained: Trained) -> dict[str, Any]:
        """Write ``machine.npz``; return what it takes, its calibration and its accuracy."""
        run = trained.run
        sample = np.asarray(run.open("learn/sample")[...])
        y = np.searchsorted(self.model.numbers, np.asarray(run.open("learn/class")[...]))
        drawn = draw_labels(y)
        sample, y = sample[drawn], y[drawn]
        pixel = np.asarray(run.open("samples/pixel")[...])[sample]
        ingest = run.record("ingest")
        assert ingest is not None, "the run has a map"
        grid = Grid.from_json(ingest.summary["grid"])
        # Samples of a table are squares of their own.
        row, column = np.divmod(pixel, grid.width)
        square = pixel if grid.is_table else square_of(row, column, grid)
        tables = {_BANDS: Rows(str(run.array_path("samples/values"))), _FEATURES: trained.rows}
        if trained.features.spatial is None and not trained.projected:
            del tables[_FEATURES]
        vectors = {name: np.asarray(rows.take(sample)) for name, rows in tables.items()}
        chosen = choose_machine(vectors, y, square, self.model.count)
        chosen.machine.save(self.folder / "machine.npz")
        return {
            "vectors": chosen.vectors,
            "calibration": chosen.calibration.to_json(),
            "labels": len(y),
            "accuracy": chosen.accuracy,
        }

    def extend(self, block: Block) -> dict[str, Any]:
        """Classify a block; return how many samples have no class, are far away, and how far all are."""
        trained = self._trained()
        samples = self._samples(trained, block)
        features = self._features(trained, samples, block)
        check_range(features)
        near = self._search(trained, features, block[0])
        twins = trained.twins(features, near)
        stored = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        scale = self._load("scale")
        weights = weigh(
            near, trained.graph.weights, (np.asarray(scale), stored["least"]), stored["bandwidth"]
        )
        model = self.model
        p = neighbor_shares(
            near, weights, twins, self._load("classes"), self._load("sure"), model.count
        )
        called = choose(p.astype(np.float32))
        if model.how == "support-vectors":
            new = np.flatnonzero(twins < 0)
            told = stored["machine"]
            given = features if told["vectors"] == _FEATURES else samples
            assert isinstance(given, np.ndarray), "sparse tables have no machine"
            scores = Machine.load(self.folder / "machine.npz").scores(given[new], model.count)
            p[new] = probabilities(scores, Calibration.from_json(told["calibration"]))
            called[new] = choose(scores)
        elif model.how == "eigenvectors":
            table = csr_array((weights, near[1], near[0]), (features.shape[0], len(scale)))
            coordinates = nystrom(
                table, twins, np.asarray(self._load("degree")),
                np.asarray(trained.run.open("spectrum/value")[...]), trained.vectors(),
                trained.graph.laplacian,
            )  # fmt: skip
            scores = self._classify(coordinates.astype(np.float32))
            # Where the formula divides by too little, the neighbours say what there is to say.
            told = np.isfinite(coordinates).all(axis=1)
            p[told] = probabilities(scores[told], model.calibration)
            called[told] = choose(scores[told])
        known = trust(near, scale)
        known[twins >= 0] = 1
        p = known[:, None] * p + (1 - known[:, None]) / model.count
        learned = np.zeros(len(called), np.bool_)
        if self.given is not None:
            labelled = np.flatnonzero(open_array(self.given)[slice(*block)])
            learned[labelled] = Learned(self.folder).find(samples[labelled], twins[labelled])
        self._keep(block, describe(called, p.astype(np.float32)), learned)
        counted = Shift(self.folder).count(features, block[0])
        return {"without": int((called < 0).sum()), "far": int((known < 1).sum()), "shift": counted}

    def unfiltered(self, block: Block) -> NDArray[np.float32]:
        """Return the features of a block before they are filtered."""
        trained = self._trained()
        found = trained.unfiltered(self._samples(trained, block))
        assert isinstance(found, np.ndarray), "pixels are dense"
        return found

    def filter(self, context: Context) -> None:
        """Write the filtered features of all samples, as the run's own are: by its unit, in this grid."""
        trained = self._trained()
        told = trained.run.manifest["stages"]["features"]["summary"]
        features, bands = told["unfiltered"], self.values.shape[1]
        unfiltered = lay_out(context, self.unfiltered, features, 12.0 * bands)
        assert trained.features.spatial is not None, "the run has a filter"
        found = make_filter(trained.features.spatial)
        create_memmap(self.folder / _FILTERED, self._shape(trained), np.float32)
        write = partial(write_range, self.folder / _FILTERED)
        filter_features(context, found, unfiltered, told["noise"], write)

    def _features(self, trained: Trained, samples: Vectors, block: Block) -> Vectors:
        if trained.features.spatial is None:
            return trained.project(samples)
        filtered = attach_memmap(self.folder / _FILTERED, self._shape(trained), np.float32)
        return trained.searched(np.array(filtered[slice(*block)]))

    def _shape(self, trained: Trained) -> tuple[int, int]:
        """Return the shape of the filtered features of the scene."""
        return self.values.shape[0], trained.rows.shape[1] - trained.rows.unit

    def _samples(self, trained: Trained, block: Block) -> Vectors:
        """Return samples of the scene as the run has its own: less its origin, or whole without one."""
        samples = self.values.read(*block)
        if trained.origin is not None or self.origin is None or not isinstance(samples, np.ndarray):
            return samples
        return centre(samples, -np.array(self.origin))

    def _search(self, trained: Trained, features: Vectors, first: int) -> FlatNeighbors:
        if not self._indexed(trained):
            return trained.search(features)
        numbers = np.arange(first, first + features.shape[0])
        assert isinstance(features, np.ndarray), "sparse tables are searched exactly"
        index, distance = self._index(trained).nearest(features, numbers)
        there = index >= 0
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return starts, index[there], lengths(distance[there], trained.neighbors.metric)

    def _indexed(self, trained: Trained) -> bool:
        return not trained.rows.sparse and trained.neighbors.reach is None

    def _index(self, trained: Trained) -> Index:
        return Index(self.folder, trained.rows.shape, trained.neighbors.k)

    def _classify(self, coordinates: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the scores of the run's classifier, shape (m, classes)."""
        run = self._trained().run
        stored = np.asarray(run.open("learn/model")[...])
        method = learn_method(self.model.job)
        assert isinstance(method, Classifier), "clusterings have no scores"
        scores = np.asarray(method.estimate(coordinates, stored), np.float32)
        if (run.array_path("learn/prior") / "zarr.json").exists():
            scores = weigh_scores(scores, np.asarray(run.open("learn/prior")[...]))
        return scores

    def _keep(self, block: Block, found: Decided, learned: NDArray[np.bool_]) -> None:
        classes = class_numbers(found.classes, self.model.numbers)
        parts = (classes, found.confidence, found.entropy, learned)
        for name, part in zip(_FOUND, parts, strict=True):
            target = self.found(name, "r+")
            target[slice(*block)] = part
            note_rows(target, *block)

    def found(self, name: str, mode: str = "r") -> NDArray[Any]:
        """Map what was found of all samples."""
        return attach_memmap(self.folder / name, self.values.shape[:1], _FOUND[name], mode)

    def write(self, class_map: ClassMap, block: Block) -> None:
        """Copy a block of what was found into the arrays."""
        names = [name for name in DTYPES if name != "entropy" or not self.model.clusters]
        class_map.write(block[0], *(self.found(name)[slice(*block)] for name in names))

    def score(self, own: bool, _: str) -> dict[str, Any]:
        """Compare the classes with labels, except those of training samples of the run.

        Parameters
        ----------
        own
            Whether the scene is the run's own.
        """
        labels = np.asarray(open_array(str(self.given))[...])
        sample = np.flatnonzero(labels)
        learned = np.array(self.found("learned")[sample])
        sample = sample[~learned]
        left_out = int(learned.sum())
        protocol = _protocol(len(sample), left_out, own=own)
        if not len(sample):
            return {
                "protocol": protocol, "left_out": left_out, "overall_accuracy": None, "samples": 0,
            }  # fmt: skip
        labels, called = labels[sample], np.array(self.found("class")[sample])
        if self.model.clusters:
            classes = np.unique(labels)
            table = contingency(
                np.searchsorted(classes, labels), called.astype(np.intp) - 1,
                (len(classes), self.model.count),
            )  # fmt: skip
            agreed = describe_agreement(table, classes.tolist())
            return {"clusters": self.model.count, "protocol": protocol, "agreement": agreed}
        numbers = np.unique([*self.model.numbers, *labels.tolist()])
        truth = np.searchsorted(numbers, labels)
        predicted = np.where(called > 0, np.searchsorted(numbers, called), -1)
        confusion = confusion_matrix(truth, predicted, len(numbers))
        sure = np.array(self.found("confidence")[sample], np.float64)
        return {
            "protocol": protocol,
            "left_out": left_out,
            **accuracy(confusion),
            "classes": numbers.tolist(),
            "confusion": confusion.tolist(),
            "unknown_classes": sorted(set(numbers.tolist()) - set(self.model.numbers)),
            "expected_calibration_error": calibration_error(sure, called == labels),
        }

    def _trained(self) -> Trained:
        return Trained.open(self.model.path, spatial=True)

    def _load(self, name: str) -> NDArray[Any]:
        return np.asarray(np.load(self.folder / f"{name}.npy", mmap_mode="r"))


def extend_stage(model: Model, context: Context) -> dict[str, Any]:
    """Write ``labels/class``, ``labels/confidence`` and ``labels/entropy`` of a scene by a run."""
    values = Rows(context.path("samples/values"))
    samples, _ = values.shape
    origin, ingest = read_origin(context.run), context.run.record("ingest")
    assert ingest is not None, "extend follows ingest"
    extension = Extension(
        model, context.workspace.folder("model"), values,
        None if origin is None else tuple(origin.tolist()),
        context.path("labels/given") if ingest.summary["labelled"] else None,
    )  # fmt: skip
    context.map("model", extension.read, ["all"], label="reading the run")
    if model.job.features.spatial is not None:
        extension.filter(context)
    class_map = ClassMap.create(context.workspace, samples, entropy=not model.clusters)
    for name, kind in _FOUND.items():
        create_memmap(extension.folder / name, (samples,), kind)
    ranges = sample_blocks(samples, 1, context.task_bytes - chunk_bytes(model), row_bytes(model))
    found = context.map("extend", extension.extend, ranges, label="extending")
    ranges = blocks(samples, chunk_rows(samples, 4))
    context.map("write", partial(extension.write, class_map), ranges, label="writing classes")
    scores: dict[str, Any] = {}
    if extension.given is not None:
        work = partial(extension.score, _is_own_scene(model, context.job))
        scores = context.map("score", work, ["all"])[0]
        if left_out := scores.get("left_out"):
            context.reporter.note(
                f"{left_out} of {left_out + scores['samples']} labelled samples coincide with training "
                "samples of the run: they are left out of the accuracy"
            )
    if not model.unchanged():
        raise StoreError(
            f"{model.path}: was run anew while it was being applied. Give the same command again."
        )
    told = {key: sum(part[key] for part in found) for key in ("without", "far")}
    if told["far"]:
        context.reporter.note(
            f"{told['far']} of {samples} samples are far from all of the run's: their confidence is "
            "lowered"
        )
    shift = verdict([part["shift"] for part in found])
    if shift and shift["differs"]:
        context.reporter.note(shift["message"])
    return {
        "classes": list(model.numbers),
        "legend": asdict(model.legend),
        "clusters": model.clusters,
        "how": model.how,
        "machine": _machine_of(extension),
        "samples": samples,
        "without_class": told["without"],
        "far": told["far"],
        "shift": shift,
        "scores": scores,
    }


def _machine_of(extension: Extension) -> dict[str, Any] | None:
    """Return what the machine takes, how many labels it has seen, and its accuracy on squares left out."""
    stored = json.loads((extension.folder / "run.json").read_text(encoding="utf-8"))
    told = stored.get("machine")
    return told and {name: told[name] for name in ("vectors", "labels", "accuracy")}


def _is_own_scene(model: Model, job: Job) -> bool:
    return job.scene.path == model.job.scene.path or [
        job.resolve(path) for path in _paths(job.scene.path)
    ] == list(_paths(model.job.scene.path))


def _protocol(compared: int, left_out: int, *, own: bool) -> str:
    """Return a description of the labels on which the scores were measured, or why there are none."""
    scene = "the run's own scene" if own else "this scene"
    if not compared:
        return f"all labels of {scene} are of samples that the run has learned from"
    if left_out:
        return f"the labels of {scene} that the run has not learned from"
    return f"the labels of {scene}" if own else f"the labels of {scene}, which the run has not seen"


def _paths(path: str | tuple[str, ...]) -> tuple[str, ...]:
    return (path,) if isinstance(path, str) else path


def row_bytes(model: Model) -> float:
    """Return what a new sample takes in a task."""
    run = Run(model.path, create=False)
    columns = Rows(str(run.array_path("features/values"))).shape[1]
    modes = run.open("spectrum/value").shape[0] if model.how == "eigenvectors" else 0
    options = model.job.neighbors
    longest = 2 * options.k if options.reach is None else MOST_NEIGHBORS
    return (
        20 * model.bands.count + 24 * columns + 24 * modes + _ENTRY_BYTES * longest
        + _WIDTH_BYTES * model.count
    )  # fmt: skip


def chunk_bytes(model: Model) -> int:
    """Return what a task takes beside its samples: tiles of a search, and a chunk of the run."""
    run = Run(model.path, create=False)
    rows = Rows(str(run.array_path("features/values")))
    size = 8 * rows.shape[1] * rows.step
    if model.how == "eigenvectors":
        stored = run.open("spectrum/vector")
        size = max(size, 12 * stored.shape[1] * stored.chunks[0])
    return _TILE_BYTES + int(size)
