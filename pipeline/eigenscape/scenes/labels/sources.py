"""Labels of a scene: class numbers on its grid, from rasters, vectors, arrays, tables or a data set."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.job.jobfile import Job
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.files.identity import told_links
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.formats.arrays.arrayfiles import array_format
from eigenscape.scenes.formats.rasters.containers import SUFFIXES, find_labels_layer
from eigenscape.scenes.formats.rasters.planes import (
    Plane,
    RasterPlane,
    find_plane,
    inspect_plane,
    is_reversed,
    lies_elsewhere,
    lies_on,
    wrong_size,
)
from eigenscape.scenes.formats.rasters.rasterfiles import open_raster
from eigenscape.scenes.formats.tables.tabularfiles import is_geoparquet, is_tabular
from eigenscape.scenes.geometry.companions import locate
from eigenscape.scenes.geometry.located import Located
from eigenscape.scenes.grids import (
    check_overlap,
    extent,
    extent_in,
    same_extent,
    same_size,
    turned,
)
from eigenscape.scenes.labels.carried import CarriedLabels
from eigenscape.scenes.labels.classnumbers import class_numbers
from eigenscape.scenes.labels.legends import array_legend, read_legend, told_zero
from eigenscape.scenes.labels.renumbered import RenumberedLabels, names_in_common, renumbered
from eigenscape.scenes.readers.envi import image_of
from eigenscape.scenes.registry import is_registered, registered
from eigenscape.scenes.types import Grid, Labels, Legend, Scene
from eigenscape.scenes.views.draws import Subset
from eigenscape.scenes.views.subset import SubsetLabels, subset_of

_TOLD = 5
"""Names in a message."""

_VECTORS = {
    ".fgb", ".gdb", ".geojson", ".geojsonl", ".gml", ".gpkg", ".gpx", ".json", ".kml", ".kmz",
    ".mif", ".shp", ".shz", ".sqlite", ".tab",
}  # fmt: skip

_VECTOR_BYTES = 36 * 2**20
"""Measured: 17 MiB more for points in a CSV file, 29 for polygons."""


def is_vector(path: str | None) -> bool:
    """Return whether a path names a file of points or polygons, by its ending."""
    return path is not None and Path(path).suffix.lower() in _VECTORS


def _is_point_table(path: str) -> bool:
    """Return whether a file, as labels of an image, is a table of points without geometries."""
    return is_tabular(path) and not is_geoparquet(path)


@dataclass(frozen=True)
class PlaneLabels:
    """Labels in an array or a raster; fulfils the `Labels` protocol."""

    plane: Plane
    legend: Legend
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the labels are read from."""
        return self.plane.files

    def read(self, start: int, stop: int) -> NDArray[np.uint16]:
        """Read the labels of rows start ... stop-1; see `Labels.read`.

        Raises
        ------
        SceneError
            A file is damaged, or a value is no class number.
        """
        stored, given = self.plane.rows(start, stop)
        return class_numbers(
            np.where(given, stored, 0), self.files[0], first_row=start,
            raster=isinstance(self.plane, RasterPlane),
        )  # fmt: skip


def unlabelled(labels: Labels, value: int) -> str:
    """Return what to do with a value that means no label."""
    labels = _innermost(labels)
    if isinstance(labels, PlaneLabels) and isinstance(labels.plane, RasterPlane):
        return (
            f"declare it as nodata: gdal_edit.py -a_nodata {value} {shlex.quote(labels.files[0])}"
        )
    return "set it to 0"


def _innermost(labels: Labels) -> Labels:
    while isinstance(labels, SubsetLabels | CarriedLabels | RenumberedLabels):
        labels = labels.labels
    return labels


def numbered_like(labels: Labels, known: Mapping[int, str]) -> Labels:
    """Return labels under the numbers of known classes that have the same names.

    An array or a raster keeps its own numbers if none of its names is known: they may be in another language.

    Parameters
    ----------
    labels
        The labels.
    known
        Names of the known classes, by number.

    Raises
    ------
    SceneError
        The labels have names alone, and the known classes have none.
    """
    if labels.legend.alphabetical and not known:
        raise SceneError(
            f"{labels.files[0]}: names its classes ({_told(labels.legend.names.values())}), and the classes "
            "that it is compared with have numbers alone, so that it is unknown which is which. Name the "
            "numbers in scene.classes, or give numbers in this file."
        )
    own = isinstance(_innermost(labels), PlaneLabels)
    if own and not names_in_common(labels.legend.names, known):
        return labels
    return renumbered(labels, known)


