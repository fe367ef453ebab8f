"""Products of sensors: each class says which paths it takes and what the product holds.

What is common to all of them is here: bad bands, scale and nodata of the job, and what `plan` says.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from eigenscape.base.registry import Registry
from eigenscape.base.shares import counted
from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.arrays.arrayfiles import reading
from eigenscape.scenes.formats.bandlists import parse_bad_bands
from eigenscape.scenes.formats.rasters.pixels import calibrate, check_some_band
from eigenscape.scenes.reading import Reader, Resolve
from eigenscape.scenes.sensors.contents import Contents, Cube, ProductPart, ProductScene
from eigenscape.scenes.types import Bands, Scene

PRODUCTS: Registry["Reader"] = Registry(
    what="sensor product", folder="eigenscape.scenes.sensors.products", group="eigenscape.products",
    base="eigenscape.scenes.sensors.product:Product", key="name", error=SceneError,
)  # fmt: skip
"""All of them; packages add theirs by the entry-point group ``eigenscape.products``."""

_MOST_BANDS = 2**14


class Product(Reader):
    """A product of a sensor.

    A product derives from this class and is registered (`eigenscape.register`).
    """

    registry: ClassVar[Registry["Reader"]] = PRODUCTS
    priority: ClassVar[int] = 50
    """Before the readers of files, as a product is recognised by what is in its files."""
    variables: ClassVar[tuple[str, ...]] = ()
    """What ``scene.variable`` can choose from; nothing as a rule."""
    grids: ClassVar[bool] = False
    """Whether its bands have several resolutions, for which ``scene.grid`` chooses."""

    @abstractmethod
    def contents(self, path: str, options: SceneOptions) -> Contents:
        """Return what a product holds, by its metadata.

        Parameters
        ----------
        path
            A path that it takes.
        options
            ``[scene]`` of the job.

        Raises
        ------
        SceneError
            It is damaged or incomplete.
        """

    def files(self, path: str) -> tuple[str, ...]:
        """Return every file that a product is read from."""
        with reading(path):
            return self.contents(path, SceneOptions(path=path)).all_files

    def open(self, path: str, options: SceneOptions, resolve: Resolve) -> Scene:
        """Open a product by its metadata; see `Reader.open`."""
        self._check_keys(path, options)
        with reading(path):
            found = self.contents(path, options)
        sizes = {cube.source.size for cube in found.cubes} | {(found.grid.height, found.grid.width)}
        if len(sizes) != 1:
            listed = ", ".join(f"{rows} x {columns}" for rows, columns in sorted(sizes))
            raise SceneError(
                f"{path}: its bands have several sizes, {listed}: the product is damaged."
            )
        for flag in found.flags:
            if flag.source.size != (found.grid.height, found.grid.width):
                rows, columns = flag.source.size
                raise SceneError(
                    f"{path}: its layer {flag.told} has {rows} x {columns} pixels, its bands "
                    f"{found.grid.height} x {found.grid.width}: the product is damaged. Download it again."
                )
        return assemble(path, found, options)

    def variable(self, path: str, options: SceneOptions) -> str | None:
        """Return which part of the product is the scene, where there is a choice."""
        return self.variables[0] if self.variables else None

    def _check_keys(self, path: str, options: SceneOptions) -> None:
        if options.layout == "table":
            raise SceneError(
                f'{path}: scene.layout = "table" is for arrays, and this is an image. Leave the key out.'
            )
        if options.variable is not None and options.variable not in self.variables:
            choice = (
                f"it is one of {', '.join(self.variables)} of this product"
                if self.variables
                else "this product has one image only"
            )
            raise SceneError(
                f"{path}: scene.variable = {options.variable!r}: {choice}. Correct the key, or leave it out."
            )


def assemble(path: str, found: Contents, options: SceneOptions) -> ProductScene:
    """Return the scene of what a product holds.

    Raises
    ------
    SceneError
        No band is left, or the job's bad bands cannot be.
    """
    for cube in found.cubes:
        _check_lists(path, cube)
    counts = [len(_order(cube)) for cube in found.cubes]
    if sum(counts) > _MOST_BANDS:
        raise SceneError(f"{path}: has {sum(counts):,} bands; {_MOST_BANDS:,} can be used.")
    wavelength = _joined(found.cubes, "wavelength")
    reasons, bad = (
        _dropped(found.cubes),
        parse_bad_bands(options.bad_bands, sum(counts), wavelength),
    )
    out = bad.union(*reasons.values())
    good = tuple(number not in out for number in range(sum(counts)))
    check_some_band(good, path)
    parts, first = [], 0
    for cube, count in zip(found.cubes, counts, strict=True):
        kept = [
            band
            for band, flag in zip(_order(cube), good[first : first + count], strict=True)
            if flag
        ]
        if kept:
            parts.append(_part(cube, kept, options))
        first += count
    names = [name for cube in found.cubes for name in _names(cube)]
    bands = Bands(
        good, wavelength, _joined(found.cubes, "fwhm"), tuple(names) if any(names) else None
    )
    return ProductScene(
        title=found.title,
        grid=found.grid,
        bands=bands,
        files=found.all_files,
        row_step=max(part.source.row_step for part in parts),
        parts=tuple(parts),
        flags=found.flags,
        geolocation=found.geolocation,
        empty=found.empty,
        notes=(
            told_bands(found.title, path, bands),
            *_told_dropped(reasons, bands),
            *told_order(bands),
            *found.notes,
        ),
    )


def within(ranges: Iterable[tuple[float, float]], wavelength: Sequence[float]) -> tuple[int, ...]:
    """Return the bands, from 0, whose centres lie within ranges of wavelength in nanometres."""
    pairs = list(ranges)
    return tuple(
        number for number, centre in enumerate(wavelength)
        if any(low <= centre <= high for low, high in pairs)
    )  # fmt: skip


def in_nanometres(values: Sequence[float]) -> tuple[float, ...]:
    """Return wavelengths in nanometres, which were in micrometres if none is as large as 100."""
    from eigenscape.scenes.formats.bandlists import to_nanometers

    return to_nanometers(values, None) or tuple(values)


def _check_lists(path: str, cube: Cube) -> None:
    """Refuse metadata of another number of bands than a source has."""
    for name in ("wavelength", "fwhm", "names", "scale", "offset"):
        values = getattr(cube, name)
        if isinstance(values, int | float) or values is None or len(values) == cube.source.count:
            continue
        raise SceneError(
            f"{path}: {Path(cube.source.files[0]).name} has {cube.source.count} bands, and "
            f"the metadata list {len(values)} values of {name}: it is damaged. Download it again."
        )


def _order(cube: Cube) -> tuple[int, ...]:
    return tuple(range(cube.source.count)) if cube.order is None else cube.order


def _names(cube: Cube) -> list[str]:
    names = cube.names or [""] * cube.source.count
    return [names[band] for band in _order(cube)]


def _joined(cubes: Sequence[Cube], name: str) -> tuple[float, ...] | None:
    values: list[float] = []
    for cube in cubes:
        known = getattr(cube, name)
        values += [math.nan if known is None else float(known[band]) for band in _order(cube)]
    return tuple(values) if any(math.isfinite(value) for value in values) else None


def _dropped(cubes: Sequence[Cube]) -> dict[str, set[int]]:
    """Return the numbers, from 0, of the scene's bands that are left out, by the reason."""
    reasons: dict[str, set[int]] = {}
    first = 0
    for cube in cubes:
        order = _order(cube)
        for reason, bands in cube.dropped.items():
            wanted = set(bands)
            found = {first + place for place, band in enumerate(order) if band in wanted}
            if found:
                reasons.setdefault(reason, set()).update(found)
        first += len(order)
    return reasons


