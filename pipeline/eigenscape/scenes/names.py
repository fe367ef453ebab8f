"""Names of the samples of a registered data set: its words, its postings."""

from eigenscape.job.scene import SceneOptions
from eigenscape.scenes.registry import registered_file
from eigenscape.scenes.types import Scene
from eigenscape.scenes.views.subset import subset_of


def sample_names(options: SceneOptions, scene: Scene) -> list[str] | None:
    """Return the name of each row of a scene, which is what `options` name; None without names."""
    path = registered_file(options, "samples.txt")
    if path is None:
        return None
    names = path.read_text(encoding="utf-8").splitlines()
    subset = subset_of(scene)
    return names if subset is None else [names[row] for row in subset.rows.tolist()]