def numbers_taken(labels: Labels, known: Mapping[int, str]) -> tuple[str, ...]:
    """Return a note of what the numbers of labels are taken for; none where these or nothing has names."""
    if labels.legend.names or not known:
        return ()
    classes = _told(f"{number} is {name}" for number, name in sorted(known.items()))
    name = Path(labels.files[0]).name
    return (f"{name} has no names of classes, so that numbers are compared: {classes}",)


def _told(texts: Iterable[str]) -> str:
    """Return a list of a few texts."""
    first, rest = (texts := [*texts])[:_TOLD], len(texts) > _TOLD
    return ", ".join(first) + (", ..." if rest else "")


def open_labels(
    options: SceneOptions, scene: Scene, resolve: Callable[[str], str]
) -> Labels | None:
    """Open the labels of a scene.

    Parameters
    ----------
    options
        ``[scene]`` of the job.
    scene
        The scene, as `open_scene` returned it.
    resolve
        Turns a path of the job into an absolute one.

    Returns
    -------
    Labels or None
        None when neither the job nor the data set has labels.

    Raises
    ------
    SceneError
        The labels cannot be read, or cannot be brought onto the scene's grid.
    """
    subset = subset_of(scene)
    grid = scene.grid if subset is None else Grid(subset.total, 1)
    located = None if subset else locate(scene, options)
    labels = _open_all(options, grid, resolve, located)
    if options.classes:
        labels = _with_names(labels, options.classes)
    return labels if labels is None or subset is None else SubsetLabels(labels, subset)


def _with_names(labels: Labels | None, names: Mapping[int, str]) -> Labels:
    """Return labels with names of the job (``scene.classes``).

    A file whose classes are names has no numbers of its own: there the job numbers those that it names.
    """
    if labels is None:
        raise SceneError(
            "scene.classes: names the classes of labels, and the job has no labels. Give them in "
            "scene.labels, or leave the table out."
        )
    if isinstance(labels, CarriedLabels):
        return replace(labels, labels=_with_names(labels.labels, names))
    if not isinstance(labels, PlaneLabels) and names_in_common(labels.legend.names, names):
        labels = renumbered(labels, names)
    elif labels.legend.alphabetical:
        labels = _noted_names(labels, names)
    legend = replace(labels.legend, names={**labels.legend.names, **names})
    return replace(labels, legend=legend)  # type: ignore[type-var]


def _noted_names(labels: Labels, names: Mapping[int, str]) -> Labels:
    """Say that names of the job replace all names of a file, whose numbers follow the alphabet."""
    own = labels.legend.names
    becomes = _told(
        f"{own[number]} becomes {names[number]}" for number in sorted(own.keys() & names)
    )
    told = (
        f"scene.classes has none of the names in {Path(labels.files[0]).name} ({_told(own.values())}), which "
        f"are numbered by the alphabet{becomes and ': '}{becomes}"
    )
    return replace(labels, notes=(*labels.notes, told))  # type: ignore[type-var, attr-defined]


def library_bytes(job: Job) -> int:
    """Return the memory of the libraries that read points and shapes, if labels of a job are such."""
    files = (job.scene.labels, job.learn.train, job.learn.test)
    read = [str(file) for file in files if isinstance(file, str)]
    vector = any(is_tabular(file) or is_vector(file) for file in read)
    return _VECTOR_BYTES if vector else 0


def open_marks(
    path: str,
    options: SceneOptions,
    grid: Grid,
    subset: Subset | None,
    located: Located | None = None,
) -> Labels:
    """Open the file of the training pixels (``learn.train``), in the forms of ``scene.labels``.

    Every number above 0 marks a pixel. Where the points or features of a file have no class, each marks.

    Parameters
    ----------
    path
        An absolute path.
    options
        ``[scene]`` of the job: column, layer and coordinate system of ``scene.labels`` are those of the file
        too, where it has such.
    grid, subset, located
        Of the scene.

    Raises
    ------
    SceneError
        The file cannot be read, or cannot be brought onto the scene's grid.
    """
    return _open_beside(_alike(path, options, grid), grid, subset, located, marks=True)


