"""A kind of cluster, a reader and an output format of other packages, as pipeline/README.md has them."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import rasterio
from distributed import get_worker

import eigenscape
from eigenscape.base.formats import FORMATS
from eigenscape.clusters import ClusterOptions, connect, load_cluster
from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.registry import KINDS
from eigenscape.errors import ClusterError, JobError, SceneError
from eigenscape.scenes import Reader
from eigenscape.scenes.reading import READERS, find_reader
from eigenscape.workflow import stages
from eigenscape.workflow.stages import stage_keys

PAGE = Path(__file__).resolve().parents[2] / "pipeline" / "README.md"
GROUPS = {
    "scratch": "eigenscape.clusters", "plain": "eigenscape.readers", "asciigrid": "eigenscape.formats",
}  # fmt: skip


def written(name):
    """Return the code and the entry point that the page gives of an addition."""
    fences = re.findall(r"```(python|toml)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    texts = {kind: text for kind, text in fences if name in text}
    entry = re.fullmatch(rf'\[project\.entry-points\."{GROUPS[name]}"\]\n(.*)\n', texts["toml"])
    return texts["python"], entry[1].replace('"', "")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return what installs a package of one module with an entry point, as pip would leave it."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    # Workers import it as well.
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{':'.join(filter(None, sys.path))}")
    made = []

    def make(module, code, group, entry):
        made.append(module)
        (folder / f"{module}.py").write_text(code, encoding="utf-8")
        package = folder / f"{module}-1.0.dist-info"
        package.mkdir()
        (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (package / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
        # Another place on the path: what was found before is not asked again.
        monkeypatch.syspath_prepend(str(folder))

    yield make
    for registry in (KINDS, READERS, FORMATS):
        registry._registered.clear()
    for module in made:
        sys.modules.pop(module, None)


def install_from_page(install, name):
    code, entry = written(name)
    install(name, code, GROUPS[name], entry)


@pytest.fixture
def plain(tmp_path):
    """Return a scene of 20 x 30 pixels and 6 bands in the page's format, and its values."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 30, 6)).round(3)
    values[:10] += 3
    values[4, 5, 2] = np.nan
    path = tmp_path / "scene.plain"
    lines = (" ".join(map(str, pixel)) for pixel in values.reshape(-1, 6))
    path.write_text("plain 20 30 6\n" + "\n".join(lines) + "\n", encoding="ascii")
    return path, values


def job_of(path, tmp_path):
    return eigenscape.parse_job(
        {
            "scene": {"path": str(path)},
            "neighbors": {"k": 8},
            "spectrum": {"dimension": 4},
            "output": {"directory": str(tmp_path / "runs")},
        }
    )


@pytest.mark.slow
def test_kind_of_another_package__runs_a_job(install, plain, tmp_path):
    install_from_page(install, "plain")
    install_from_page(install, "scratch")
    file = tmp_path / "scratch.toml"
    there = str(tmp_path / "scratch")
    file.write_text(f'kind = "scratch"\ndirectory = "{there}"\n', encoding="utf-8")
    on = load_cluster(file)
    assert on == ClusterOptions(kind="scratch", directory=there)
    with connect(on, None, 2**30) as executor:
        found = []
        # A function without a name: workers cannot import this module.
        executor.run(
            lambda _: get_worker().local_directory, [0], lambda _, result, __: found.append(result)
        )
    assert found[0].startswith(there)
    path, values = plain
    job = job_of(path, tmp_path)
    alone = eigenscape.run(job, run_dir=tmp_path / "alone")
    shared = eigenscape.run(job, on=on, run_dir=tmp_path / "shared")
    one, two = (eigenscape.open_run(result.path) for result in (alone, shared))
    given = np.isfinite(values).all(axis=2)
    np.testing.assert_array_equal(one["values"], values[given].astype(np.float32))
    np.testing.assert_array_equal(two["values"], one["values"])
    np.testing.assert_allclose(two["eigenvalue"], one["eigenvalue"], atol=1e-6)
    assert one.sizes == {"sample": 599, "band": 6, "feature": 6, "neighbor": 8, "mode": 5}


