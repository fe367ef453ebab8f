import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from eigenscape.datasets.catalog import DATA_SETS
from eigenscape.datasets.recipes import RECIPES
from eigenscape.errors import SceneError
from eigenscape.scenes.files.identity import file_identity
from eigenscape.scenes.registry import is_registered, registered, registered_names

INDIAN_PINES = [
    46, 1428, 830, 237, 483, 730, 28, 478, 20, 972, 2455, 593, 205, 1265, 386, 93,
]  # fmt: skip


def check_indian_pines(opened, given):
    assert (opened.grid.height, opened.grid.width, opened.bands.count) == (145, 145, 200)
    assert opened.bands.wavelength is None
    values, valid = opened.read(100, 145)
    assert valid.all()
    assert values.min() > 900
    counts = np.bincount(given.read(0, 145).ravel())
    assert counts[1:].tolist() == INDIAN_PINES
    assert given.legend.names[16] == "Stone-Steel-Towers"
    assert len(set(given.legend.colors.values())) == 16


def test_indian_pines__from_a_package(scene, labels, data_home):
    pytest.importorskip("tensorly")
    assert registered("indian-pines").installed
    check_indian_pines(scene("indian-pines"), labels("indian-pines"))


def test_names():
    assert {"indian-pines", "mnist", "swiss-roll"} <= set(registered_names())
    assert is_registered("mnist")
    assert not is_registered("mnist.npz")
    with pytest.raises(SceneError, match="Did you mean indian-pines"):
        registered("indian_pines")


def test_names__of_recipes_are_those_of_the_catalogue():
    named = {item.recipe: name for name, item in DATA_SETS.items() if item.recipe is not None}
    assert named.keys() == RECIPES.keys()
    assert all(recipe == name for recipe, name in named.items())


@pytest.mark.parametrize("name", [name for name, item in DATA_SETS.items() if item.kind != "made"])
def test_catalogue__says_how_to_get_it(name, data_home, monkeypatch):
    monkeypatch.setattr("eigenscape.datasets.cache.find_spec", lambda package: None)
    entry = registered(name)
    assert not entry.installed
    with pytest.raises(SceneError, match=f"The data set {name} is not on this machine") as caught:
        entry.locate()
    message = str(caught.value)
    assert str(data_home / entry.data_set.folder) in message
    assert ("eigenscape data fetch" in message) == bool(entry.data_set.remotes)
    for remote in entry.data_set.remotes:
        assert remote.url.startswith("https://")
        assert len(bytes.fromhex(remote.sha256)) == 32
        # What is fetched makes the first form whole.
        assert set(entry.data_set.forms[0].files) <= set(remote.brings)


@pytest.fixture
def provide(tmp_path, monkeypatch):
    """Put packages on the path, each of which provides data sets, as if they were installed."""

    def put(package, text):
        folder = tmp_path / package
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"{package}.py").write_text(text)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[eigenscape.scenes]\n{package} = {package}\n")
        monkeypatch.syspath_prepend(str(folder))

    return put


PROVIDER = "def names():\n    return [{}]\n\n\ndef find(name):\n    return name.upper()\n"


def test_provider__of_another_package(provide):
    assert not is_registered("cuprite")
    provide("fields", PROVIDER.format("'cuprite', 'jasper'"))
    assert is_registered("cuprite")
    assert registered("cuprite") == "CUPRITE"
    assert registered_names()[-2:] == ("cuprite", "jasper")


