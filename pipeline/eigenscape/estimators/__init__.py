"""scikit-learn estimators on NumPy, sparse and dask arrays: fronts of the same stages as a job.

::

    samples       what is given, checked, streamed into a run directory
    fitting       parameters -> job; its stages, one after the other
    folders       where the run lies: kept, or deleted with the estimator
    base          parameters of the graph        spectral     + eigenvectors, new samples
    documents     every parameter in every docstring      conventions   checks that cannot hold
    potentials    labels spread over the graph   labels       y, -1 for none
    eigenmaps, schroedinger, eigenfunctions, poisson, clusterer, transformer: the estimators
"""

from eigenscape.estimators.clusterer import SpectralClusterer
from eigenscape.estimators.conventions import expected_failed_checks
from eigenscape.estimators.eigenfunctions import EigenfunctionClassifier
from eigenscape.estimators.eigenmaps import LaplacianEigenmaps
from eigenscape.estimators.poisson import PoissonClassifier
from eigenscape.estimators.schroedinger import SchroedingerEigenmaps
from eigenscape.estimators.transformer import NeighborsTransformer

__all__ = [
    "EigenfunctionClassifier",
    "LaplacianEigenmaps",
    "NeighborsTransformer",
    "PoissonClassifier",
    "SchroedingerEigenmaps",
    "SpectralClusterer",
    "expected_failed_checks",
]