def test_kind_of_another_package__its_keys_are_its_own(install):
    install_from_page(install, "scratch")
    extra = {"directory": "/tmp"}
    given = {"kind": "scratch", **extra}
    for table, words in (
        (
            {"kind": "scratch"},
            r"kind = 'scratch' needs directory\. Scratch directory of the workers\.",
        ),
        (
            {**given, "workers": 65},
            r"workers = 65: .*less than or equal to 64\. Worker processes\.",
        ),
        ({**given, "queue": "long"}, r"queue is no key of kind = 'scratch' \(but of .*slurm"),
        ({"kind": "slurm", **extra}, r"directory is no key of kind = 'slurm' \(but of scratch\)"),
        ({"kind": "scrat"}, r"'scrat': no such kind of cluster\. Did you mean scratch\?"),
    ):
        with pytest.raises(ClusterError, match=words):
            parse_cluster(table, "c.toml")


def test_format_of_another_package__is_written(install, write_tif, small, tmp_path, monkeypatch):
    write_tif("scene.tif", small.cube, hole=small.hole)
    write_tif("labels.tif", small.labels, nodata=0)

    def job(*formats):
        table = {
            "scene": {"path": "scene.tif", "labels": "labels.tif"},
            "spectrum": {"dimension": 4}, "learn": {"method": "centroid-angle", "trials": 1},
            "output": {"directory": "runs", "formats": formats, "eigenvectors": 0},
        }  # fmt: skip
        return eigenscape.parse_job(table, base=tmp_path)

    with pytest.raises(
        JobError, match=r"'asciigrid' is not an output format.*There are: .*geotiff"
    ):
        job("asciigrid")
    install_from_page(install, "asciigrid")
    before, after = stage_keys(job("geotiff")), stage_keys(job("geotiff", "asciigrid"))
    assert [name for name in before if before[name] != after[name]] == ["export"]
    result = eigenscape.run(job("geotiff", "asciigrid"))
    with (
        rasterio.open(result.outputs["class_map"]) as expected,
        rasterio.open(result.outputs["class_map_text"]) as found,
    ):
        np.testing.assert_array_equal(found.read(1), expected.read(1))
        assert found.transform == expected.transform
    assert eigenscape.verify(result.path)["whole"]
    # Its code counts, and what was typed in has none that could be compared.
    monkeypatch.delattr(sys.modules["asciigrid"], "__file__")
    stages._code.cache_clear()
    with pytest.raises(JobError, match="AsciiGrid is not defined in a file"):
        stage_keys(job("asciigrid"))


def test_reader_of_another_package__damaged_header(install, plain, tmp_path):
    install_from_page(install, "plain")
    path, _ = plain
    path.write_text("plain 20 30\n", encoding="ascii")
    with pytest.raises(SceneError, match="its first line must be: plain ROWS COLUMNS BANDS"):
        eigenscape.plan(job_of(path, tmp_path))


def test_reader_of_another_package__damaged_lines(install, plain, tmp_path):
    install_from_page(install, "plain")
    path, _ = plain
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    for damaged in (lines[:300], [*lines[:50], "a b c\n", *lines[51:]]):
        path.write_text("".join(damaged), encoding="ascii")
        with pytest.raises(SceneError, match=r"scene\.plain: damaged after line 1 "):
            eigenscape.run(job_of(path, tmp_path))


