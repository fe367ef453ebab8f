"""Errors of estimators speak of their parameters: no key of a job, no file of a run, no command."""

import errno
import pickle
import re

import dask.array
import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

from eigenscape import (
    EigenfunctionClassifier,
    InterpolatedClassifier,
    LaplacianEigenmaps,
    NeighborsTransformer,
    PoissonClassifier,
    SchroedingerEigenmaps,
    SpectralClusterer,
)
from eigenscape.base.files.whole import explain_write_errors
from eigenscape.errors import (
    EstimatorError,
    InputError,
    MemoryLimitError,
    MissingExtraError,
    OutputError,
)
from eigenscape.estimators import base, fitting
from eigenscape.estimators.fitting import KEYS, in_parameters, parameter_names
from eigenscape.job.explanations import keys_of
from eigenscape.job.jobfile import Job
from eigenscape.job.options import SpectrumOptions
from eigenscape.spectrum.stage import _check_dimension

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
Y = np.arange(60) % 2


def keys(model=Job, place=""):
    """Yield every key of a job, of all methods, with its table."""
    for name, field in keys_of(model).items():
        inner = [kind for kind in (field.annotation, *getattr(field.annotation, "__args__", ()))]
        tables = [kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel)]
        for table in tables:
            yield from keys(table, f"{place}{name}.")
        if place and not tables:
            yield f"{place}{name}"


JOB_KEYS = sorted(keys())
FOREIGN = re.compile(
    "|".join(
        [
            *map(re.escape, JOB_KEYS),
            r"\[(graph|scene|limits|spectrum)\b",
            "--",
            r"\bjobs? ",
            "command",
        ]
    )
)


def fit(model, samples=X, y=Y):
    return lambda: model.fit(samples, y)


def moved(model, memory="2GiB"):
    return lambda: model.fit(X, Y).set_params(memory=memory).transform(X + 0.1)


PROVOKED = [
    (fit(LaplacianEigenmaps(n_neighbors=0)), "n_neighbors = 0"),
    (fit(LaplacianEigenmaps(n_neighbors=2.5)), "n_neighbors = 2.5"),
    (fit(LaplacianEigenmaps(neighbors="radius")), "neighbors = 'radius': give 'lanczos-bisection'"),
    (fit(LaplacianEigenmaps(neighbors="landmarks")), "neighbors = 'landmarks'"),
    (fit(LaplacianEigenmaps(neighbors="kd")), "neighbors = 'kd'"),
    (fit(LaplacianEigenmaps(metric="cosine")), "metric = 'cosine'"),
    (fit(LaplacianEigenmaps(features="mnf")), "features = 'mnf'.*samples have none"),
    (fit(LaplacianEigenmaps(features_dimension=0)), "features_dimension = 0"),
    (fit(LaplacianEigenmaps(weights="gauss")), "weights = 'gauss'"),
    (fit(LaplacianEigenmaps(bandwidth=-1)), "bandwidth = -1"),
    (fit(LaplacianEigenmaps(laplacian="sym")), "laplacian = 'sym'"),
    (fit(LaplacianEigenmaps(tolerance=0)), "tolerance = 0"),
    (fit(LaplacianEigenmaps(0)), "n_components = 0"),
    (fit(LaplacianEigenmaps(60)), "n_components = 60: 60 samples have at most 59"),
    (fit(LaplacianEigenmaps(memory="much")), "memory = 'much'"),
    (fit(LaplacianEigenmaps(memory="100MiB")), 'memory = 100.0 MiB: .* Set memory to "192MiB" or more'),
    (fit(LaplacianEigenmaps(threads=0)), "threads = 0"),
    (fit(LaplacianEigenmaps(directory="/dev/null/x")), "Set directory to a directory"),
    (
        fit(LaplacianEigenmaps(features="pca", memory="250MiB"), RNG.normal(size=(60, 3000))),
        'features = "pca": .* Set features to "random-projection", or memory to "384MiB" or more',
    ),
    (
        fit(LaplacianEigenmaps(memory="210MiB"), dask.array.zeros((10**5, 500), chunks=10**5), None),
        r"memory leaves .* X.rechunk\(\(",
    ),
    (fit(LaplacianEigenmaps(), X * 1e30), "features reach .*Leave samples .*StandardScaler"),
    (
        fit(LaplacianEigenmaps(), np.arange(120).reshape(60, 2).astype("datetime64[s]")),
        r"^X: an array of type datetime64\[s\]; real numbers are needed. Convert it",
    ),
    (fit(NeighborsTransformer(), np.arange(60)[:, None].astype("m8[D]")), r"timedelta64\[D\]"),
    (
        fit(LaplacianEigenmaps(), pd.DataFrame({"on": pd.date_range("2026", periods=60, tz="UTC")})),
        "^X: an array of type object; real numbers are needed",
    ),
    (moved(LaplacianEigenmaps(30)), "^the largest eigenvalue is .* Set n_components to .* fit again"),
    (moved(LaplacianEigenmaps(memory="2GiB"), "201MiB"), "memory leaves 1.0 MiB: .* takes .* more"),
    (fit(SchroedingerEigenmaps(alpha=0)), "alpha = 0"),
    (fit(SchroedingerEigenmaps(relative="maybe")), "relative = 'maybe'"),
    (fit(SchroedingerEigenmaps(potential="wall")), "potential = 'wall'"),
    (fit(SchroedingerEigenmaps(potential=[1, 2])), "potential: its shape"),
    (
        fit(SchroedingerEigenmaps(potential="identification"), X[:10], np.arange(10)),
        "^potential: of 10 chosen samples .* no two have the same class",
    ),
    (fit(EigenfunctionClassifier(0)), "n_components = 0"),
    (fit(PoissonClassifier("mbo")), "method = 'mbo'"),
    (
        fit(PoissonClassifier(prior="half")),
        "prior = 'half': input should be 'none', 'training' or 'uniform', or .* a list in brackets",
    ),
    (fit(PoissonClassifier(prior=[0.5, 0.6])), "the shares sum to 1.1, not to 1"),
    (
        fit(PoissonClassifier("poisson-mbo", prior=[0.2, 0.3, 0.5]), y=np.array(["b", "a"] * 30)),
        "^prior has 3 shares, and the labels 2 classes: a, b. Give one share for each, in this order",
    ),
    (fit(EigenfunctionClassifier(prior=[0.5, 0.6])), "the shares sum to 1.1, not to 1"),
    (
        fit(EigenfunctionClassifier(prior=[0.2, 0.3, 0.5]), y=np.array(["b", "a"] * 30)),
        "^prior has 3 shares, and the labels 2 classes: a, b. Give one share for each, in this order",
    ),
    (
        fit(InterpolatedClassifier(prior=[0.2, 0.3, 0.5]), y=np.array(["b", "a"] * 30)),
        "^prior has 3 shares, and the labels 2 classes: a, b. Give one share for each, in this order",
    ),
    (fit(SpectralClusterer(100)), "n_clusters = 100"),
    (fit(SpectralClusterer(assign_labels="discretize")), "assign_labels = 'discretize'"),
]  # fmt: skip


