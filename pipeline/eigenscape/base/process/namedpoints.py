"""Named points that a run passes, at which a test may end it or look at what is there.

Each stands where all stages pass, between two changes on the disk: what a kill leaves behind differs
from point to point, and between two points it is that of one of them.

::

    stage begins            nothing of the stage is done
      step begins           a step of it is to map its blocks
        array created       its metadata lie in the workspace, and are not noted
        file reserved       a raw file has its size, and holds zeros
        file emptied        the old content is given up, the new one is not written
        data written        rows, a range or a raw file: not noted
        task ends           a block has written all of its data, and its result has not been returned
        block returned      its result is there, and not noted
        entry written       the journal has one line more
      step settles          all blocks are done; files written here and there are not noted
      step ends
      file written          a file lies beside its place, under another name
      file in place         it was renamed, and is not noted
      output begins         a file of outputs/ is to be written: nothing of it is noted before the commit
      file goes             the deletion is in the journal; the file still exists
    stage worked            all is done, nothing is committed
      part moved            one array or file of a commit is in place
      workspace discarded   renamed, and not deleted
    stage committed
    array linked            the files of an array of another run, without its metadata
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

POINTS = (
    "stage begins", "step begins", "array created", "file reserved", "file emptied",
    "data written", "task ends", "block returned", "entry written", "step settles", "step ends",
    "file written", "file in place", "output begins", "file goes", "stage worked", "part moved",
    "workspace discarded", "stage committed", "array linked",
)  # fmt: skip
"""Names of all points, as above."""

Hook = Callable[[str, str], None]
"""Called with the name of a point and what it is about: a stage, a step, a block or a file."""

_hook: Hook | None = None


def reached(name: str, about: object = "") -> None:
    """Tell that a point is reached."""
    if _hook is not None:
        _hook(name, str(about))


@contextmanager
def watched_by(hook: Hook) -> Iterator[None]:
    """Call a hook at every point that this process reaches in the block, in any thread."""
    global _hook
    before, _hook = _hook, hook
    try:
        yield
    finally:
        _hook = before
