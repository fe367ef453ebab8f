"""Any source to samples: rasters, arrays, registered data sets, their masks and their labels."""

from typing import TYPE_CHECKING

from eigenscape.base.lazily import lazy_names

if TYPE_CHECKING:
    from eigenscape.job.options import SceneOptions
    from eigenscape.scenes.reading import Reader, Resolve
    from eigenscape.scenes.types import Bands, Grid, Scene

__all__ = ["Bands", "Grid", "Reader", "Resolve", "Scene", "SceneOptions"]

_HOME = {
    "Bands": "types", "Grid": "types", "Scene": "types",
    "Reader": "reading", "Resolve": "reading", "SceneOptions": "reading",
}  # fmt: skip

# On first use: whoever imports one of its modules needs no reader.
__getattr__, __dir__ = lazy_names(__name__, _HOME)
