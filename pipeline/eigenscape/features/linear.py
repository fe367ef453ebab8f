"""Methods whose features are a linear map of each sample: ``(sample - shift) @ basis``.

A method of this kind defines `fit`; the stage, its memory and features of new samples are here.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from eigenscape.base.footprint import Footprint
from eigenscape.base.memory import CHUNK_ROWS, ROW_TILE
from eigenscape.features.method import VALUES, FeatureMethod, Table
from eigenscape.features.pieces import partial_blocks, piece_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eigenscape.base.vectors import Vectors
    from eigenscape.context import Context
    from eigenscape.store.rows import Rows
    from eigenscape.store.run import Run

_SPECTRAL_BYTES = 8 * 2**20
"""Of the compiled preparation of spectra."""

_TILES = 2
"""Tiles of samples and features that a compiled product holds."""

COPY_ENTRIES = 32 * CHUNK_ROWS
"""Entries of a sparse table that a task copies."""


@dataclass(frozen=True)
class LinearMap:
    """Samples to features.

    Attributes
    ----------
    shift : array of float32, shape (bands,)
        What is subtracted first, None for nothing.
    basis : array of float32, shape (bands, features)
        Of a diagonal one the diagonal, shape (bands,); None for the identity.
    """

    shift: "NDArray[np.float32] | None" = None
    basis: "NDArray[np.float32] | None" = None

    def __call__(self, samples: "Vectors") -> "Vectors":
        """Return the features of samples, shape (samples, features)."""
        import numpy as np

        from eigenscape.features.kernels import project, project_sparse

        if isinstance(samples, np.ndarray):
            return project(samples, self.shift, self.basis)
        assert self.basis is not None, "a sparse table without a basis is copied"
        return project_sparse(samples, self.shift, self.basis)


class LinearMethod(FeatureMethod):
    """A method whose features are a linear map of each sample."""

    extends: ClassVar[bool] = True
    prepares: ClassVar[bool] = True

    @abstractmethod
    def fit(self, context: "Context", source: "Rows") -> tuple[LinearMap, dict[str, Any]]:
        """Return the map, and what the manifest is to say of it beside the number of features.

        Parameters
        ----------
        context
            Of the stage: `Context.map` for passes over the samples.
        source
            The samples.
        """

    def stays_sparse(self, columns: int) -> bool:
        """Whether the features of a sparse table of so many columns are the table itself."""
        return not self.is_projected(columns)

    def row_bytes(self, bands: int) -> int:
        """Return the bytes of a sample's features, as computed and as written."""
        return 8 * self.count(bands)

    def fit_bytes(self, table: Table) -> tuple[float, float]:
        """Return the bytes that a task of `fit` takes and those held beside: here those of the basis."""
        projected = self.is_projected(table.bands)
        return 0.0, 32.0 * table.bands * self.count(table.bands) * projected

    def write(self, context: "Context", name: str = VALUES) -> dict[str, Any]:
        """See `eigenscape.features.projecting.write_linear`."""
        from eigenscape.features.projecting import write_linear

        return write_linear(context, self, name)

    def footprint(self, table: Table) -> Footprint:
        """Count sums over the samples, then their projection."""
        from eigenscape.store.arrays import chunk_rows, stored_bytes

        n, bands, count = table.rows, table.bands, self.count(table.bands)
        if table.entries is not None and self.stays_sparse(bands):
            tasks = -(-table.entries // COPY_ENTRIES)
            return Footprint(tasks, 0, 8 * n, 8 * (table.entries + n))
        row = self.row_bytes(bands)
        ranges = table.blocks(chunk_rows(n, 4 * count), row)
        task, shared = self.fit_bytes(table)
        features = (ranges[0][1] - ranges[0][0]) * row / 2
        # While samples are read, then while features are written.
        each = max(task, features + max(features, self._piece_bytes(table)))
        disk = stored_bytes(n, 4 * count)
        disk += stored_bytes(bands, 4 * count) * self.is_projected(bands)
        shared += _SPECTRAL_BYTES * (self.spectral is not None)
        return Footprint(len(ranges), each, shared, disk)

    def _piece_bytes(self, table: Table) -> float:
        """Return the bytes of the samples that a task reads at a time, and of what is made of them."""
        if table.entries is not None:
            # A tile of a sparse table, four times as full as on average.
            return 24 * min(4 * ROW_TILE * table.entries / table.rows, table.entries)
        # Prepared spectra are a further copy.
        count, copies = self.count(table.bands), 1 + (self.spectral is not None)
        piece = (copies * table.bands + count) * min(piece_rows(table.bands), table.rows)
        return 4.0 * (piece + _TILES * (table.bands + count) * min(ROW_TILE, table.rows))

    def _moment_bytes(self, table: Table) -> float:
        """Return the bytes of the samples of which a task takes moments, and of a tile in double."""
        if table.entries is not None:
            return self._piece_bytes(table)
        return self._piece_bytes(table) + 8.0 * table.bands * min(ROW_TILE, table.rows)

    def extension(self, run: "Run", bands: int) -> LinearMap:
        """Return the map that the stage has stored."""
        from eigenscape.features.projecting import stored_map

        return stored_map(self, run, bands)


class Reducing(LinearMethod):
    """A linear method with fewer features than bands."""

    dimension: Annotated[int, Field(ge=1, le=10_000)] = 80
    """Number of features; a scene with at most this many bands is not projected."""

    def is_projected(self, bands: int) -> bool:
        """Return whether there are more bands than features to make."""
        return self.dimension < bands

    def count(self, bands: int) -> int:
        """Return the length of a feature vector for samples of `bands` bands."""
        return min(self.dimension, bands) if self.is_projected(bands) else bands

    def notes(self, samples: int, bands: int) -> list[str]:
        """Return a note if the samples are not projected."""
        if self.is_projected(bands):
            return []
        return [
            f"not projected: each sample has {bands} values, features.dimension is {self.dimension}"
        ]


class Standardizing(LinearMethod):
    """A linear method that can weigh all bands alike."""

    standardize: bool = False
    """Scale every band to mean 0 and variance 1 first."""

    def stays_sparse(self, columns: int) -> bool:
        """Whether the features of a sparse table of so many columns are the table itself."""
        return not self.standardize and super().stays_sparse(columns)

    def fit_bytes(self, table: Table) -> tuple[float, float]:
        """Count the variances."""
        task, shared = super().fit_bytes(table)
        return max(task, self.standardize * self._moment_bytes(table)), shared

    def standardized(
        self, context: "Context", source: "Rows", basis: "NDArray[np.float64] | None"
    ) -> LinearMap:
        """Return a map whose basis is made for standardised bands, where the job asks for these."""
        import numpy as np

        from eigenscape.features.kernels import unit_scale
        from eigenscape.features.moments import find_moments

        if not self.standardize:
            return LinearMap(None, None if basis is None else basis.astype(np.float32))
        mean, variance, _ = find_moments(context, source, whole=False)
        scale = unit_scale(variance)
        scaled = scale if basis is None else scale[:, None] * basis
        return LinearMap(mean.astype(np.float32), scaled.astype(np.float32))


class Covarying(Reducing):
    """A linear method that is fitted to the covariance of all bands."""

    def fit_bytes(self, table: Table) -> tuple[float, float]:
        """Count the covariance and what it is summed from.

        Raises
        ------
        MemoryLimitError
            These alone do not fit.
        """
        from eigenscape.base.blocks import BASE_BYTES
        from eigenscape.base.footprint import enough
        from eigenscape.base.memory import format_bytes
        from eigenscape.errors import MemoryLimitError

        if not self.is_projected(table.bands):
            return 0.0, 0.0
        # The partial sums and the whole one, or the covariance and its copy.
        sums = len(partial_blocks(table.rows, table.bands)) + 1
        square = 8.0 * max(2, sums) * table.bands**2
        if square > table.limit - BASE_BYTES:
            refused = (
                f'features.method = "{self.method}": the libraries take {format_bytes(BASE_BYTES)}, the '
                f"covariance of {table.bands} columns {format_bytes(square)} while it is computed, and "
                f"limits.memory is {format_bytes(table.limit)}. Set "
                'features.method to "random-projection", or limits.memory to'
            )
            least = enough(int(square) + BASE_BYTES)
            raise MemoryLimitError(f"{refused} {least} or more.", f'{refused} "{least}" or more.')
        # The one task of a sparse table adds to what is held.
        added = 0.0 if table.sparse else 8.0 * table.bands**2
        return self._moment_bytes(table) + added, square
