"""Public scenes that can be named instead of a path."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from eigenscape.errors import MissingExtraError, SceneError, did_you_mean
from eigenscape.scenes.types import Color, Legend


@dataclass(frozen=True)
class RegisteredScene:
    """A public scene that travels in a Python package.

    Attributes
    ----------
    name
        What ``scene.path`` says.
    description
        Sensor, place and date, in a line.
    shape
        Rows, columns, bands.
    classes
        Names of the classes, from number 1.
    colors
        One per class.
    package, extra
        The package that brings the files, and the extra of eigenscape that brings the package.
    cube, labels
        The two files, relative to the package.
    source, licence
        Who made it, and what may be done with it.
    """

    name: str
    description: str
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    colors: tuple[Color, ...]
    package: str
    extra: str
    cube: str
    labels: str
    source: str
    licence: str

    @property
    def installed(self) -> bool:
        """Whether the files are on this machine."""
        directory = self._directory()
        return directory is not None and (directory / self.cube).is_file()

    @property
    def legend(self) -> Legend:
        """Names and colours of the classes."""
        return Legend(
            names=dict(enumerate(self.classes, start=1)),
            colors=dict(enumerate(self.colors, start=1)),
        )

    def locate(self) -> tuple[str, str]:
        """Return the paths of the cube and of the labels.

        Raises
        ------
        MissingExtraError
            The package is not installed, or a version of it without the files.
        """
        directory = self._directory()
        if directory is None or not self.installed:
            raise MissingExtraError(self.package, self.extra, f"The data set {self.name}")
        return str(directory / self.cube), str(directory / self.labels)

    def _directory(self) -> Path | None:
        # find_spec does not import the package: tensorly would take a second.
        spec = find_spec(self.package)
        return Path(spec.origin).parent if spec is not None and spec.origin else None


_INDIAN_PINES: Mapping[str, Color] = {
    "Alfalfa": (255, 179, 0),
    "Corn-notill": (240, 228, 66),
    "Corn-mintill": (201, 178, 30),
    "Corn": (139, 115, 20),
    "Grass-pasture": (144, 214, 96),
    "Grass-trees": (62, 163, 74),
    "Grass-pasture-mowed": (199, 236, 160),
    "Hay-windrowed": (222, 184, 135),
    "Oats": (255, 127, 80),
    "Soybean-notill": (86, 180, 233),
    "Soybean-mintill": (0, 114, 178),
    "Soybean-clean": (20, 60, 130),
    "Wheat": (230, 120, 200),
    "Woods": (0, 90, 50),
    "Buildings-Grass-Trees-Drives": (150, 110, 170),
    "Stone-Steel-Towers": (120, 120, 120),
}

_SCENES = {
    scene.name: scene
    for scene in (
        RegisteredScene(
            name="indian-pines",
            description=(
                "AVIRIS, Indian Pines test site, Indiana, 12 June 1992, 200 bands "
                "(water absorption removed), 16 classes"
            ),
            shape=(145, 145, 200),
            classes=tuple(_INDIAN_PINES),
            colors=tuple(_INDIAN_PINES.values()),
            package="tensorly",
            extra="examples",
            cube="datasets/data/Indian_pines_corrected.npy",
            labels="datasets/data/Indian_pines_gt.npy",
            source="Baumgardner, Biehl, Landgrebe 2015, doi:10.4231/R7RX991C",
            licence="CC-BY 3.0",
        ),
    )
}


def registered_names() -> tuple[str, ...]:
    """Return the names of the registered scenes."""
    return tuple(_SCENES)


def is_registered(name: str) -> bool:
    """Return whether a ``scene.path`` is the name of a registered scene."""
    return name in _SCENES


def registered(name: str) -> RegisteredScene:
    """Return a registered scene.

    Raises
    ------
    SceneError
        There is none of that name.
    """
    if name not in _SCENES:
        raise SceneError(
            f"{name}: no registered data set.{did_you_mean(name, _SCENES)} "
            f"Registered are: {', '.join(_SCENES)}."
        )
    return _SCENES[name]