def test_provider__names_that_two_have(provide):
    provide("fields_one", PROVIDER.format("'cuprite', 'mnist'"))
    provide("fields_two", PROVIDER.format("'cuprite', 'jasper'"))
    with pytest.raises(
        SceneError, match=r"'cuprite': two of them are a registered data set"
    ) as caught:
        registered("cuprite")
    for word in (
        "the package fields_one (group eigenscape.scenes)",
        "the package fields_two",
        "uninstall",
    ):
        assert word in str(caught.value)
    with pytest.raises(SceneError, match=r"eigenscape\.datasets\.registered and .*fields_one"):
        registered("mnist")
    assert registered("jasper") == "JASPER"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import nothing_of_this_name\n",
            "ModuleNotFoundError: No module named 'nothing_of_this_name'",
        ),
        ("def names():\n    return 1 / 0\n", "ZeroDivisionError"),
        ("", "AttributeError"),
    ],
    ids=["no import", "no names", "no provider"],
)
def test_provider__that_cannot_be_used(provide, text, said):
    package = "broken_" + said[:4].lower()
    provide(package, text)
    with pytest.raises(SceneError) as caught:
        is_registered("scene.tif")
    message = str(caught.value)
    assert message.startswith(
        f"'{package}': the provider of data sets of the entry point {package} of the "
    )
    assert f"package {package} (group eigenscape.scenes) cannot be used ({said}" in message
    assert "uninstall it." in message


def test_identity__of_what_is_made_follows_the_draw(data_home):
    keys = [
        file_identity("swiss-roll", str, samples=samples, seed=seed)
        for samples, seed in [(50, 0), (50, None), (50, 1), (60, 0), (None, 0)]
    ]
    assert keys[0] == keys[1]
    assert len({str(key) for key in keys}) == 4


def test_identity__of_files_is_their_content(data_home):
    folder = data_home / "salinas"
    folder.mkdir(parents=True)
    for name in ("Salinas_corrected.mat", "Salinas_gt.mat"):
        (folder / name).write_bytes(b"one")
    first = file_identity("salinas", str)
    assert file_identity("salinas", str) == first
    (folder / "Salinas_gt.mat").write_bytes(b"three")
    assert file_identity("salinas", str) != first


def test_run__of_what_is_made(data_home, cli, write_job):
    job = write_job(
        scene={"path": "plane-curve", "samples": 120, "seed": 1},
        features={"method": "none"},
        spectrum={"dimension": 6},
        learn={"train": 0.5, "trials": 2},
    )
    done = cli("run", job, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["scores"]["per_class"]) == 2
    manifest = Path(found["run"], "manifest.json").read_text(encoding="utf-8")
    assert '"outer"' in manifest

    def reused(*override):
        planned = json.loads(cli("plan", job, "--json", *override).stdout)
        assert planned["samples"] == 120
        return {stage["reused"] for stage in planned["stages"]}

    assert reused() == {True}
    assert reused("--set", "scene.seed=2") == {False}


