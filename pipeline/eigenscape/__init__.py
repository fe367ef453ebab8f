"""eigenscape: hyperspectral scene in, eigenmaps and georeferenced class map out, out of core."""

from typing import TYPE_CHECKING

from eigenscape.base.lazily import lazy_names
from eigenscape.base.version import __version__

if TYPE_CHECKING:
    from eigenscape.applied.run import apply
    from eigenscape.base.registry import register
    from eigenscape.estimators import (
        EigenfunctionClassifier,
        GeodesicClassifier,
        InterpolatedClassifier,
        LaplacianEigenmaps,
        NeighborsTransformer,
        PoissonClassifier,
        SchroedingerEigenmaps,
        SpectralClusterer,
        TikhonovClassifier,
    )
    from eigenscape.estimators.classifiers.labels import labelled_accuracy
    from eigenscape.job.jobfile import Job, load_job, parse_job
    from eigenscape.learn.classify.nearestneighbors import classify_new
    from eigenscape.spectrum.eigenpairs import Eigenpairs, eigenpairs
    from eigenscape.spectrum.extension import extend
    from eigenscape.store.verification import verify
    from eigenscape.study.outcomes import StudyResult
    from eigenscape.study.run import run_study
    from eigenscape.tuning.outcomes import Tuned
    from eigenscape.tuning.run import tune
    from eigenscape.workflow.finished.reports import report
    from eigenscape.workflow.finished.result import Result
    from eigenscape.workflow.finished.xarrays import open_maps, open_run
    from eigenscape.workflow.objects import job_for
    from eigenscape.workflow.spine import plan, run

__all__ = [
    "EigenfunctionClassifier", "Eigenpairs", "GeodesicClassifier", "InterpolatedClassifier", "Job",
    "LaplacianEigenmaps", "NeighborsTransformer", "PoissonClassifier", "Result", "SchroedingerEigenmaps",
    "SpectralClusterer", "StudyResult", "TikhonovClassifier", "Tuned",
    "__version__", "apply", "classify_new", "eigenpairs", "extend", "job_for", "labelled_accuracy",
    "load_job", "open_maps", "open_run", "parse_job", "plan", "register", "report", "run", "run_study",
    "tune", "verify",
]  # fmt: skip

_HOME = {
    "apply": "applied.run",
    "labelled_accuracy": "estimators.classifiers.labels",
    "EigenfunctionClassifier": "estimators",
    "GeodesicClassifier": "estimators",
    "InterpolatedClassifier": "estimators",
    "TikhonovClassifier": "estimators",
    "LaplacianEigenmaps": "estimators",
    "NeighborsTransformer": "estimators",
    "PoissonClassifier": "estimators",
    "SchroedingerEigenmaps": "estimators",
    "SpectralClusterer": "estimators",
    "Eigenpairs": "spectrum.eigenpairs",
    "eigenpairs": "spectrum.eigenpairs",
    "Job": "job.jobfile",
    "load_job": "job.jobfile",
    "parse_job": "job.jobfile",
    "register": "base.registry",
    "classify_new": "learn.classify.nearestneighbors",
    "job_for": "workflow.objects",
    "open_maps": "workflow.finished.xarrays",
    "open_run": "workflow.finished.xarrays",
    "report": "workflow.finished.reports",
    "extend": "spectrum.extension",
    "StudyResult": "study.outcomes",
    "run_study": "study.run",
    "tune": "tuning.run",
    "Tuned": "tuning.outcomes",
    "verify": "store.verification",
    "Result": "workflow.finished.result",
    "plan": "workflow.spine",
    "run": "workflow.spine",
}


# Imported on first use: `eigenscape --help` must not wait for dask and zarr.
__getattr__, __dir__ = lazy_names(
    __name__, _HOME, ("datasets", "errors", "estimators", "learn", "theory")
)