def open_test_labels(
    path: str,
    options: SceneOptions,
    grid: Grid,
    subset: Subset | None,
    located: Located | None = None,
) -> Labels:
    """Open the labels that a map is tested on (``learn.test``), in the forms of ``scene.labels``.

    Its parameters are those of `open_marks`; a file without the column of ``scene.labels`` is refused.
    """
    return _open_beside(_alike(path, options, grid), grid, subset, located)


def open_classes(
    path: str, grid: Grid, subset: Subset | None, located: Located | None = None
) -> Labels:
    """Open a file of other classes than those of the scene (``graph.potential.labels``); see `open_marks`."""
    return _open_beside(SceneOptions(path=path, labels=path), grid, subset, located)


def _alike(path: str, options: SceneOptions, grid: Grid) -> SceneOptions:
    """Return the options of a file that is read as the labels of a scene are."""
    check_exists(path)
    tabular, vector = is_tabular(path), is_vector(path)
    points = not grid.is_table and _is_point_table(path)
    on_map = points and options.labels_crs and not _has_no_place(path)
    return SceneOptions(
        path=path,
        labels=path,
        labels_field=options.labels_field if tabular or vector else None,
        labels_layer=options.labels_layer if vector else None,
        labels_crs=options.labels_crs if on_map else None,
    )


def _open_beside(
    options: SceneOptions,
    grid: Grid,
    subset: Subset | None,
    located: Located | None,
    *,
    marks: bool = False,
) -> Labels:
    whole = grid if subset is None else Grid(subset.total, 1)
    labels = _open(str(options.labels), options, whole, located, marks=marks)
    return labels if subset is None else SubsetLabels(labels, subset)


def _open_all(
    options: SceneOptions, grid: Grid, resolve: Callable[[str], str], located: Located | None
) -> Labels | None:
    if options.labels_layer is not None and not is_vector(options.labels):
        raise SceneError(
            f"scene.labels_layer = {options.labels_layer!r}: names a layer of a vector file, such as a "
            f"GeoPackage, and scene.labels is {options.labels or 'not set'}. Leave the key out, or give the "
            "vector file."
        )
    if options.labels is not None:
        return _open(resolve(options.labels), options, grid, located)
    own = options.path if isinstance(options.path, str) else None
    if own is not None and is_registered(own):
        return _open_registered(own, options, grid)
    if is_tabular(own) and options.labels_field is not None:
        return _open(resolve(str(own)), options, grid)
    if grid.is_table and options.labels_field is not None:
        raise SceneError(
            f"scene.labels_field = {options.labels_field!r}: names a column of a CSV or Parquet file, "
            f"and {own} is none. Give the file of the labels in scene.labels."
        )
    if options.labels_variable is None:
        return None
    path = resolve(own) if own is not None else ", ".join(options.path)
    if own is not None and Path(path).suffix.lower() in SUFFIXES:
        return _open(path, options, grid, located)
    if own is None or array_format(path) is None:
        raise SceneError(
            f"{path}: scene.labels_variable = {options.labels_variable!r} names an array in the "
            "scene's own file, which is a raster. Give the file of the labels in scene.labels."
        )
    return _of_array(path, options.labels_variable, grid)


def _open_registered(name: str, options: SceneOptions, grid: Grid) -> Labels | None:
    data_set = registered(name)
    located = data_set.locate(options.samples, options.seed)
    variable = options.labels_variable or located.labels_variable
    if located.labels is None and variable is None:
        return None
    options = options.model_copy(update={"labels_variable": variable})
    labels = _open(located.labels or located.paths[0], options, grid)
    if isinstance(labels, PlaneLabels) and data_set.legend.names:
        return replace(labels, legend=data_set.legend)
    return labels


def _open(
    path: str,
    options: SceneOptions,
    grid: Grid,
    located: Located | None = None,
    *,
    marks: bool = False,
) -> Labels:
    check_exists(path)
    linked = told_links([path])
    path, told = _of_several(image_of(path), options.labels_variable, grid)
    told = (*linked, *told)
    if located is None or _has_no_place(path):
        labels = _open_on(path, options, grid, marks=marks)
    else:
        labels = CarriedLabels(_open_on(path, options, located.grid, marks=marks), located)
    return replace(labels, notes=(*told, *labels.notes)) if told else labels  # type: ignore[type-var, attr-defined]


