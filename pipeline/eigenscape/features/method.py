"""The interface of the methods of ``[features]``: from samples to feature vectors."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eigenscape.base.blocks import Block, sample_blocks
from eigenscape.base.footprint import Footprint
from eigenscape.job.options import FeatureOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from eigenscape.base.vectors import Vectors
    from eigenscape.context import Context
    from eigenscape.job.jobfile import Job
    from eigenscape.store.run import Run


VALUES = "features/values"
"""The array in which neighbours are sought."""


@dataclass(frozen=True)
class Table:
    """The samples whose features are computed, as far as memory depends on them.

    Attributes
    ----------
    rows, bands
        Number of samples, and of good bands.
    entries
        Values that a sparse table stores, None for any other scene.
    budget
        Bytes that a task may take.
    limit
        Bytes of ``limits.memory``; infinite where no method is to be refused.
    """

    rows: int
    bands: int
    entries: int | None
    budget: int
    limit: float

    @property
    def sparse(self) -> bool:
        """Whether zeros are not stored."""
        return self.entries is not None

    def blocks(self, chunk: int, row: float) -> list[Block]:
        """Return the blocks that fit the budget with so many bytes per sample."""
        return sample_blocks(self.rows, chunk, self.budget, row)


class FeatureMethod(FeatureOptions):
    """A method: its keys, the features stage with it, what that takes, and features of new samples.

    Attributes
    ----------
    axis
        What axes of features are called in pictures.
    needs_pixels
        Reason why the method does not work on tables, and the fix, as the end of a sentence whose subject is
        ``features.method = ...``; empty if it works on tables.
    extends
        Whether features of new samples can be computed, by `extension`. Runs of other methods are neither
        extended nor applied.
    prepares
        Whether it reads its samples by `eigenscape.features.spectral.preparation.sample_rows`, so that
        ``[features.spectral]`` has a meaning.
    whitened
        Whether the noise of each feature has variance 1.
    """

    axis: ClassVar[str] = "feature"
    needs_pixels: ClassVar[str] = ""
    extends: ClassVar[bool] = False
    prepares: ClassVar[bool] = False
    whitened: ClassVar[bool] = False

    def is_projected(self, bands: int) -> bool:
        """Return whether the features of samples with `bands` bands are more than the (scaled) bands."""
        return True

    @abstractmethod
    def count(self, bands: int) -> int:
        """Return the length of a feature vector for samples of `bands` bands, before a filter in space."""

    def columns(self, bands: int) -> int:
        """Return the length of a feature vector for samples of `bands` bands, after any spatial filter."""
        if self.spatial is None:
            return self.count(bands)
        from eigenscape.features.spatial.filters import make_filter

        return len(make_filter(self.spatial).sources(self.count(bands)))

    def stays_sparse(self, columns: int) -> bool:
        """Return whether the features of a sparse table with `columns` columns are the table itself."""
        return False

    @abstractmethod
    def write(self, context: "Context", name: str = VALUES) -> dict[str, Any]:
        """Write ``features/values`` (sample, feature), float32, and what `extension` needs.

        The samples are ``samples/values`` of `context`.

        Parameters
        ----------
        context
            Of the stage.
        name
            Of the array: another one where a filter in space comes after it.

        Returns
        -------
        dict
            What the manifest is to say of it, as JSON values.
        """

    @abstractmethod
    def footprint(self, table: Table) -> Footprint:
        """Return what the stage takes.

        Raises
        ------
        MemoryLimitError
            Something that cannot be cut into blocks does not fit.
        """

    def notes(self, samples: int, bands: int) -> list[str]:
        """Return what a plan should say about it."""
        return []

    def extension(self, run: "Run", bands: int) -> "Callable[[Vectors], Vectors]":
        """Return what makes the features of new samples, as the stage would; only if it `extends`.

        Parameters
        ----------
        run
            A run whose features are finished.
        bands
            Good bands of its scene.

        Returns
        -------
        callable
            Of samples, shape (samples, bands), to their features, shape (samples, features); it can be
            pickled.
        """
        raise NotImplementedError(f"{type(self).__name__}.extends is not set")


def feature_method(job: "Job") -> FeatureMethod:
    """Return the method of a job's features."""
    assert isinstance(job.features, FeatureMethod), "every method of the table is one"
    return job.features