def test_reader_of_another_package__keys_of_the_scene(install, plain, tmp_path):
    install_from_page(install, "plain")
    path, values = plain
    values[:, :, 3] += 1e7
    values[2, 2, 4] = -1
    lines = (" ".join(map(repr, pixel)) for pixel in values.reshape(-1, 6).tolist())
    path.write_text("plain 20 30 6\n" + "\n".join(lines) + "\n", encoding="ascii")
    job = job_of(path, tmp_path)
    keys = {"bad_bands": (1, 6), "scale": 2.0, "nodata": -1.0}
    job = job.model_copy(update={"scene": job.scene.model_copy(update=keys)})
    run = eigenscape.open_run(eigenscape.run(job).path)
    kept = values[:, :, 1:5]
    given = np.isfinite(kept).all(axis=2) & (kept != -1).all(axis=2)
    assert given.sum() == 598
    # Less an origin: far from 0 single precision would tell whole numbers alone.
    moved = run["values"].values - 2 * kept[given]
    np.testing.assert_allclose(moved, np.broadcast_to(moved[0], moved.shape), atol=1e-5)


@pytest.mark.parametrize(
    ("key", "value"), [("bad_bands", (2,)), ("scale", 2.0), ("nodata", -1.0), ("variable", "cube")]
)
def test_reader_of_another_package__a_key_that_it_leaves_out_is_refused(
    install, plain, tmp_path, key, value
):
    code, entry = written("plain")
    for name, usual in {"bad_bands": "()", "scale": "'auto'", "nodata": "None"}.items():
        code = code.replace(f"options.{name}", usual)
    install("plain", code, GROUPS["plain"], entry)
    job = job_of(plain[0], tmp_path)
    eigenscape.plan(job)
    job = job.model_copy(update={"scene": job.scene.model_copy(update={key: value})})
    with pytest.raises(
        SceneError, match=rf"scene\.{key} = .*: the reader 'plain' of plain does not read this key"
    ):
        eigenscape.plan(job)


def test_reader_of_another_package__one_that_hands_on_its_options_has_read_them(
    install, plain, tmp_path
):
    code, entry = written("plain")
    code = code.replace(
        "        with open(path", "        options = options.model_copy()\n        with open(path"
    )
    install("plain", code, GROUPS["plain"], entry)
    job = job_of(plain[0], tmp_path)
    scaled = job.model_copy(update={"scene": job.scene.model_copy(update={"scale": 2.0})})
    assert eigenscape.plan(scaled).samples == eigenscape.plan(job).samples > 0


@pytest.mark.parametrize("named", [False, True], ids=["by the scene", "by the reader"])
def test_reader_of_another_package__all_its_files_are_in_the_key(install, plain, tmp_path, named):
    code, entry = written("plain")
    code = code.replace("return (self.path,)", 'return (self.path, self.path + ".more")')
    if named:
        code += '\n    def files(self, path):\n        return path, path + ".more"\n'
    install("plain", code, GROUPS["plain"], entry)
    further = Path(f"{plain[0]}.more")
    further.write_text("one")
    job = job_of(plain[0], tmp_path)
    before = stage_keys(job)
    assert stage_keys(job) == before
    further.write_text("two")
    assert stage_keys(job)["samples"] != before["samples"]


def test_reader_of_another_package__its_code_is_in_the_key(install, plain, tmp_path, monkeypatch):
    install_from_page(install, "plain")
    job = job_of(plain[0], tmp_path)
    monkeypatch.setattr(stages, "_code", stages._code.__wrapped__)  # once for a process, otherwise
    before = stage_keys(job)
    module = Path(sys.modules["plain"].__file__)
    code = module.read_text(encoding="utf-8")
    module.write_text(f"# A comment.\n{code}", encoding="utf-8")
    assert stage_keys(job) == before
    module.write_text(code.replace("values[~valid] = 0", "values[~valid] = 1"), encoding="utf-8")
    assert stage_keys(job)["samples"] != before["samples"]