def _of_several(path: str, variable: str | None, grid: Grid) -> tuple[str, tuple[str, ...]]:
    """Return what GDAL opens for the labels in a file of several rasters, and which was taken."""
    if Path(path).suffix.lower() not in SUFFIXES:
        return path, ()
    layer = find_labels_layer(path, variable, (grid.height, grid.width))
    if layer is None:
        return path, ()
    return layer.address, (f"labels: raster {layer.name} of {Path(path).name}",)


def _has_no_place(path: str) -> bool:
    """Whether labels count the pixels of a scene in sensor geometry, and lie on no map."""
    if _is_point_table(path):
        from eigenscape.scenes.labels.points import counts_pixels

        return counts_pixels(path)
    if array_format(path) is not None:
        return True
    if is_vector(path) or is_tabular(path):
        return False
    return inspect_plane(path, key="labels")[0].transform is None


def _open_on(path: str, options: SceneOptions, grid: Grid, *, marks: bool) -> Labels:
    if not grid.is_table and _is_point_table(path):
        from eigenscape.scenes.labels.points import open_point_labels

        crs = options.labels_crs
        return open_point_labels(path, options.labels_field, crs, grid, marks=marks)
    if options.labels_crs is not None:
        raise SceneError(
            f"scene.labels_crs = {options.labels_crs!r}: names the coordinate system of points in a CSV "
            f"or Parquet file without geometries, and {path} is none on an image. Leave the key out."
        )
    if is_tabular(path) and grid.is_table:
        from eigenscape.scenes.labels.tables import open_table_labels

        return open_table_labels(path, options.labels_field, grid, marks=marks)
    if array_format(path) is not None:
        return _of_array(path, options.labels_variable, grid)
    if is_vector(path) or is_tabular(path):
        from eigenscape.scenes.labels.vectors.open import open_vector_labels

        layer = options.labels_layer
        return open_vector_labels(path, layer, options.labels_field, grid, marks=marks)
    if options.labels_field is not None:
        raise SceneError(
            f"{path}: scene.labels_field = {options.labels_field!r} names an attribute of a vector "
            "file, and these labels are a raster. Leave the key out, or give the vector file."
        )
    label_grid, files = inspect_plane(path, key="labels")
    with open_raster(path) as dataset:
        legend, zero = read_legend(dataset, path), told_zero(dataset, path)
    notes = () if zero is None else (zero,)
    if same_size(label_grid, grid) and lies_on(label_grid, grid):
        reverse = is_reversed(path, label_grid, grid)
        return PlaneLabels(RasterPlane(path, files, reverse=reverse), legend, notes)
    if _share_a_system(label_grid, grid):
        grid = replace(grid, crs_wkt=label_grid.crs_wkt)
    onto = _grids_to_warp_to(path, label_grid, grid)
    return PlaneLabels(RasterPlane(path, files, warp_to=onto), legend, notes)


def _of_array(path: str, variable: str | None, grid: Grid) -> PlaneLabels:
    plane = find_plane(path, variable, grid, key="labels")
    return PlaneLabels(plane, *array_legend(plane.source.attributes(), path))


def _share_a_system(labels: Grid, scene: Grid) -> bool:
    """Return whether one grid has no system and, by its size and extent, must lie in that of the other.

    The rows of one may run north and those of the other south, as readers of NetCDF differ.
    """
    if labels.transform is None or scene.transform is None:
        return False
    one_without = (labels.crs_wkt is None) != (scene.crs_wkt is None)
    return one_without and same_size(labels, scene) and same_extent(labels, scene)


def _grids_to_warp_to(path: str, labels: Grid, scene: Grid) -> tuple[Grid, ...]:
    """Return what labels must be brought onto to cover a scene; see `RasterPlane.warp_to`."""
    located = labels.transform is not None and scene.transform is not None
    if located and labels.crs_wkt is None and scene.crs_wkt is None:
        # Without a system both are taken to lie in one plane.
        check_overlap(path, extent(labels), extent(scene))
        return (scene,)
    if not located or labels.crs_wkt is None or scene.crs_wkt is None:
        if located and same_size(labels, scene):
            raise lies_elsewhere(path, labels, scene, key="labels (one of the two has no CRS)")
        raise wrong_size(path, (labels.height, labels.width), scene, key="labels (without a CRS)")
    image = extent_in(extent(labels), labels.crs_wkt, scene.crs_wkt)
    grids = (scene,) if image is None else turned(scene, image)
    check_overlap(path, image, extent(grids[0]))
    return grids
