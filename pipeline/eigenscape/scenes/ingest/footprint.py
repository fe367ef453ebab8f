"""Memory and disk for reading a scene: strips, blocks that a reader holds, the copy of valid samples."""

from eigenscape.base.footprint import Footprint
from eigenscape.job.sizes import JobSizes
from eigenscape.scenes.ingest.storage import decoding_bytes, held_bytes, strips_of
from eigenscape.scenes.labels.sources import library_bytes
from eigenscape.scenes.types import Scene
from eigenscape.scenes.views.centred import stored_type
from eigenscape.scenes.views.resampled import bands_read
from eigenscape.store.arrays import chunk_rows, stored_bytes

_PLACING_BYTES = 2**25
"""Of the search for places of pixels: its library, and what the heap keeps of reading (measured: 25 MiB)."""

_READ_ENTRY = 40
"""Bytes per entry of a sparse table while its file is read: as stored, in double and in single."""


def ingest_footprint(sizes: JobSizes, scene: Scene) -> Footprint:
    """Return the memory and disk of the stage.

    Parameters
    ----------
    sizes
        Of the job.
    scene
        Its scene.
    """
    n, bands, strips = sizes.n, sizes.bands, strips_of(scene, sizes.budget)
    if sizes.entries is not None:
        disk = 8 * sizes.entries + 28 * n
        return Footprint(2, shared=_READ_ENTRY * sizes.entries + 60 * n, disk=disk, scratch=disk)
    tasks, rows = sizes.step(chunk_rows(n, 4 * bands), 8 * bands)
    # What is read, and what of it is copied, are steps of their own.
    reading, copying = (min(count, sizes.tasks) for count in (len(strips.groups), tasks))
    at_once = max(reading, copying)
    # As stored and in single precision; which values are valid. A tenth for the caches' own books.
    strip = (stored_type(scene).itemsize + 4.5) * (
        strips.rows * scene.grid.width * bands_read(scene)
    )
    decoded = int(1.1 * strips.kept_bytes) + decoding_bytes(scene)
    each = max(reading * (strip + decoded), copying * 8 * rows * bands) / at_once
    # Values, pixels, labels; the first sample of each row.
    disk = sum(stored_bytes(n, size) for size in (4 * bands, 8, 2))
    disk += stored_bytes(scene.grid.height + 1, 8)
    scratch = n * (4 * bands + 12) + 8 * scene.grid.height
    placing, one, placed = sizes.lookup
    shared = 30 * n + held_bytes(scene) + library_bytes(sizes.job) + _PLACING_BYTES * (placing > 0)
    if placing:
        placing_at_once = min(placing, sizes.tasks)
        most = max(at_once, placing_at_once)
        each, at_once = max(each * at_once, one * placing_at_once) / most, most
    tasks += len(strips.groups) + placing
    return Footprint(tasks, each, shared, disk + placed, scratch, most=at_once)
