"""Where a finished run puts its samples in the plane, and what is known of each of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.errors import JobError
from eigenscape.features.method import feature_method
from eigenscape.job.jobfile import Job
from eigenscape.job.study import Coordinates
from eigenscape.labels.training import Draws
from eigenscape.scenes.ingest.places import source_pixels
from eigenscape.scenes.names import sample_names
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.registry import registered_file
from eigenscape.scenes.types import Grid, Legend
from eigenscape.store.manifest import Record
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run


@dataclass(frozen=True)
class Shown:
    """A finished run, opened for pictures and measures.

    Attributes
    ----------
    job
        Its job.
    run
        Its run directory.
    """

    job: Job
    run: Run

    @classmethod
    def open(cls, job: Job, path: Path) -> "Shown":
        """Open a run directory whose every stage is finished."""
        return cls(job, Run(path, create=False))

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self.run.open("samples/pixel").shape[0])

    @property
    def grid(self) -> Grid:
        """The scene's grid; of a table one column."""
        return Grid.from_json(self._record("ingest").summary["grid"])

    @property
    def legend(self) -> Legend:
        """Names and colours of the classes, as far as the scene has them."""
        summary = self._record("ingest").summary
        return Legend(
            {int(number): name for number, name in summary["class_names"].items()},
            {int(number): tuple(color) for number, color in summary["class_colors"].items()},
        )

    def summary(self, stage: str) -> dict[str, Any]:
        """Return what a stage reported."""
        return self._record(stage).summary

    def mode(self, number: int) -> int:
        """Return the column of eigenvector `number` = 1, 2 ...: the constant ones do not count.

        Under a potential the lowest is not quite constant, and does not count either.
        """
        first = max(1, int(self._record("spectrum").summary["null_vectors"]))
        last = int(self.run.open("spectrum/value").shape[0]) - 1
        return min(first + number - 1, last)

    def plane(self, coordinates: Coordinates) -> NDArray[np.float32]:
        """Return the first two eigenvectors or features, shape (samples, 2).

        Raises
        ------
        JobError
            There are not two of them.
        """
        if coordinates == "features":
            rows = Rows(str(self.run.array_path("features/values")))
            if rows.shape[1] < 2:
                raise JobError(
                    f"{self.job.name}: a picture of features needs two of them, and there is "
                    f"{rows.shape[1]}. Show eigenvectors, or raise features.dimension."
                )
            return np.concatenate(
                [_dense(rows.read(*block)[:, :2]) for block in self._blocks(rows.step)]
            )
        first, second = self.mode(1), self.mode(2)
        if first == second:
            raise JobError(
                f"{self.job.name}: a picture of two eigenvectors needs spectrum.dimension = 2 or more."
            )
        vectors = self.run.open("spectrum/vector")
        return np.concatenate(
            [
                vectors[slice(*block)][:, [first, second]]
                for block in self._blocks(vectors.chunks[0])
            ]
        )

    def axis(self, coordinates: Coordinates) -> str:
        """Return what the axes of a plane are called, without their number."""
        return "eigenvector" if coordinates == "eigenvectors" else feature_method(self.job).axis

    def names(self) -> list[str] | None:
        """Return the name of every sample, as the words of the data set `brown`; None of others."""
        named = sample_names(self.job.scene, open_scene(self.job.scene, self.job.resolve))
        if named is None:
            return None
        return [named[row] for row in self.run.open("samples/pixel")[...].tolist()]

    def labels(self, kind: Literal["given", "class"]) -> NDArray[np.uint16] | None:
        """Return given labels or called classes, shape (samples,), 0 = none; None without any."""
        found = self.run.read(f"labels/{kind}")
        return found if found is not None and found.any() else None

    def parameter(self) -> NDArray[np.float64] | None:
        """Return the first parameter of every sample of a made manifold; None of anything else."""
        found = self.parameters()
        return None if found is None else found[:, 0]

    def parameters(self) -> NDArray[np.float64] | None:
        """Return all of them, shape (samples, parameters)."""
        file = registered_file(self.job.scene, "parameters.npy")
        if file is None:
            return None
        found: NDArray[np.float64] = np.load(file)[self.run.open("samples/pixel")[...]]
        return found

    def training(self) -> NDArray[np.int64]:
        """Return the samples that the class map learned from; none where it learned from all."""
        options = self.job.learn
        given = self.labels("given")
        if isinstance(options.train, str) or options.unsupervised or given is None:
            return np.empty(0, np.int64)
        sample = np.flatnonzero(given)
        _, classes = np.unique(given[sample], return_inverse=True)
        pixel = self.run.open("samples/pixel")[...][sample]
        row, column = np.divmod(pixel, self.grid.width)
        draws = Draws(options, classes, row, column, self.grid)
        return sample[draws.draw(draws.protocols[0], 0)]

    def marked(self, rows: tuple[int, ...]) -> NDArray[np.int64]:
        """Return the samples that some rows of the table are.

        Raises
        ------
        JobError
            One of them is no sample.
        """
        pixel = source_pixels(self.summary("ingest"), self.run.open("samples/pixel")[...])
        place = np.minimum(np.searchsorted(pixel, rows), len(pixel) - 1)
        for row, found in zip(rows, pixel[place].tolist(), strict=True):
            if row != found:
                raise JobError(
                    f"{self.job.name}: study.mark = {list(rows)}: row {row} is not a sample. Rows count "
                    f"from 0, and {len(pixel)} of them are samples."
                )
        return np.asarray(place, np.int64)

    def image(self, name: str, most: int, column: int | None = None) -> NDArray[np.float64]:
        """Return an array of samples as a picture of at most `most` pixels a side, NaN without sample.

        Every few rows and columns are taken: classes have no mean.
        """
        grid, array, pixel = self.grid, self.run.open(name), self.run.open("samples/pixel")
        step = self._step(most)
        picture = np.full(self.image_shape(most), np.nan)
        for block in self._blocks(array.chunks[0]):
            row, place = np.divmod(pixel[slice(*block)], grid.width)
            taken = (row % step == 0) & (place % step == 0)
            values = array[slice(*block)]
            values = values if column is None else values[:, column]
            picture[row[taken] // step, place[taken] // step] = values[taken]
        return picture

    def image_shape(self, most: int) -> tuple[int, int]:
        """Return the shape of such a picture."""
        step = self._step(most)
        return -(-self.grid.height // step), -(-self.grid.width // step)

    def _step(self, most: int) -> int:
        return -(-max(self.grid.height, self.grid.width) // most)

    def _blocks(self, step: int) -> Iterator[Block]:
        yield from blocks(self.samples, step)

    def _record(self, stage: str) -> Record:
        record = self.run.record(stage)
        assert record is not None, f"{stage} of a finished run"
        return record


def _dense(vectors: Any) -> NDArray[np.float32]:
    return vectors if isinstance(vectors, np.ndarray) else np.asarray(vectors.toarray())
