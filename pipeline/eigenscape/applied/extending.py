"""A run at work on the samples of another scene: what a task does with a block of them."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.applied.index import Index
from eigenscape.applied.learned import Learned
from eigenscape.applied.model import Model
from eigenscape.applied.shares import neighbor_shares, trust
from eigenscape.applied.shift import Shift, reach_of
from eigenscape.applied.ways import NewSamples
from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import (
    attach_memmap,
    create_memmap,
    map_array,
    note_rows,
    save_array,
    write_range,
)
from eigenscape.base.files.whole import write_json
from eigenscape.base.vectors import Vectors
from eigenscape.context import Context
from eigenscape.features.spatial.filtering import filter_features, lay_out
from eigenscape.features.spatial.filters import make_filter
from eigenscape.learn.classmap import DTYPES, ClassMap, class_numbers
from eigenscape.learn.clustering.kernels.agreement import contingency
from eigenscape.learn.clustering.report import describe_agreement
from eigenscape.learn.decide.calibration import calibration_error
from eigenscape.learn.decide.kernels.decisions import Decided, choose, describe
from eigenscape.learn.decide.kernels.scores import accuracy, confusion_matrix
from eigenscape.neighbors.kernels.metrics import lengths
from eigenscape.scenes.views.centring import centre
from eigenscape.spectrum.extension import weigh
from eigenscape.spectrum.trained import FlatNeighbors, Trained
from eigenscape.store.arrays import open_array
from eigenscape.store.rows import Rows

_FILTERED = "filtered"
_FOUND = {**DTYPES, "learned": "bool"}
"""What is found of every sample, by type: its class, and whether it is a training sample of the run."""


@dataclass(frozen=True)
class Extension:
    """A run, read, at work on the samples of another scene. Small, so that every task can carry it.

    Attributes
    ----------
    model
        The run.
    folder
        Folder of the data read from the run and of the results.
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

    def read(self, _: str) -> dict[str, Any] | None:
        """Write what every block needs of the run; return what a summary says of a machine."""
        trained = self._trained()
        scale, least = trained.scale
        save_array(self.folder / "scale.npy", scale)
        classes = np.asarray(trained.run.open("labels/class")[...])
        place = np.full(int(max(*self.model.numbers, classes.max())) + 1, -1, np.int32)
        place[list(self.model.numbers)] = np.arange(self.model.count)
        save_array(self.folder / "classes.npy", place[classes])
        sure = np.asarray(trained.run.open("labels/confidence")[...])
        save_array(self.folder / "sure.npy", sure)
        if self._indexed(trained):
            chosen = trained.candidates[trained.degree[trained.candidates] > 0]
            lists = trained.run.open("neighbors/index")
            self._index(trained).plant(trained.rows, lists, chosen)
            if trained.landmark is not None:
                self._whole_index(trained).plant(trained.rows, lists, np.sort(trained.inside))
        if self.given is not None:
            Learned(self.folder).prepare(trained)
        Shift(self.folder).prepare(trained, self.values.shape[0])
        write_json(self.folder / "run.json", {"least": least, "bandwidth": trained.bandwidth})
        return self.model.way.prepare(self.folder, trained)

    def extend(self, block: Block) -> dict[str, Any]:
        """Classify a block; return how many samples have no class, are far away, and how far all are."""
        trained = self._trained()
        samples = self._samples(trained, block)
        features = self._features(trained, samples, block)
        near = self._search(trained, features, block[0])
        twins = trained.twins(features, self._closest(trained, features, near, block[0]))
        stored = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        scale = map_array(self.folder / "scale.npy")
        weights = weigh(
            near, trained.graph.weights, (np.asarray(scale), stored["least"]), stored["bandwidth"]
        )
        model, sure = self.model, map_array(self.folder / "sure.npy")
        # The confidence of a cluster is a lead and no probability: its samples are all of that cluster.
        shared = np.broadcast_to(np.float32(1), sure.shape) if model.clusters else sure
        p = neighbor_shares(
            near, weights, twins, map_array(self.folder / "classes.npy"), shared, model.count
        )
        called = choose(p.astype(np.float32))
        new = NewSamples(samples, features, near, weights, twins)
        if (scored := model.way.score(self.folder, trained, new)) is not None:
            p[scored.rows] = scored.p
            called[scored.rows] = choose(scored.p)
        known = trust(near, scale)
        known[twins >= 0] = 1
        p = known[:, None] * p + (1 - known[:, None]) / model.count
        learned = np.zeros(len(called), np.bool_)
        if self.given is not None:
            labelled = np.flatnonzero(open_array(self.given)[slice(*block)])
            learned[labelled] = Learned(self.folder).find(samples[labelled], twins[labelled])
        decided = describe(called, p.astype(np.float32))
        if model.clusters:
            alike = np.flatnonzero(twins >= 0)
            decided.confidence[alike] = sure[twins[alike]]
        self._keep(block, decided, learned)
        compared = features if reach_of(trained) is not None else trained.project(samples)
        counted = Shift(self.folder).count(compared, block[0])
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
        return _ask(self._index(trained), trained, features, first)

    def _closest(
        self, trained: Trained, features: Vectors, near: FlatNeighbors, first: int
    ) -> FlatNeighbors:
        """Return lists for `Trained.twins`, by the index of all samples if `near` holds landmarks."""
        if trained.landmark is None or not self._indexed(trained):
            return trained.closest(features, near)
        return _ask(self._whole_index(trained), trained, features, first)

    def _indexed(self, trained: Trained) -> bool:
        return not trained.rows.sparse and trained.neighbors.reach is None

    def _index(self, trained: Trained) -> Index:
        return Index(self.folder, trained.rows.shape, trained.neighbors.k)

    def _whole_index(self, trained: Trained) -> Index:
        folder = self.folder / "whole"
        folder.mkdir(exist_ok=True)
        return Index(folder, trained.rows.shape, 1)

    def create(self) -> None:
        """Reserve the files of what is found."""
        for name, kind in _FOUND.items():
            create_memmap(self.folder / name, self.values.shape[:1], kind)

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


def _ask(index: Index, trained: Trained, features: Vectors, first: int) -> FlatNeighbors:
    """Return the lists of a block of new samples by an index; `first` is the number of its first sample."""
    assert isinstance(features, np.ndarray), "sparse tables are searched exactly"
    found, distance = index.nearest(features, np.arange(first, first + len(features)))
    there = found >= 0
    starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return starts, found[there], lengths(distance[there], trained.neighbors.metric)


def _protocol(compared: int, left_out: int, *, own: bool) -> str:
    """Return a description of the labels on which the scores were measured, or why there are none."""
    scene = "the run's own scene" if own else "this scene"
    if not compared:
        return f"all labels of {scene} are of samples that the run has learned from"
    if left_out:
        return f"the labels of {scene} that the run has not learned from"
    return f"the labels of {scene}" if own else f"the labels of {scene}, which the run has not seen"