def _part(cube: Cube, kept: list[int], options: SceneOptions) -> ProductPart:
    count = cube.source.count
    scale, offset = (
        [float(value)] * count if isinstance(value, int | float) else [float(one) for one in value]
        for value in (cube.scale, cube.offset)
    )
    if not isinstance(options.scale, str):
        scale, offset = [float(options.scale)] * count, [0.0] * count
    fills = cube.fill if isinstance(cube.fill, tuple) else (cube.fill,)
    return ProductPart(
        cube.source,
        tuple(kept),
        calibrate(
            [scale[band] for band in kept],
            [offset[band] for band in kept],
            [(*fills, options.nodata)] * len(kept),
            cube.limits,
        ),
    )


def told_bands(title: str, path: str, bands: Bands) -> str:
    """Return sensor, number of bands and their range of wavelength, for `plan`."""
    text = f"{title} ({Path(path).name}): {bands.count} of {len(bands.good)} bands"
    known = (
        []
        if bands.wavelength is None
        else [bands.wavelength[number] for number in bands.good_index]
    )
    known = [centre for centre in known if math.isfinite(centre)]
    return f"{text}, {min(known):.1f} to {max(known):.1f} nm" if known else text


def _told_dropped(reasons: dict[str, set[int]], bands: Bands) -> list[str]:
    told = []
    for reason, numbers in reasons.items():
        centres = [bands.wavelength[number] for number in numbers] if bands.wavelength else []
        centres = [centre for centre in centres if math.isfinite(centre) and centre > 0]
        place = f" between {min(centres):.1f} and {max(centres):.1f} nm" if len(centres) > 1 else ""
        place = place or (f" at {centres[0]:.1f} nm" if centres else "")
        told.append(f"{counted(len(numbers), 'band')}{place} dropped: {reason}")
    return told


def told_order(bands: Bands) -> list[str]:
    """Return a sentence for wavelengths that do not rise from band to band, as where detectors overlap."""
    if bands.wavelength is None:
        return []
    known = [bands.wavelength[number] for number in bands.good_index]
    known = [centre for centre in known if math.isfinite(centre)]
    backwards = sum(later <= sooner for sooner, later in itertools.pairwise(known))
    if not backwards:
        return []
    return [f"wavelengths fall at {counted(backwards, 'place')}: bands keep the order of the file"]
