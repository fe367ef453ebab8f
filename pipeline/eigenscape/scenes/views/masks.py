"""A scene less the pixels that ``scene.mask`` leaves out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.vectors import Vectors
from eigenscape.errors import SceneError
from eigenscape.job.scene import NO_FLAGS, UNSAFE, SceneOptions
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.formats.arrays.arrayfiles import array_format
from eigenscape.scenes.formats.rasters.planes import Plane, find_plane, open_plane
from eigenscape.scenes.formats.tables.sparse import SparseScene
from eigenscape.scenes.formats.tables.tabularfiles import is_tabular
from eigenscape.scenes.readers.envi import image_of
from eigenscape.scenes.reading import Resolve
from eigenscape.scenes.sensors.contents import Flag, FlagPlane
from eigenscape.scenes.types import Scene
from eigenscape.scenes.views.wrapped import WrappedScene

_MOST_READ, _MOST_VALUES = 16, 2**23
"""Blocks of rows that tell how many pixels a flag marks, and values of its layer in one of them."""


@dataclass(frozen=True)
class MaskedScene(WrappedScene):
    """A scene and its mask."""

    mask: Plane
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the scene and of the mask."""
        return tuple(dict.fromkeys((*self.scene.files, *self.mask.files)))

    def read(self, start: int, stop: int) -> tuple[Vectors, NDArray[np.bool_]]:
        """Read rows start ... stop-1; see `Scene.read`.

        Raises
        ------
        SceneError
            A file is truncated, damaged or gone.
        """
        kept = self.kept(start, stop)
        if not kept.any() and not isinstance(self.scene, SparseScene):
            # The part of a big scene on which methods are compared lies in few of its rows.
            return np.zeros((*kept.shape, self.bands.count), np.float32), kept
        values, valid = self.scene.read(start, stop)
        valid &= kept
        values[~valid] = 0
        return values, valid

    def kept(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return which pixels of rows start ... stop-1 the mask keeps, shape (stop - start, width)."""
        stored, given = self.mask.rows(start, stop)
        kept: NDArray[np.bool_] = given & (stored != 0)
        return kept


@dataclass(frozen=True)
class JointPlane:
    """Pixels that all of several masks keep, as 1; fulfils the `Plane` protocol."""

    planes: tuple[Plane, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files of all masks."""
        return tuple(dict.fromkeys(name for plane in self.planes for name in plane.files))

    def rows(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Read rows start ... stop-1: 1 where all of them are given and not 0."""
        read = (plane.rows(start, stop) for plane in self.planes)
        kept = np.logical_and.reduce([given & (stored != 0) for stored, given in read])
        return kept.astype(np.uint8), np.ones(kept.shape, np.bool_)


def mask_scene(scene: Scene, options: SceneOptions, resolve: Resolve) -> Scene:
    """Leave out the pixels that the job's masks leave out: where one is 0, NaN or nodata, or a flag is set.

    Parameters
    ----------
    scene
        As its reader opened it.
    options
        ``[scene]`` of the job. Without ``mask`` the flags in `eigenscape.job.scene.UNSAFE` are left out,
        as far as the product has them.
    resolve
        Makes the paths of masks absolute.

    Raises
    ------
    SceneError
        A mask cannot be read or is not on the scene's grid; or the scene has no such flag.
    """
    flags = _chosen_flags(scene, options)
    planes: list[Plane] = [FlagPlane(flags)] if flags else []
    planes += [_open_mask(scene, resolve(path)) for path in options.mask_files]
    notes = (_told(flags),) if flags else ()
    if not planes:
        return scene
    return MaskedScene(scene, planes[0] if len(planes) == 1 else JointPlane(tuple(planes)), notes)


def told_shares(scene: Scene) -> str:
    """Return how many pixels each flag leaves out, by some rows spread over the scene; "" for none.

    Parameters
    ----------
    scene
        As `eigenscape.scenes.open.open_scene` returns it.

    Raises
    ------
    SceneError
        A file is truncated, damaged or gone.
    """
    masked: Any = scene
    while not isinstance(masked, MaskedScene):
        masked = getattr(masked, "scene", None)
        if masked is None:
            return ""
    planes = masked.mask.planes if isinstance(masked.mask, JointPlane) else (masked.mask,)
    shares: dict[str, float] = {}
    for flag in (flag for plane in planes if isinstance(plane, FlagPlane) for flag in plane.flags):
        shares[flag.name] = max(shares.get(flag.name, 0.0), _share(flag, masked))
    listed = ", ".join(f"{name} on {share:.0%}" for name, share in shares.items() if share > 0)
    return listed and f"by rows spread over the scene, flags leave out pixels: {listed}"


def _share(flag: Flag, scene: Scene) -> float:
    """Return the share of pixels that a flag marks in some rows."""
    height, width = scene.grid.height, scene.grid.width
    step = max(1, min(scene.row_step, _MOST_VALUES // (width * len(flag.bands))))
    rows = blocks(height, step)
    rows = rows[:: -(-len(rows) // _MOST_READ)]
    marked = sum(int(np.count_nonzero(flag.marked(*block))) for block in rows)
    return marked / (width * sum(stop - start for start, stop in rows))


def _chosen_flags(scene: Scene, options: SceneOptions) -> tuple[Flag, ...]:
    known: tuple[Flag, ...] = getattr(scene, "flags", ())
    if options.mask is None:
        return tuple(flag for flag in known if flag.name in UNSAFE)
    wanted = options.mask_flags
    if NO_FLAGS in wanted and len(wanted) > 1:
        raise SceneError(
            f'scene.mask = {list(wanted)}: "{NO_FLAGS}" and names of flags contradict each other. '
            "Leave one out."
        )
    names = [flag.name for flag in known]
    for name in wanted:
        if name not in (*names, NO_FLAGS):
            has = f"Its flags are {', '.join(names)}" if names else "It has no flags"
            raise SceneError(
                f'scene.mask: {scene.files[0]} does not mark "{name}". {has}. Correct the key, or '
                "write a file of "
                f'this name as "./{name}".'
            )
    return tuple(flag for flag in known if flag.name in wanted)


def _told(flags: tuple[Flag, ...]) -> str:
    listed = ", ".join(f"{flag.name} ({flag.told})" for flag in flags)
    return (
        f'pixels left out by flags of the product: {listed}; scene.mask = "{NO_FLAGS}" keeps them'
    )


def _open_mask(scene: Scene, path: str) -> Plane:
    check_exists(path)
    if is_tabular(path):
        raise SceneError(
            f"{path}: scene.mask is an array or a raster on the scene's grid, and this is a table. "
            "Give one number for each sample as an array (.npy), 0 to leave it out."
        )
    if array_format(path) is not None:
        return find_plane(path, None, scene.grid, key="mask")
    return open_plane(image_of(path), scene.grid, key="mask")