def test_register__in_a_script(install, plain, tmp_path):
    code, _ = written("plain")
    names = {"__name__": "script"}
    exec(code, names)  # as a module that a script has imported
    assert find_reader(str(plain[0])).name == "plain"
    assert find_reader("scene.npy").name == "arrays"
    # Nothing could tell whether the code of what was typed in has changed.
    with pytest.raises(
        SceneError, match=r"class .*PlainReader is not defined in a file.* Put it into a module"
    ):
        stage_keys(job_of(plain[0], tmp_path))


BROKEN = "import nothing_of_this_name\n"


@pytest.mark.parametrize(
    ("group", "ask", "error"),
    [
        ("eigenscape.clusters", lambda: parse_cluster({"kind": "broken"}, "c.toml"), ClusterError),
        ("eigenscape.readers", lambda: find_reader("scene.broken"), SceneError),
    ],
)
def test_entry_point__that_cannot_be_imported(install, group, ask, error):
    install("broken", BROKEN, group, "broken = broken:Class")
    with pytest.raises(error) as caught:
        ask()
    for word in (
        "'broken'", "broken:Class of the package broken", group, "ModuleNotFoundError",
        "nothing_of_this_name", "uninstall it",
    ):  # fmt: skip
        assert word in str(caught.value)


def test_entry_point__no_reader(install):
    install("other", "class Other: pass\n", "eigenscape.readers", "other = other:Other")
    with pytest.raises(
        SceneError, match=r"Other.* is not a valid reader of scenes: .*scenes\.reading\.Reader"
    ):
        find_reader("scene.tif")


def test_entry_point__reader_that_cannot_open(install):
    code, _ = written("plain")
    code = code.replace("    def open(", "    def opened(")
    install("plain", code, "eigenscape.readers", "plain = plain:PlainReader")
    with pytest.raises(
        SceneError, match=r"PlainReader.* is not a valid reader of scenes: .*not define open"
    ):
        find_reader("scene.tif")


def test_entry_point__reader_that_fails_when_it_is_asked(install, tmp_path):
    code, _ = written("plain")
    asked = 'Path(path).suffix == ".plain"'
    assert asked in code
    code = code.replace(asked, 'Path(path).read_bytes().startswith(b"plain")')
    install("plain", code, "eigenscape.readers", "plain = plain:PlainReader")
    with pytest.raises(SceneError, match=r"'plain' of plain fails .*IsADirectoryError.*uninstall"):
        find_reader(str(tmp_path))


def test_entry_point__of_another_name(install):
    code, _ = written("plain")
    install("plain", code, "eigenscape.readers", "plane = plain:PlainReader")
    with pytest.raises(SceneError, match=r"'plane': .*has the name 'plain'"):
        find_reader("scene.tif")


def test_entry_point__name_that_is_taken(install):
    code, _ = written("scratch")
    install(
        "scratch",
        code.replace('"scratch"', '"slurm"'),
        "eigenscape.clusters",
        "slurm = scratch:ScratchOptions",
    )
    with pytest.raises(
        ClusterError, match=r"'slurm': two .*eigenscape\.clusters\.kinds and .*package scratch"
    ):
        parse_cluster({"kind": "slurm"}, "c.toml")


def test_register__name_that_is_taken():
    class Another(Reader):
        name = "arrays"

        def recognises(self, path):
            return False

        def open(self, path, options, resolve):
            raise NotImplementedError

    with pytest.raises(SceneError, match="'arrays': two of them are a reader of scenes"):
        eigenscape.register(Another)
    with pytest.raises(
        ClusterError, match=r"is not a valid kind of cluster: .*derived from .*ClusterOptions"
    ):
        KINDS.register(Another)


@pytest.mark.parametrize("registry", [KINDS, READERS, FORMATS], ids=["kinds", "readers", "formats"])
def test_registry__names_of_the_folder_are_those_of_the_classes(registry):
    for name, found in registry.all().items():
        assert registry.check(found) == name
        assert found.__module__ == f"{registry.folder}.{name}"
        assert eigenscape.register(found) is found
    assert not registry._registered
