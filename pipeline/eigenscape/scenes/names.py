"""Names of the samples of a registered data set: its words, its postings."""

from pathlib import Path

from eigenscape.job.scene import SceneOptions
from eigenscape.scenes.registry import is_registered, registered
from eigenscape.scenes.types import Scene
from eigenscape.scenes.views.subset import subset_of


def sample_names(options: SceneOptions, scene: Scene) -> list[str] | None:
    """Return the name of each row of a scene, which is what `options` name; None without names."""
    if not (isinstance(options.path, str) and is_registered(options.path)):
        return None
    located = registered(options.path).locate(options.samples, options.seed)
    path = Path(located.paths[0]).with_name("samples.txt")
    if not path.exists():
        return None
    names = path.read_text(encoding="utf-8").splitlines()
    subset = subset_of(scene)
    return names if subset is None else [names[row] for row in subset.rows.tolist()]
