"""The filters by the name that ``features.spatial.method`` gives them.

A filter says which columns it makes of so many features, what it holds, and filters a block of samples.
Whatever the blocks, the same bits come out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import attach_memmap, create_memmap, note_rows, scratch_arrays
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.context import Context
from eigenscape.features.spatial.kernels.bilateral import bilateral, space_weights
from eigenscape.features.spatial.kernels.guided import guided
from eigenscape.features.spatial.kernels.profiles import erode, reconstruct
from eigenscape.features.spatial.unfiltered import F4, WINDOW, Unfiltered, window_bytes
from eigenscape.job.options import FilterOptions

_GUIDED_PLANES = 14
"""Planes in double of a window that the guided filter holds beside those of its guide."""


class Filter(Protocol):
    """A filter with its options.

    Attributes
    ----------
    in_noise
        Whether its options count in standard deviations of the noise, which have to be known.
    """

    in_noise: ClassVar[bool]

    def __init__(self, options: FilterOptions) -> None: ...

    @property
    def reach(self) -> int | None:
        """How many rows and columns away a pixel may be that a filtered one depends on; None for any."""
        ...

    def sources(self, features: int) -> NDArray[np.intp]:
        """Return the feature that each column of the filtered ones is made of, in its units."""
        ...

    def task_bytes(self, features: int) -> int:
        """Return the memory that a task takes beside the rows that it filters."""
        ...

    def scratch_bytes(self, pixels: int, features: int) -> int:
        """Return the bytes on disk while the filter works on a scene of so many pixels."""
        ...

    def prepare(self, context: Context, unfiltered: Unfiltered) -> None:
        """Do what has to be done before blocks are filtered."""
        ...

    def filter_block(self, unfiltered: Unfiltered, unit: float, block: Block) -> F4:
        """Return the filtered features of some samples.

        Parameters
        ----------
        unfiltered
            The features.
        unit
            Standard deviation of their noise.
        block
            Which samples.
        """
        ...


@dataclass(frozen=True)
class Bilateral:
    """Joint bilateral filters at one or several scales, side by side (Tomasi, Manduchi 1998)."""

    in_noise: ClassVar[bool] = True
    options: FilterOptions

    @property
    def reach(self) -> int:
        """See `Filter`."""
        return max(radius for radius, _, _ in self.options.scales)

    def sources(self, features: int) -> NDArray[np.intp]:
        """See `Filter`."""
        return np.tile(np.arange(features), len(self.options.scales))

    def task_bytes(self, features: int) -> int:
        """See `Filter`."""
        return window_bytes(features, self.reach)

    def scratch_bytes(self, pixels: int, features: int) -> int:
        """See `Filter`."""
        return 0

    def prepare(self, context: Context, unfiltered: Unfiltered) -> None:
        """See `Filter`."""

    def filter_block(self, unfiltered: Unfiltered, unit: float, block: Block) -> F4:
        """See `Filter`."""
        width = unfiltered.features
        filtered = np.empty((block[1] - block[0], len(self.sources(width))), np.float32)
        for number, (radius, near, alike) in enumerate(self.options.scales):
            weights = space_weights(radius, near)
            factor = np.float32(1 / (2 * (alike * unit) ** 2))

            def work(
                window: F4, valid: NDArray[np.bool_], inner: F4,
                weights: F4 = weights, factor: np.float32 = factor,
            ) -> None:  # fmt: skip
                bilateral(window, valid, weights, factor, inner)

            part = filtered[:, number * width : (number + 1) * width]
            unfiltered.filter_windows(block, radius, work, part)
        return filtered


@dataclass(frozen=True)
class Guided:
    """The guided filter with the leading features as its guide (He, Sun, Tang 2013)."""

    in_noise: ClassVar[bool] = True
    options: FilterOptions

    @property
    def reach(self) -> int:
        """See `Filter`: means of squares, of what squares gave."""
        return 2 * self._radius

    def sources(self, features: int) -> NDArray[np.intp]:
        """See `Filter`."""
        return np.arange(features)

    def task_bytes(self, features: int) -> int:
        """See `Filter`."""
        halo, guides = self.reach, min(self.options.components, features)
        planes = _GUIDED_PLANES + guides * (guides + 2)
        around = (WINDOW[0] + 2 * halo) * (WINDOW[1] + 2 * halo)
        return window_bytes(features, halo) + 8 * planes * around

    def scratch_bytes(self, pixels: int, features: int) -> int:
        """See `Filter`."""
        return 0

    def prepare(self, context: Context, unfiltered: Unfiltered) -> None:
        """See `Filter`."""

    def filter_block(self, unfiltered: Unfiltered, unit: float, block: Block) -> F4:
        """See `Filter`."""
        filtered = np.empty((block[1] - block[0], unfiltered.features), np.float32)
        guides = min(self.options.components, unfiltered.features)
        epsilon = self.options.epsilon * unit**2

        def work(window: F4, valid: NDArray[np.bool_], inner: F4) -> None:
            guided(window, valid, self._radius, guides, epsilon, inner)

        unfiltered.filter_windows(block, self.reach, work, filtered)
        return filtered

    @property
    def _radius(self) -> int:
        return self.options.radii[0]


@dataclass(frozen=True)
class Profiles:
    """The features, and openings and closings by reconstruction of the leading ones beside them.

    Extended morphological profiles (Benediktsson, Palmason, Sveinsson 2005). A reconstruction reaches
    as far as the scene does: each is made of the whole image of a feature, in mapped files, by one task.
    """

    in_noise: ClassVar[bool] = False
    reach: ClassVar[None] = None
    options: FilterOptions

    def sources(self, features: int) -> NDArray[np.intp]:
        """See `Filter`."""
        profiles = [component for component, _, _ in self._profiles(features)]
        return np.array([*range(features), *profiles])

    def task_bytes(self, features: int) -> int:
        """See `Filter`."""
        # Ranges of an image as it is written, and of a profile as it is read.
        return 24 * CHUNK_ROWS

    def scratch_bytes(self, pixels: int, features: int) -> int:
        """See `Filter`."""
        images = min(self.options.components, features)
        # A marker for each task at work, as if all of them were.
        return 4 * pixels * (images + 2 * len(self._profiles(features)))

    def prepare(self, context: Context, unfiltered: Unfiltered) -> None:
        """Write the images, then the profiles."""
        images = range(min(self.options.components, unfiltered.features))
        context.map("images", partial(write_image, unfiltered), images, label="images of features")
        profiles = self._profiles(unfiltered.features)
        work = partial(write_profile, unfiltered, profiles)
        context.map("profiles", work, range(len(profiles)), label="morphological profiles")

    def filter_block(self, unfiltered: Unfiltered, unit: float, block: Block) -> F4:
        """See `Filter`."""
        here, width = slice(*block), unfiltered.features
        filtered = np.empty((block[1] - block[0], len(self.sources(width))), np.float32)
        filtered[:, :width] = unfiltered.values()[here]
        for number in range(width, filtered.shape[1]):
            filtered[:, number] = _profile(unfiltered, number - width)[here]
        return filtered

    def _profiles(self, features: int) -> list[tuple[int, int, int]]:
        """Return component, sign and radius of each profile: closings have the sign -1."""
        return [
            (component, sign, radius)
            for component in range(min(self.options.components, features))
            for sign in (1, -1)
            for radius in self.options.radii
        ]


FILTERS: Mapping[str, type[Filter]] = {
    "bilateral": Bilateral,
    "guided": Guided,
    "profiles": Profiles,
}
"""By name."""


def make_filter(options: FilterOptions) -> Filter:
    """Return the filter that the options name."""
    return FILTERS[options.method](options)


def write_image(unfiltered: Unfiltered, component: int) -> None:
    """Write the image of a feature, NaN where the scene has no sample."""
    path = _image_path(unfiltered.folder, component)
    size = unfiltered.height * unfiltered.width
    create_memmap(path, (size,), np.float32)
    image = attach_memmap(path, (size,), np.float32, "r+")
    values, pixels = unfiltered.values(), unfiltered.pixels()
    image[:] = np.nan
    for start, stop in blocks(unfiltered.samples, CHUNK_ROWS):
        image[pixels[start:stop]] = values[start:stop, component]
    note_rows(image)


def write_profile(
    unfiltered: Unfiltered, profiles: list[tuple[int, int, int]], number: int
) -> None:
    """Write an opening or closing by reconstruction, one value for each sample."""
    component, sign, radius = profiles[number]
    shape = unfiltered.height, unfiltered.width
    image = attach_memmap(_image_path(unfiltered.folder, component), shape, np.float32)
    path, pixels = _profile_path(unfiltered.folder, number), unfiltered.pixels()
    create_memmap(path, (unfiltered.samples,), np.float32)
    profile = attach_memmap(path, (unfiltered.samples,), np.float32, "r+")
    with scratch_arrays(unfiltered.folder) as zeros:
        marker = zeros(shape, np.float32).view(np.ndarray)
        erode(image.view(np.ndarray), np.float32(sign), radius, marker)
        reconstruct(image.view(np.ndarray), np.float32(sign), marker)
        whole = marker.ravel()
        for start, stop in blocks(unfiltered.samples, CHUNK_ROWS):
            profile[start:stop] = sign * whole[pixels[start:stop]]
    note_rows(profile)


def _profile(unfiltered: Unfiltered, number: int) -> F4:
    path = _profile_path(unfiltered.folder, number)
    return attach_memmap(path, (unfiltered.samples,), np.float32)


def _image_path(folder: Path, component: int) -> Path:
    return folder / f"image-{component}"


def _profile_path(folder: Path, number: int) -> Path:
    return folder / f"profile-{number}"
