"""Training samples of a run among the samples of another scene.

Their classes on the map are no measure of it: they take over the run's result, or the machine that
classifies them was fitted to them. They are recognised by their values, not by their position: by
the same bands, to the bit, or by the same features as a training sample, as twins are
(`eigenscape.spectrum.trained.Trained.twins`).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.mapped import save_array
from eigenscape.base.vectors import Vectors
from eigenscape.neighbors.kernels.hashes import hash_rows
from eigenscape.spectrum.trained import Trained
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run


@dataclass(frozen=True)
class Learned:
    """The training samples of a run, to be found among new samples.

    Attributes
    ----------
    folder
        Folder of the data read from the run.
    """

    folder: Path

    def prepare(self, trained: Trained) -> None:
        """Write which samples of the run have the features of a training sample, and hashes of the bands."""
        sample = _training_samples(trained.run)
        hashes = trained.hashes
        save_array(self.folder / "learned.npy", np.isin(hashes, hashes[sample]))
        values = Rows(str(trained.run.array_path("samples/values")))
        found = [np.zeros(0, np.uint64)]
        for start, stop in blocks(values.shape[0], values.step):
            first, last = np.searchsorted(sample, [start, stop])
            if last > first:
                found.append(hash_rows(values.read(start, stop)[sample[first:last] - start]))
        save_array(self.folder / "learned_bands.npy", np.unique(np.concatenate(found)))

    def find(self, samples: Vectors, twins: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which new samples are training samples of the run.

        Parameters
        ----------
        samples : array or csr_array, shape (m, bands)
            Their bands.
        twins : array of int, shape (m,)
            The sample of the run that each coincides with, -1 for none.
        """
        learned = np.load(self.folder / "learned.npy", mmap_mode="r")
        found = np.isin(hash_rows(samples), np.load(self.folder / "learned_bands.npy"))
        has = np.flatnonzero(twins >= 0)
        found[has] |= learned[twins[has]]
        return found


def _training_samples(run: Run) -> NDArray[np.int64]:
    """Return the samples that the map of a run was learned from, ascending; none of clusters."""
    if run.has("learn/sample"):
        return np.asarray(run.open("learn/sample")[...])
    learn = run.record("learn")
    assert learn is not None, "the run has a map"
    if "names" in learn.summary:
        return np.zeros(0, np.int64)
    # An earlier version made the run and did not say: any label may have been one to learn from.
    return np.flatnonzero(run.open("labels/given")[...])