@pytest.mark.parametrize(("work", "message"), PROVOKED, ids=[text for _, text in PROVOKED])
def test_errors__speak_of_parameters(work, message):
    with pytest.raises(EstimatorError, match=message) as told:
        work()
    assert not FOREIGN.search(str(told.value)), told.value
    assert "eigenscape-" not in str(told.value)


def test_in_parameters__every_key_whole():
    for name, key in KEYS.items():
        assert (
            in_parameters(f"{key} = 3. Set {key} to 2, {key}.")
            == f"{name} = 3. Set {name} to 2, {name}."
        )
    assert in_parameters("neighbors.kind = 3") == "neighbors.kind = 3"
    assert set(JOB_KEYS) >= set(KEYS.values())


def test_in_parameters__tables_and_options():
    assert in_parameters("[graph.potential] raster = 'a'") == "potential raster = 'a'"
    assert in_parameters("Set output.directory or --run-dir to a") == "Set directory to a"


def test_parameter_names__takes_what_errors_say_to_estimators(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    again = "give the same command again"
    with pytest.raises(OutputError, match=again) as told, explain_write_errors(tmp_path):
        raise full
    # As it comes from another process.
    error = pickle.loads(pickle.dumps(told.value))
    with pytest.raises(EstimatorError) as told, parameter_names():
        raise error
    assert str(told.value) == (
        f"{tmp_path}: the disk is full. Free some space or set directory to another disk, and fit again."
    )
    assert str(error).startswith(f"{tmp_path}: the disk is full. Finished blocks are kept: free")


def test_parameter_names__a_graph_of_several_components():
    with pytest.raises(EstimatorError) as told, parameter_names():
        _check_dimension(SpectrumOptions(dimension=9), 12, 4)
    assert str(told.value).endswith("are not constant. Set n_components to 8 or less.")
    with pytest.raises(InputError, match=r'8 or less, or graph.components to "connect"\.$'):
        _check_dimension(SpectrumOptions(dimension=9), 12, 4)


def test_parameter_names__keeps_a_missing_extra():
    with pytest.raises(MissingExtraError, match="clusters"), parameter_names():
        raise MissingExtraError("dask-ml", "clusters", "k-means")
    with pytest.raises(EstimatorError, match=r"^memory = 1 B") as told, parameter_names():
        raise MemoryLimitError("limits.memory = 1 B: too little")
    assert isinstance(told.value.__cause__, InputError)


def test_parameters__choices_are_those_of_the_hints():
    assert sorted(fitting.offered("neighbors")) == sorted(base.Neighbors.__args__)
    assert sorted(fitting.offered("features")) == sorted(base.Features.__args__)
