"""What the registry knows of a data set: its files, where they come from, what it is made with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from eigenscape.scenes.types import Color, Legend

Kind = Literal["files", "prepared", "made"]


@dataclass(frozen=True)
class Remote:
    """A public file.

    Attributes
    ----------
    file
        Its name in the data set's folder.
    url
        Where it is.
    sha256
        Of its content.
    size
        Bytes, as far as it is known: for the list and for progress.
    members
        For an archive: the files to take out of it. It is not kept then.
    """

    file: str
    url: str
    sha256: str
    size: int
    members: tuple[str, ...] = ()

    @property
    def brings(self) -> tuple[str, ...]:
        """Names of the files that it leaves in the folder."""
        return tuple(name.rpartition("/")[2] for name in self.members) or (self.file,)


@dataclass(frozen=True)
class Form:
    """One of the forms in which the files of a data set may be found.

    Attributes
    ----------
    scene
        The scene's files: several for one band each.
    labels
        File of the labels; None where there are none, or where the scene's own file has them.
    variable, labels_variable
        As the keys of ``[scene]``.
    package
        Python package that the paths are relative to; None for the data set's folder.
    """

    scene: tuple[str, ...]
    labels: str | None = None
    variable: str | None = None
    labels_variable: str | None = None
    package: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that has to be there."""
        return self.scene if self.labels is None else (*self.scene, self.labels)


@dataclass(frozen=True)
class DataSet:
    """A data set that ``scene.path`` can name.

    Attributes
    ----------
    name
        What ``scene.path`` says.
    description
        What it is, in a line.
    shape
        Rows, columns and bands of a scene; samples and columns of a table.
    source, licence
        Who made it, and what may be done with it.
    classes
        Names and colours of the classes, from number 1; a colour may be None.
    forms
        Forms of its files; the first that is here is taken. Empty for a set that is made.
    recipe
        Function of `eigenscape.datasets.recipes` that makes its arrays, from the files if it has any.
    seeded
        Whether it is made with ``scene.seed``.
    samples
        Number of samples that are drawn unless the job says another; None where it is not free.
    remotes
        Files to fetch.
    obtain
        What to do where there is nothing to fetch: a sentence.
    subfolder
        Its folder in a data directory, unless that is its name.
    """

    name: str
    description: str
    shape: tuple[int, ...]
    source: str
    licence: str
    classes: Mapping[str, Color | None] = field(default_factory=dict)
    forms: tuple[Form, ...] = ()
    recipe: str | None = None
    seeded: bool = False
    samples: int | None = None
    remotes: tuple[Remote, ...] = ()
    obtain: str = ""
    subfolder: str | None = None

    @property
    def kind(self) -> Kind:
        """Whether its files are read as they are, prepared once, or made without any."""
        if self.recipe is None:
            return "files"
        return "prepared" if self.forms else "made"

    @property
    def folder(self) -> str:
        """Its folder in a data directory."""
        return self.subfolder or self.name

    @property
    def size(self) -> int:
        """Bytes to download."""
        return sum(remote.size for remote in self.remotes)

    @property
    def legend(self) -> Legend:
        """Names and colours of the classes."""
        numbered = list(enumerate(self.classes.items(), start=1))
        return Legend(
            names={number: name for number, (name, _) in numbered},
            colors={number: color for number, (_, color) in numbered if color is not None},
        )
