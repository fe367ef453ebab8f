"""Methods of tables: found by file, by entry point, registered; what is said of those that are not there."""

import pickle
import subprocess
import sys
from importlib import reload
from typing import Literal

import pytest

import eigenscape
from eigenscape.base.registry import register
from eigenscape.errors import InputError, JobError
from eigenscape.features.linear import LinearMap, LinearMethod
from eigenscape.features.methods.pca import PrincipalComponents
from eigenscape.job.jobfile import load_job, parse_job
from eigenscape.job.options import REGISTRIES, FeatureOptions
from eigenscape.job.registry import MethodOptions

FEATURES = FeatureOptions.registry

OTHER = '''
from typing import Annotated, Literal

from pydantic import Field

from eigenscape.features.linear import LinearMap, LinearMethod


class First(LinearMethod):
    """The first bands."""

    method: Literal["first-bands"] = "first-bands"
    """The first bands."""
    bands: Annotated[int, Field(ge=1)] = 3
    """How many."""

    def count(self, bands):
        return min(self.bands, bands)

    def fit(self, context, source):
        import numpy as np

        bands = source.shape[1]
        return LinearMap(basis=np.eye(bands, self.count(bands), dtype=np.float32)), {}
'''


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """Leave no method of a test registered."""
    for registry in REGISTRIES.values():
        monkeypatch.setattr(registry, "_registered", {})


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package on the path as if it were installed."""

    def put(module, text, points, package=None):
        package = package or module.replace("_", "-")
        folder = tmp_path / package
        folder.mkdir()
        (folder / f"{module}.py").write_text(text)
        info = folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[eigenscape.features]\n{points}\n")
        monkeypatch.syspath_prepend(str(folder))
        return folder

    return put


def parse(**features):
    return parse_job({"scene": {"path": "a.tif"}, "features": features})


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=lambda registry: registry.table)
def test_registry__built_in_methods_are_complete(registry):
    assert registry.names()[0] == registry.default
    for name in registry.names():
        kind = registry.find(name)
        assert kind.__module__ == f"{registry.folder}.{name.replace('-', '_')}"
        assert registry.check(kind) == name
        assert kind.__doc__.endswith(".")
        assert set(kind.descriptions()) >= set(kind.model_fields)


def test_names__import_nothing():
    code = (
        "import sys; from eigenscape.job.options import REGISTRIES\n"
        "for registry in REGISTRIES.values():\n"
        "    assert len(registry.names()) > 3\n"
        "    assert not [name for name in sys.modules if name.startswith(registry.folder)]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_parse_job__a_method_is_one_class():
    job = parse(method="pca", dimension=4)
    assert type(job.features) is PrincipalComponents
    assert pickle.loads(pickle.dumps(job)) == job
    assert "seed" not in job.to_toml().partition("[features]")[2].partition("[neighbors]")[0]


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ({"method": "pcaa"}, "features.method = 'pcaa': no such method of [features]. Did you mean pca? "
         "There are: random-projection, mnf, none, pca."),
        ({"method": 3}, "features.method = 3: input should be a valid string."),
        ({"method": "none", "seed": 3}, 'features.seed = 3: has no effect with features.method = "none". '
         'It is read only with features.method = "random-projection". Remove features.seed, or change '
         "features.method."),
        ({"method": "none", "sead": 3}, "unknown key features.sead. Did you mean features.seed?"),
        ({"dimension": 0}, "features.dimension = 0: input should be greater than or equal to 1."),
    ],
)  # fmt: skip
def test_parse_job__says_what_is_wrong(features, said):
    with pytest.raises(JobError) as caught:
        parse(**features)
    assert said in str(caught.value)


def test_parse_job__an_entry_point_of_another_package(install):
    install("bands_of_others", OTHER, "first-bands = bands_of_others:First")
    job = parse(method="first-bands", bands=2)
    assert type(job.features).__module__ == "bands_of_others"
    assert job.features.count(7) == 2
    assert parse_job({"scene": {"path": "a.tif"}, **{"features": {"method": "none"}}})
    with pytest.raises(JobError, match=r"only with features\.method = \"first-bands\""):
        parse(bands=2)
    assert "first-bands" in FEATURES.names()
    assert pickle.loads(pickle.dumps(job)) == job


def test_load_job__keys_of_a_method_of_another_package(install, tmp_path):
    install("bands_of_more", OTHER, "first-bands = bands_of_more:First")
    (tmp_path / "job.toml").write_text('scene.path = "a.tif"\nfeatures.method = "first-bands"\n')
    assert load_job(tmp_path / "job.toml", ["features.bands=5"]).features.bands == 5
    (tmp_path / "job.toml").write_text(
        'scene.path = "a.tif"\nfeatures.method = "first-bands"\nfeatures.bands = 7'
    )
    assert load_job(tmp_path / "job.toml", ["features.method=pca"]).features.method == "pca"


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ("first-bands = broken_bands:Second", "AttributeError"),
        ("first-bands = no_such_module:First", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("first-bands = broken_bands:LinearMap", "must be a class derived from eigenscape.features.method."),
        ("first-bands = broken_bands:LinearMethod", "[features]: it does not define count, fit"),
    ],
)  # fmt: skip
def test_parse_job__an_entry_point_that_is_broken(install, points, said):
    install("broken_bands", OTHER, points, "broken-package")
    with pytest.raises(JobError) as caught:
        parse(method="first-bands")
    message = str(caught.value)
    assert message.count("\n") == 0
    assert (
        "features.method = 'first-bands': the method of [features] of the entry point " in message
    )
    assert "of the package broken-package (group eigenscape.features) cannot be used" in message
    assert said in message
    assert "Update that package, correct its entry point, or uninstall it." in message
    # It is in nobody else's way.
    assert parse(method="pca").features.method == "pca"
    with pytest.raises(JobError, match=r"no such method of \[features\]"):
        parse(method="second-bands")


def test_parse_job__entry_points_that_contradict(install):
    install("bands_one", OTHER, "first-bands = bands_one:First\nother-name = bands_one:First")
    with pytest.raises(
        JobError, match=r"other-name': .*package bands-one .* has the name 'first-bands'"
    ):
        parse(method="other-name")
    install("bands_two", OTHER, "first-bands = bands_two:First")
    with pytest.raises(JobError, match=r"two of them are .*package bands-two .*package bands-one"):
        parse(method="first-bands")


def test_parse_job__an_entry_point_in_another_group(install):
    folder = install("bands_astray", OTHER, "first-bands = bands_astray:First")
    points = folder / "bands_astray-1.0.dist-info" / "entry_points.txt"
    points.write_text("[eigenscape.feature]\nfirst-bands = bands_astray:First\n")
    with pytest.raises(JobError) as caught:
        parse(method="first-bands")
    assert (
        "There is the entry point bands_astray:First of the package bands-astray (group "
        "eigenscape.feature); the group of a method of [features] is eigenscape.features."
    ) in str(caught.value)


def test_register__refuses_a_name_that_a_job_could_change():
    class Loose(PrincipalComponents):
        """A name of any text."""

        method: str = "loose"

    with pytest.raises(JobError, match=r'Write method: Literal\["loose"\] = "loose"'):
        register(Loose)


def test_register__is_a_decorator(install):
    assert eigenscape.register is register
    folder = install("bands_here", OTHER.replace("class First", "@eigenscape.register\nclass First")
                     .replace("from typing", "import eigenscape\nfrom typing", 1), "")  # fmt: skip
    import bands_here

    job = parse(method="first-bands")
    assert type(job.features) is bands_here.First
    # A notebook runs a cell again.
    reload(bands_here)
    job = parse(method="first-bands")
    assert type(job.features) is bands_here.First
    code = (
        f"import pickle, sys; sys.path.insert(0, {str(folder)!r}); pickle.loads({pickle.dumps(job)!r});"
        "import eigenscape; print(eigenscape.parse_job({'scene': {'path': 'a'}, "
        "'features': {'method': 'first-bands'}}).features.count(9))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "3\n"


def test_register__refuses_what_is_no_method():
    class Another(PrincipalComponents):
        method: Literal["pca"] = "pca"

    class Nameless(PrincipalComponents):
        method: str

    for given, said in (
        (LinearMap, "is not a method, a kind of cluster, a reader of scenes or an output format"),
        (
            MethodOptions,
            "is not a method, a kind of cluster, a reader of scenes or an output format",
        ),
        (LinearMethod, r"is not a valid method of \[features\]: it does not define count, fit"),
        (
            FeatureOptions,
            r"FeatureOptions'> is not a valid method of .*derived from .*\.FeatureMethod",
        ),
        (Another, "'pca': two of them are a method .*eigenscape.features.methods and "),
        (Nameless, 'it has no name. Give it method = "NAME"'),
    ):
        with pytest.raises(InputError, match=said):
            register(given)
    assert register(PrincipalComponents) is PrincipalComponents
