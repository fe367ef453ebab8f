"""The interface of output formats, and the results that they write."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.fingerprint import module_in_a_file
from eigenscape.base.footprint import Footprint
from eigenscape.base.formats import FORMATS
from eigenscape.base.process.cores import usable_cores
from eigenscape.base.registry import Registry
from eigenscape.errors import JobError
from eigenscape.scenes.types import Grid, Legend

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.export.canvas import Canvas


@dataclass(frozen=True)
class Product:
    """The results of a run, ready to be written: arrays on a grid, names, colours and scores.

    Attributes
    ----------
    context
        Of the export stage: the job, the run, and the workspace to write in.
    canvas
        Reads arrays of samples as strips of rows, from the top to the bottom.
    legend
        Name and colour of every class; None where the run has no classes.
    counts
        Samples of each class, by its number (0 for those without one).
    scores
        What the learn stage has measured; empty where there was nothing to measure.
    subtitle
        The scores in one line.
    first
        Column of the first eigenvector that is not constant.
    eigenvectors
        How many eigenvectors to write, from `first`; 0 for none.
    outputs
        Names of the files that are written already, by what they are.
    """

    context: "Context"
    canvas: "Canvas"
    legend: Legend | None
    counts: Mapping[int, int] = field(default_factory=dict)
    scores: Mapping[str, Any] = field(default_factory=dict)
    subtitle: str = ""
    first: int = 0
    eigenvectors: int = 0
    outputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def grid(self) -> Grid:
        """The grid of the files."""
        return self.canvas.grid

    @cached_property
    def class_dtype(self) -> np.dtype[Any]:
        """The smallest type that holds the class numbers: uint8 or uint16."""
        assert self.legend is not None, "only of runs with classes"
        return np.dtype(np.uint8 if max(self.legend.names, default=0) < 256 else np.uint16)

    def has(self, name: str) -> bool:
        """Return whether the run has an array, such as "labels/entropy"."""
        return self.context.run.has(name)

    def path(self, name: str) -> Path:
        """Return where to write the file or directory of ``outputs/`` of a name."""
        return self.context.workspace.file(name)

    def classes(self, label: str | None) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield first row and class numbers, shape (rows, width), of each strip; 0 is no class.

        `label` is what the progress bar says, as in `Canvas.strips`.
        """
        for start, strip in self.canvas.strips("labels/class", 0, label=label):
            yield start, strip.astype(self.class_dtype)

    def shares(self, name: str, label: str | None) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield first row and values, shape (rows, width), of "confidence" or "entropy"; NaN is none."""
        yield from self.canvas.strips(f"labels/{name}", np.nan, label=label)

    @property
    def threads(self) -> int:
        """Number of threads that may write a file."""
        return self.context.job.limits.threads or usable_cores()

    @property
    def tags(self) -> dict[str, str]:
        """What made the files: the version and the run."""
        from eigenscape.base.version import __version__

        return {
            "TIFFTAG_SOFTWARE": f"eigenscape {__version__}",
            "EIGENSCAPE_RUN": self.context.run.path.name,
        }


@dataclass(frozen=True)
class Amounts:
    """The sizes of a scene before the run, for footprints of formats.

    Attributes
    ----------
    cells
        Number of cells of the grid that is written, or of samples of a table.
    bands
        Number of bands of the scene.
    dimension, eigenvectors
        Eigenvectors that are computed, and that are written.
    """

    cells: int
    bands: int
    dimension: int
    eigenvectors: int


class Format(ABC):
    """A format of the files in ``outputs/``.

    A format derives from this class and is registered (`eigenscape.register`).
    """

    registry: ClassVar[Registry[Any]] = FORMATS
    name: ClassVar[str]
    """Name of the format in ``output.formats``; also that of its file or entry point."""
    arrays: ClassVar[tuple[str, ...]] = ("labels/class",)
    """Arrays of the store that it writes; it is passed over in a run that has none of them."""
    tables: ClassVar[bool] = False
    """Whether the format is also written for tables of samples."""
    extra: ClassVar[tuple[str, str, str] | None] = None
    """Optional package that the format needs (module, package, extra), or None."""
    last: ClassVar[bool] = False
    """Whether it describes the other files, and so is written after them."""

    @abstractmethod
    def write(self, product: Product) -> dict[str, str]:
        """Write the files; return their names in ``outputs/`` by what they are, such as "class_map".

        A file or directory appears under its name only when it is complete (`written_whole`,
        `replacing` or `whole_directory`). Strips of rows are written one after the other: what is held
        does not grow with the height of the scene.
        """

    def footprint(self, amounts: Amounts) -> Footprint:
        """Return memory beside the strips that are read (``shared``), and bytes of files (``disk``)."""
        return Footprint(1, disk=10 * amounts.cells)


def formats_of(names: tuple[str, ...]) -> list[Format]:
    """Return the formats of a job in the order in which they are written.

    Raises
    ------
    JobError
        There is none of a name, or the class of a package cannot be used.
    """
    found = [FORMATS.find(name)() for name in dict.fromkeys(names)]
    return sorted(found, key=lambda each: each.last)


def format_modules(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the modules of the formats of a job, whose code its files depend on.

    Raises
    ------
    JobError
        A class was typed in.
    """
    modules = {
        module_in_a_file(type(each), f'output.formats = ["{each.name}"]', JobError)
        for each in formats_of(names)
    }
    return tuple(sorted(modules))
