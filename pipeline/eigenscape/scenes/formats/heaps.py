"""HDF5 files read through a check of their global heaps, where texts of any length are kept.

Of a collection with an object of number 0 and length 0 the HDF5 library (2.0.0 too) never finds the end.
Format: HDF5 File Format Specification, version 3.0, section III.E, global heap (from memory): signature
"GCOL", version 1, 3 bytes reserved, size of the collection; then objects: number (2 bytes), references (2), 4
reserved, length, and their bytes, filled to a multiple of 8. Number 0 is what is free, and its length counts
its own head too.
"""

import io
from typing import IO

from eigenscape.errors import SceneError

_SIGNATURE = b"GCOL\x01\0\0\0"
_MOST = 2**26
"""Bytes of a collection: those of attributes have 4,096, or what their longest text needs."""


class CheckedStream(io.RawIOBase):
    """A file for h5py, of which heaps are checked before they are handed on.

    Parameters
    ----------
    stream
        The file, open for reading from any place.
    name
        For messages.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name = stream, name
        self._sound: set[int] = set()
        head = stream.read(16)
        # Bytes of a length, by the version of the superblock (section II.A).
        self._length = head[14 if head[8:9] <= b"\x01" else 10] if len(head) == 16 else 8

    def __repr__(self) -> str:
        # What h5py calls the file.
        return self._name

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """Return the place."""
        return self._stream.tell()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read bytes.

        Raises
        ------
        SceneError
            A heap among them is damaged.
        """
        start = self._stream.tell()
        content = self._stream.read(len(buffer))
        place = content.find(_SIGNATURE)
        while place >= 0:
            self._check(start + place)
            place = content.find(_SIGNATURE, place + 1)
        self._stream.seek(start + len(content))
        buffer[: len(content)] = content
        return len(content)

    def _check(self, place: int) -> None:
        if place in self._sound:
            return
        self._stream.seek(place + len(_SIGNATURE))
        size = int.from_bytes(self._stream.read(self._length), "little")
        if size > _MOST:
            raise self._wrong(place, f"has {size:,} bytes, {_MOST:,} at most are read")
        self._stream.seek(place)
        heap = self._stream.read(size)
        head = -(-(len(_SIGNATURE) + self._length) // 8) * 8
        at = head
        while at + 8 + self._length <= len(heap):
            number = int.from_bytes(heap[at : at + 2], "little")
            length = int.from_bytes(heap[at + 8 : at + 8 + self._length], "little")
            step = length if number == 0 else head + -(-length // 8) * 8
            if step < head or at + step > size:
                raise self._wrong(place, f"has an object of {length:,} bytes")
            at += step
        self._sound.add(place)

    def _wrong(self, place: int, what: str) -> SceneError:
        return SceneError(
            f"{self._name}: is damaged: the heap at byte {place:,} {what}. Download it again."
        )
