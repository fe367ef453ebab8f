"""scikit-learn estimators on NumPy, sparse and dask arrays: fronts of the same stages as a job.

::

    samples       what is given, checked, streamed into a run directory
    precomputed   graphs that are given in place of samples
    fitting       parameters -> job; its stages, one after the other
    folders       where the run lies: kept, or deleted with the estimator
    base          parameters of the graph        spectral     + eigenvectors, new samples
    documents     every parameter in every docstring      conventions   checks that cannot hold
    classifiers/  labels spread over the graph; least squares on eigenvectors
    eigenmaps, schroedinger, clusterer, transformer: the other estimators
"""

from eigenscape.estimators.classifiers.eigenfunctions import EigenfunctionClassifier
from eigenscape.estimators.classifiers.geodesic import GeodesicClassifier
from eigenscape.estimators.classifiers.interpolated import InterpolatedClassifier
from eigenscape.estimators.classifiers.poisson import PoissonClassifier
from eigenscape.estimators.classifiers.tikhonov import TikhonovClassifier
from eigenscape.estimators.clusterer import SpectralClusterer
from eigenscape.estimators.eigenmaps import LaplacianEigenmaps
from eigenscape.estimators.failedchecks import expected_failed_checks
from eigenscape.estimators.schroedinger import SchroedingerEigenmaps
from eigenscape.estimators.transformer import NeighborsTransformer

__all__ = [
    "EigenfunctionClassifier",
    "GeodesicClassifier",
    "InterpolatedClassifier",
    "LaplacianEigenmaps",
    "NeighborsTransformer",
    "PoissonClassifier",
    "SchroedingerEigenmaps",
    "SpectralClusterer",
    "TikhonovClassifier",
    "expected_failed_checks",
]
