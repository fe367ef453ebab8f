"""Sources of a scene's geometry: its reader, a GLT or an IGM beside an ENVI file, or the job."""

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.formats.rasters.rasterfiles import open_raster, read_grid
from eigenscape.scenes.geometry.arrays import local_files
from eigenscape.scenes.geometry.inputgeometry import igm_part
from eigenscape.scenes.geometry.located import Line, Located, unite
from eigenscape.scenes.geometry.names import companion_of, name_kind
from eigenscape.scenes.geometry.parts import GridPart, Part, glt_part
from eigenscape.scenes.reading import Resolve
from eigenscape.scenes.types import Geolocation, LookupArray, Scene, geolocation_of
from eigenscape.scenes.views.flightlines import StackedScene
from eigenscape.scenes.views.wrapped import WrappedScene


@dataclass(frozen=True)
class GeolocatedScene(WrappedScene):
    """A scene in sensor geometry, and where its pixels are."""

    geolocation: Geolocation
    notes: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the scene and of its geometry."""
        more = (*local_files(self.geolocation.x), *local_files(self.geolocation.y))
        return tuple(dict.fromkeys((*self.scene.files, *more)))

    @property
    def flags(self) -> tuple[Any, ...]:
        """What a product marks."""
        return tuple(getattr(self.scene, "flags", ()))


def geolocate(scene: Scene, options: SceneOptions, resolve: Resolve) -> Scene:
    """Return a scene with its geometry, where the job names it or a file beside the scene has it.

    Parameters
    ----------
    scene
        As its reader opened it.
    options, resolve
        Of the job.

    Raises
    ------
    SceneError
        What the job names is no GLT and no IGM of this scene.
    """
    if options.geometry == "none":
        return scene
    if options.geometry != "auto":
        if scene.grid.is_table:
            raise SceneError(
                f"scene.geometry = {options.geometry!r}: {scene.files[0]} is a table, whose rows have no "
                "place. "
                "Leave the key out."
            )
        path = resolve(options.geometry)
        check_exists(path)
        same = _shape(path)[:2] == (scene.grid.height, scene.grid.width)
        kind = name_kind(Path(path)) or ("igm" if same else "glt")
        return GeolocatedScene(scene, read_geolocation(path, kind), (_said(path, kind),))
    found = companion_of(scene)
    if found is None:
        return scene
    path, kind = found
    try:
        geolocation = read_geolocation(path, kind)
    except SceneError as error:
        raise SceneError(
            f'{error} It lies beside the scene as its {kind.upper()}: scene.geometry = "none" leaves it '
            "alone, for maps in sensor geometry."
        ) from error
    return GeolocatedScene(scene, geolocation, (_said(path, kind),))


def _said(path: str, kind: str) -> str:
    what = "lookup table (GLT)" if kind == "glt" else "coordinates (IGM)"
    return (
        f"in sensor geometry; maps are made by the {what} {Path(path).name} "
        '(scene.geometry = "none" for maps in sensor geometry)'
    )


def _shape(path: str) -> tuple[int, int, int]:
    with open_raster(path) as dataset:
        return dataset.height, dataset.width, dataset.count


def read_geolocation(path: str, kind: str) -> Geolocation:
    """Return the geometry that a raster of two bands or more holds.

    Raises
    ------
    SceneError
        It has one band, or cannot be opened.
    """
    count = _shape(path)[2]
    if count < 2:
        raise SceneError(
            f"{path}: has one band; a GLT has columns and rows, an IGM eastings and northings. Give a raster "
            "of two bands or more in scene.geometry."
        )
    with open_raster(path) as dataset:
        grid = read_grid(dataset, path)
        fill = next((float(value) for value in dataset.nodatavals if value is not None), None)
        header = dataset.tags(ns="ENVI")
    ignored = header.get("data_ignore_value")
    if fill is None and ignored is not None:
        with suppress(ValueError):
            fill = float(ignored)
    x, y = (LookupArray(path, band, fill) for band in (1, 2))
    if kind == "glt":
        return Geolocation("glt", x, y, grid.crs_wkt, grid.transform)
    return Geolocation("igm", x, y, grid.crs_wkt)


def part_of(scene: Scene, options: SceneOptions) -> Part | None:
    """Return where the pixels of a scene in sensor geometry are; None of others.

    Raises
    ------
    SceneError
        Its geometry cannot be used.
    """
    geolocation = None if options.geometry == "none" else geolocation_of(scene)
    if geolocation is None:
        return None
    if geolocation.crs_wkt is None or options.geometry_crs is not None:
        geolocation = _with_crs(geolocation, options.geometry_crs)
    grid = scene.grid
    files = (geolocation.x.path, geolocation.y.path)
    stamps = tuple(Path(file).stat().st_mtime_ns if Path(file).exists() else 0 for file in files)
    return _part(geolocation, grid.height, grid.width, stamps)


def locate(scene: Scene, options: SceneOptions) -> Located | None:
    """Return where the pixels of a scene are on a map that is not its own grid; None of all other scenes.

    Raises
    ------
    SceneError
        Its geometry cannot be used, or nothing says where a line lies.
    """
    inner: Any = scene
    while not isinstance(inner, StackedScene) and hasattr(inner, "scene"):
        inner = inner.scene
    if not isinstance(inner, StackedScene):
        part = part_of(scene, options)
        if part is None:
            return None
        width = scene.grid.width
        return unite([Line(part, 0, width)], [scene.files[0]], width)
    if options.geometry == "none" and not any(line.grid.transform for line in inner.lines):
        return None
    lines = []
    for line, first in zip(inner.lines, inner.firsts, strict=True):
        part = part_of(line, options)
        if part is None and line.grid.transform is None:
            raise SceneError(
                f"{line.files[0]}: the position of this line is unknown, and a mosaic of several needs it. "
                "Give lines "
                "with georeference, or a GLT or IGM beside each (NAME_glt, NAME_igm)."
            )
        lines.append(Line(part or GridPart(line.grid), first, line.grid.width))
    names = [line.files[0] for line in inner.lines]
    return unite(lines, names, inner.grid.width)


@lru_cache(maxsize=16)
def _part(geolocation: Geolocation, height: int, width: int, stamps: tuple[int, ...]) -> Part:
    # Asked for by the plan, by labels, by the stage: the arrays are read through once.
    del stamps
    make = glt_part if geolocation.kind == "glt" else igm_part
    return make(geolocation, height, width)


def _with_crs(geolocation: Geolocation, given: str | None) -> Geolocation:
    from dataclasses import replace

    from rasterio.crs import CRS
    from rasterio.errors import CRSError

    if given is None:
        return geolocation
    try:
        wkt = str(CRS.from_user_input(given).to_wkt())
    except CRSError as error:
        raise SceneError(
            f"scene.geometry_crs = {given!r}: is not a coordinate system ({error}). Give for example "
            '"EPSG:32633".'
        ) from error
    return replace(geolocation, crs_wkt=wkt)
