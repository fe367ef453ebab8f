"""The catalogue as scenes that a job can name: where their files are on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eigenscape.datasets.cache import find_form, prepared, prepared_key
from eigenscape.datasets.catalog import DATA_SETS
from eigenscape.datasets.entry import DataSet, Form
from eigenscape.datasets.fetch import Progress, by_hand, fetch
from eigenscape.errors import SceneError
from eigenscape.scenes.registry import Located, registered
from eigenscape.scenes.types import Legend


@dataclass(frozen=True)
class RegisteredScene:
    """A data set and what can be done with it here.

    Attributes
    ----------
    data_set
        What the catalogue says of it.
    """

    data_set: DataSet

    @property
    def name(self) -> str:
        """What ``scene.path`` says."""
        return self.data_set.name

    @property
    def legend(self) -> Legend:
        """Names and colours of the classes."""
        return self.data_set.legend

    @property
    def installed(self) -> bool:
        """Whether its files are on this machine, or none are needed."""
        return self.data_set.kind == "made" or find_form(self.data_set) is not None

    @property
    def drawn(self) -> bool:
        """Whether it is made of as many samples as are asked for."""
        return self.data_set.samples is not None

    @property
    def seeded(self) -> bool:
        """Whether it is made with a seed."""
        return self.data_set.seeded

    def fetch(self, progress: Progress | None = None) -> None:
        """Bring its files to the data directory, unless they are here or none are needed.

        Raises
        ------
        FetchError
            There is nothing to fetch, no answer, or content with another hash.
        """
        if self.data_set.kind != "made":
            fetch(self.data_set, progress)

    def locate(self, samples: int | None = None, seed: int | None = None) -> Located:
        """Return the paths of its files; what has to be prepared is, the first time.

        Parameters
        ----------
        samples, seed
            For sets that are made: number of samples, and what they are drawn with.

        Raises
        ------
        SceneError
            The files are not on this machine, or damaged.
        OutputError
            The cache cannot be written.
        """
        if self.data_set.recipe is None:
            form, paths = self._found()
            return Located(
                tuple(map(str, paths[: len(form.scene)])),
                str(paths[-1]) if form.labels else None,
                form.variable,
                form.labels_variable,
            )
        folder = prepared(self.data_set, self._sources(), *self._draw(samples, seed))
        values, labels = (
            next((str(folder / name) for name in names if (folder / name).exists()), None)
            for names in (
                ("values.npy", "values.npz", "scene.tif"),
                ("labels.npy", "scene_labels.tif"),
            )
        )
        assert values is not None, f"{folder} was prepared without values"
        return Located((values,), labels)

    def key(self, samples: int | None = None, seed: int | None = None) -> str | None:
        """Return what prepared arrays are known by; None for files that are read as they are.

        Raises
        ------
        SceneError
            The files are not on this machine.
        """
        if self.data_set.recipe is None:
            return None
        return prepared_key(self.data_set, self._sources(), *self._draw(samples, seed))

    def _draw(self, samples: int | None, seed: int | None) -> tuple[int, int]:
        """Return number of samples and seed, 0 where the data set has no use for them."""
        default = self.data_set.samples
        drawn = 0 if default is None else samples if samples is not None else default
        return drawn, (seed or 0) if self.data_set.seeded else 0

    def _sources(self) -> tuple[Path, ...]:
        return () if self.data_set.kind == "made" else self._found()[1]

    def _found(self) -> tuple[Form, tuple[Path, ...]]:
        found = find_form(self.data_set)
        if found is None:
            fetch = f"Fetch it with: eigenscape data fetch {self.name}"
            what = (
                f"{fetch}. Or: {by_hand(self.data_set)}"
                if self.data_set.remotes
                else (by_hand(self.data_set))
            )
            raise SceneError(f"The data set {self.name} is not on this machine. {what}")
        return found


def names() -> Sequence[str]:
    """Return the names of the catalogue."""
    return tuple(DATA_SETS)


def find(name: str) -> RegisteredScene:
    """Return the data set of a name that is in `names`."""
    return RegisteredScene(DATA_SETS[name])


def fetchable(name: str) -> RegisteredScene:
    """Return a data set of the catalogue, which can be fetched.

    Raises
    ------
    SceneError
        There is no data set of that name, or another package provides it.
    """
    found = registered(name)
    if not isinstance(found, RegisteredScene):
        raise SceneError(f"{name}: the package that provides this data set also fetches it.")
    return found
