"""A scene after ingest, as the manifest describes it: its files need not be opened again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eigenscape.job.options import SceneOptions
from eigenscape.scenes.geometry.companions import locate
from eigenscape.scenes.geometry.located import Located
from eigenscape.scenes.ingest.places import places_of
from eigenscape.scenes.labels.sources import open_classes, open_marks, open_test_labels
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.types import Grid, Labels
from eigenscape.scenes.views.draws import Subset


@dataclass(frozen=True)
class IngestedScene:
    """Grid and classes of a scene that was read.

    Attributes
    ----------
    grid
        Of the scene.
    subset
        Rows drawn of a table, None for all.
    labelled
        Whether it has labels.
    class_names
        Names of their classes by number, as far as there are any.
    options
        ``[scene]`` of the job.
    resolve
        Turns a path of the job into an absolute one.
    places, extent
        The array of where samples lie, and the grid that it counts: `eigenscape.scenes.ingest.places`.
    on_map
        Whether the scene lies on a map that is not its grid: its geometry is opened again then.
    """

    grid: Grid
    subset: Subset | None
    labelled: bool
    class_names: Mapping[int, str]
    options: SceneOptions
    resolve: Callable[[str], str]
    places: str
    extent: Grid
    on_map: bool = False

    @classmethod
    def from_summary(
        cls, summary: Mapping[str, Any], options: SceneOptions, resolve: Callable[[str], str]
    ) -> "IngestedScene":
        """Return the scene of the summary of an ingest stage."""
        drawn = summary.get("subset")
        places, extent = places_of(summary)
        return cls(
            grid=Grid.from_json(summary["grid"]),
            subset=None if drawn is None else Subset(**drawn),
            labelled=bool(summary["labelled"]),
            class_names={int(key): name for key, name in summary.get("class_names", {}).items()},
            options=options,
            resolve=resolve,
            places=places,
            extent=extent,
            on_map="map" in summary,
        )

    def open_marks(self, path: str) -> Labels:
        """Open a file of the job with training pixels: `eigenscape.scenes.labels.sources.open_marks`."""
        return open_marks(self.resolve(path), self.options, self.grid, self.subset, self._located())

    def open_classes(self, path: str) -> Labels:
        """Open a file of the job with other classes: `eigenscape.scenes.labels.sources.open_classes`."""
        return open_classes(self.resolve(path), self.grid, self.subset, self._located())

    def open_test_labels(self, path: str) -> Labels:
        """Open a file of the job with test labels: `eigenscape.scenes.labels.sources.open_test_labels`."""
        return open_test_labels(
            self.resolve(path), self.options, self.grid, self.subset, self._located()
        )

    def _located(self) -> Located | None:
        return locate(open_scene(self.options, self.resolve), self.options) if self.on_map else None