def test_opening_imports_no_heavy_package(data_home):
    folder = data_home / "salinas"
    folder.mkdir(parents=True)
    for name in ("Salinas_corrected.mat", "Salinas_gt.mat"):
        (folder / name).touch()
    heavy = "rasterio geopandas h5py zarr scipy sklearn tensorly pandas pooch requests"
    code = (
        "import sys; import eigenscape.scenes.open, eigenscape.scenes.registry as r;"
        "r.registered('salinas').locate();"
        f"print([m for m in {heavy.split()} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def real_data(shared_data: Path, data_home: Path, monkeypatch) -> Path:
    """Name the real data as the data directory; what is prepared from it goes elsewhere."""
    monkeypatch.setenv("EIGENSCAPE_DATA", str(shared_data))
    return shared_data


@pytest.mark.shared_data
class TestRealData:
    def test_indian_pines(self, real_data, scene, labels, monkeypatch):
        monkeypatch.setattr("eigenscape.datasets.cache.find_spec", lambda package: None)
        check_indian_pines(scene("indian-pines"), labels("indian-pines"))

    def test_mnist(self, real_data, scene, labels):
        opened, given = scene("mnist"), labels("mnist")
        assert (opened.grid.height, opened.grid.width, opened.bands.count) == (60_000, 1, 784)
        values, valid = opened.read(0, 60_000)
        assert valid.all()
        assert values.mean() == pytest.approx(33.3184, abs=1e-4)
        assert values.std(dtype=float) == pytest.approx(78.5675, abs=1e-4)
        digits = given.read(0, 60_000)[:, 0].astype(int) - 1
        assert digits[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
        counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert np.bincount(digits).tolist() == counts

    def test_phoneme(self, real_data, scene, labels):
        opened, given = scene("phoneme"), labels("phoneme")
        values, valid = opened.read(0, 4509)
        assert valid.all()
        assert values.min() == pytest.approx(-8.172, abs=5e-4)
        assert values.max() == pytest.approx(26.910, abs=5e-4)
        counts = np.bincount(given.read(0, 4509)[:, 0])[1:].tolist()
        names = {"aa": 695, "ao": 1022, "dcl": 757, "iy": 1163, "sh": 872}
        assert dict(zip(given.legend.names.values(), counts, strict=True)) == names

    def test_newsgroups(self, real_data, scene, labels):
        opened, given = scene("20newsgroups"), labels("20newsgroups")
        assert (opened.grid.height, opened.bands.count) == (18_802, 6000)
        shares, valid = opened.read(0, 18_802)
        assert valid.all()
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
        numbers = given.read(0, 18_802)[:, 0]
        counts = Counter(given.legend.names[number] for number in numbers.tolist())
        assert len(counts) == 20
        # 799 postings to alt.atheism, 628 to talk.religion.misc, less those without a word.
        assert 795 <= counts["alt.atheism"] <= 799
        assert 624 <= counts["talk.religion.misc"] <= 628
        folder = Path(registered("20newsgroups").locate().paths[0]).parent
        words = (folder / "columns.txt").read_text(encoding="utf-8").split()
        assert len(set(words)) == 6000
        assert not {"the", "of", "from"} & set(words)

    def test_brown(self, real_data, scene, labels):
        opened = scene("brown")
        assert labels("brown") is None
        counts, _ = opened.read(0, 300)
        assert counts.shape == (300, 1, 600)
        folder = Path(registered("brown").locate().paths[0]).parent
        words = (folder / "samples.txt").read_text(encoding="utf-8").split()
        assert words[:6] == ["the", "of", "and", "to", "a", "in"]
        of, the = words.index("of"), words.index("the")
        # "of the" is the commonest pair of English words.
        assert counts[the, 0, of] == counts[of, 0, 300 + the] == counts.max()
        np.testing.assert_array_equal(counts[:, 0, :300], counts[:, 0, 300:].T)

    def test_landsat(self, real_data, scene, labels):
        opened, given = scene("landsat-nc"), labels("landsat-nc")
        assert (opened.grid.height, opened.grid.width, opened.bands.count) == (443, 489, 6)
        assert given.legend.names == dict(enumerate(DATA_SETS["landsat-nc"].classes, start=1))
        counts = np.bincount(given.read(0, 443).ravel())[1:].tolist()
        assert counts == [427, 65, 609, 290, 939, 433, 109]

    def test_enmap(self, real_data, scene, labels):
        opened, given = scene("enmap-potsdam"), labels("enmap-potsdam")
        assert opened.bands.count == 215  # of 218 three where water vapour leaves no light
        counts = np.bincount(given.read(0, opened.grid.height).ravel())[1:].tolist()
        assert counts == [505, 953, 1694, 2070, 91, 359]
        assert given.legend.names[6] == "water"

    def test_urban_like(self, real_data, scene, labels):
        opened, given = scene("urban-like"), labels("urban-like")
        assert (opened.grid.height, opened.grid.width, opened.bands.count) == (307, 307, 162)
        numbers = given.read(0, 307)
        # A crop of the real scene came with the same shares, row by row.
        with np.load(real_data / "urban-crop" / "urban_crop_with_abundances.npz") as crop:
            shares = crop["abundances"]
        expected = np.where(shares.max(axis=2) >= 0.8, shares.argmax(axis=2) + 1, 0)
        np.testing.assert_array_equal(numbers[:80, 187:287], expected)
        values, valid = opened.read(0, 307)
        assert valid.all()
        spectra = values[numbers == 2].mean(axis=0)
        # Grass: dark in the red, bright in the near infrared.
        assert spectra[70] > 3 * spectra[40]
