"""Files of a data set, or a seed, to the arrays that a job reads. `cache.prepared` calls these.

A recipe fills a folder: ``values.npy`` (a table is samples x 1 x columns, one pixel wide) or
``values.npz`` (sparse) or ``scene.tif``; ``labels.npy`` or ``labels.tif``; ``samples.txt`` and
``columns.txt`` with a name a line where they have names.
"""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eigenscape.datasets.made import manifolds, pictures
from eigenscape.datasets.made.text import neighbor_counts, without_header, word_shares
from eigenscape.errors import SceneError
from eigenscape.scenes.formats.arrays.arrayfiles import reading

URBAN_SHAPE = (307, 307)
_SPLITS = ("train", "test")


class Recipe(Protocol):
    """What makes the arrays of a data set."""

    def __call__(self, files: Sequence[Path], folder: Path, samples: int, seed: int) -> None:
        """Fill `folder` from `files`; `samples` and `seed` are for sets that are drawn."""
        ...


def mnist(files: Sequence[Path], folder: Path, samples: int, seed: int) -> None:
    """Write the 60,000 training images as bytes 0 ... 255; class number = digit + 1."""
    with reading(str(files[0])), np.load(files[0]) as archive:
        images, digits = archive["x_train"], archive["y_train"]
    if images.ndim != 3 or len(images) != len(digits):
        raise SceneError(
            f"{files[0]}: x_train of shape {images.shape} and y_train of shape {digits.shape} are "
            "not images and their digits. Fetch it again: eigenscape data fetch mnist"
        )
    _write_table(folder, images.reshape(len(images), -1), digits.astype(np.uint8) + 1)


def phoneme(files: Sequence[Path], folder: Path, samples: int, seed: int) -> None:
    """Write the log-periodograms; classes by the alphabet of their names."""
    path = files[0]
    with reading(str(path)):
        if path.suffix == ".npz":
            with np.load(path) as archive:
                values, names = archive["X"], archive["g"]
        else:
            table = np.loadtxt(path, dtype=str, delimiter=",", quotechar='"')
            values, names = table[1:, 1:-2].astype(float), table[1:, -2]
    _, number = np.unique(names, return_inverse=True)
    _write_table(folder, values.astype(np.float32), number + 1)


def newsgroups(files: Sequence[Path], folder: Path, samples: int, seed: int) -> None:
    """Write the shares of words of every posting, without headers, by split, group and number."""
    with reading(str(files[0])):
        archived = files[0].name.endswith(".tar.gz")
        read = _postings_of_archive if archived else _postings_of_lines
        postings = sorted(read(files[0]))
    groups = [group for _, group, _, _ in postings]
    _, number = np.unique(groups, return_inverse=True)
    shares, kept, words = word_shares(without_header(text) for *_, text in postings)
    from scipy.sparse import save_npz

    save_npz(folder / "values.npz", shares)
    _write_labels(folder, number[kept] + 1)
    _write_names(folder / "samples.txt", (f"{postings[i][1]}/{postings[i][2]}" for i in kept))
    _write_names(folder / "columns.txt", words)


def brown(files: Sequence[Path], folder: Path, samples: int, seed: int) -> None:
    """Write the neighbour counts of the most frequent words of the tagged corpus."""
    with reading(str(files[0])):
        words, counts = neighbor_counts(_tagged_sentences(files[0]))
    _write_table(folder, counts)
    _write_names(folder / "samples.txt", words)
    sides = [f"{side} {word}" for side in ("after", "before") for word in words]
    _write_names(folder / "columns.txt", sides)


def urban_like(files: Sequence[Path], folder: Path, samples: int, seed: int) -> None:
    """Write the Urban look-alike of published abundances and spectra."""
    from scipy.io import loadmat

    with reading(str(files[0])):
        parts = loadmat(files[0], variable_names=["A", "M"])
        abundances, spectra = parts["A"], parts["M"]
        cube, labels = pictures.urban_like(abundances, spectra, URBAN_SHAPE, seed)
    np.save(folder / "values.npy", cube)
    np.save(folder / "labels.npy", labels)


def smith_like(files: Sequence[Path], folder: Path, samples: int, seed: int) -> None:
    """Write the synthetic scene of the size of HyMap Smith Island."""
    from eigenscape.datasets.made.synthetic import synthesize

    synthesize(folder / "scene.tif", height=679, width=944, bands=110, classes=22, seed=seed)


def bars(files: Sequence[Path], folder: Path, samples: int, seed: int) -> None:
    """Write images of bars and whether they are vertical."""
    _write_table(folder, *pictures.bars(samples, seed))


def plane_curve(files: Sequence[Path], folder: Path, samples: int, seed: int) -> None:
    """Write points of the plane curve and which side of it they are on."""
    points, classes = manifolds.plane_curve(samples, seed)
    _write_table(folder, points.astype(np.float32), classes)


def manifold(draw: Any, files: Sequence[Path], folder: Path, samples: int, seed: int) -> None:
    """Write points of a manifold without classes, and their parameters beside them."""
    points, parameters = draw(samples, seed)
    _write_table(folder, points.astype(np.float32))
    np.save(folder / "parameters.npy", parameters)


RECIPES: dict[str, Recipe] = {
    "mnist": mnist,
    "phoneme": phoneme,
    "20newsgroups": newsgroups,
    "brown": brown,
    "urban-like": urban_like,
    "smith-like": smith_like,
    "bars": bars,
    "plane-curve": plane_curve,
    "swiss-roll": partial(manifold, manifolds.swiss_roll),
    "arc": partial(manifold, manifolds.arc),
    "helix": partial(manifold, manifolds.helix),
    "rectangle": partial(manifold, manifolds.rectangle),
    "circle": partial(manifold, manifolds.circle),
    "sphere": partial(manifold, manifolds.sphere),
    "torus": partial(manifold, manifolds.torus),
    "flat-torus": partial(manifold, manifolds.flat_torus),
    "surface": partial(manifold, manifolds.surface),
}
"""By the name of the data set."""


def _write_table(folder: Path, values: NDArray[Any], classes: NDArray[Any] | None = None) -> None:
    np.save(folder / "values.npy", values[:, np.newaxis, :])
    if classes is not None:
        _write_labels(folder, classes)


def _write_labels(folder: Path, classes: NDArray[Any]) -> None:
    np.save(folder / "labels.npy", classes.astype(np.uint8)[:, np.newaxis])


def _write_names(path: Path, names: Any) -> None:
    path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


_Posting = tuple[int, str, int, str]
"""Split, group, number and text of a posting."""


def _postings_of_lines(path: Path) -> Iterator[_Posting]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            item = json.loads(line)
            yield _SPLITS.index(item["split"]), item["label"], int(item["id"]), item["text"]


def _postings_of_archive(path: Path) -> Iterator[_Posting]:
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.isfile():
                continue
            split, group, number = member.name.rsplit("/", 2)
            stream = archive.extractfile(member)
            assert stream is not None, "a plain file has content"
            text = stream.read().decode("latin-1")
            yield _SPLITS.index(split.rpartition("-")[2]), group, int(number), text


def _tagged_sentences(path: Path) -> Iterator[list[str]]:
    """Read sentences, a line each, of words as ``word/tag``."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            file = name.rpartition("/")[2]
            # ca01 ... cr09: a letter for the category, then the number of the text.
            if len(file) != 4 or file[0] != "c" or not file[2:].isdigit():
                continue
            with io.TextIOWrapper(archive.open(name), encoding="latin-1") as stream:
                for line in stream:
                    if line.strip():
                        yield [token.rpartition("/")[0] for token in line.split()]
