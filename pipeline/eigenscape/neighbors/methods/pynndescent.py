"""``neighbors.method = "pynndescent"``: NN-descent in memory."""

from typing import TYPE_CHECKING, Literal

from eigenscape.neighbors.method import InMemoryMethod

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eigenscape.base.vectors import Vectors


class NNDescent(InMemoryMethod):
    """NN-descent in memory."""

    method: Literal["pynndescent"] = "pynndescent"
    """NN-descent in memory."""

    def library_bytes(self, *, sparse: bool) -> int:
        """Return the memory of pynndescent."""
        from eigenscape.neighbors.search.searchers import descent_bytes

        return descent_bytes(sparse=sparse)

    def find(
        self, features: "Vectors", k: int, threads: int, dtype: str
    ) -> "tuple[NDArray[np.signedinteger], NDArray[np.float32]]":
        """Descend from random lists to those of near samples."""
        from eigenscape.neighbors.kernels.descent import descend

        return descend(features, k, threads, dtype)
