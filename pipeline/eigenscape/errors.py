"""Every error that eigenscape raises on purpose.

::

    EigenscapeError                exit status 1
    ├── InputError                 exit status 2: what was given cannot work
    │   ├── JobError               the job file or a --set
    │   ├── SceneError             the scene, its labels or its mask
    │   ├── MemoryLimitError       the job cannot fit into [limits] memory
    │   ├── OutputError            the output directory or its disk
    │   ├── ClusterError           the cluster file, its scheduler or its workers
    │   │   └── TaskMemoryError    a task took more memory than its worker has
    │   ├── BusyError              another process works in the same directory
    │   ├── EstimatorError         a parameter or an input of an estimator; a ValueError too
    │   ├── FetchError             a public data set cannot be fetched
    │   └── MissingExtraError      an optional dependency is not installed
    ├── ClusterLostError           scheduler or workers lost during a run; the same command continues
    ├── StoreError                 a run directory that is damaged or of another version
    │   └── ScratchError           scratch of an unfinished stage is not what was written there
    └── ConvergenceError           exit status 3: results kept, tolerance not met

A message says what was given, what the limit is and what to do about it. Programming mistakes of
our own are ``assert`` and ``TypeError``, never one of these.
"""

import difflib
from collections.abc import Iterable
from typing import Self


class EigenscapeError(Exception):
    """Base of all errors that eigenscape raises on purpose."""

    exit_status = 1


class InputError(EigenscapeError):
    """The input is invalid or cannot be processed; nothing was computed from it.

    Parameters
    ----------
    message
        What is wrong and what to do, in the words of a job: keys, options of commands.
    in_estimators
        The same for estimators, if they need more than their parameters' names for the keys in `message`.
    """

    exit_status = 2

    def __init__(self, message: str = "", in_estimators: str | None = None) -> None:
        super().__init__(message)
        self.in_estimators = message if in_estimators is None else in_estimators


class JobError(InputError):
    """A job file or an override of it is wrong."""


class SceneError(InputError):
    """A scene, its labels or its mask cannot be used."""


class MemoryLimitError(InputError):
    """The job cannot fit into ``[limits] memory``."""


class OutputError(InputError):
    """The output directory cannot be written, or its disk is full."""


class ClusterError(InputError):
    """A cluster file is invalid, its scheduler does not answer, or its workers are unusable."""


class TaskMemoryError(ClusterError):
    """A task took more memory than its worker has; its stage may be tried again with smaller blocks."""


class BusyError(InputError):
    """Another process works in the same directory, and this command does not wait."""


class ClusterLostError(EigenscapeError):
    """The scheduler or all workers were lost during a run; the same command continues it."""


class EstimatorError(InputError, ValueError):
    """A parameter or an input of an estimator is invalid; a `ValueError`, as scikit-learn expects."""


class FetchError(InputError):
    """A public data set cannot be downloaded: no answer, a wrong checksum, or no download address."""


class MissingExtraError(InputError):
    """An optional dependency is not installed.

    Parameters
    ----------
    package
        Name of the missing package for ``pip``.
    extra
        The extra of eigenscape that contains it.
    purpose
        The feature that needs the package, as the subject of a sentence.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed. "
            f"Install it with: pip install 'eigenscape[{extra}]'"
        )
        self._named = package, extra, purpose

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, str]]:
        # Dask sends the errors of its workers by pickle, which would call __init__ with the message.
        return type(self), self._named


class StoreError(EigenscapeError):
    """A run directory is damaged or was written by another version."""


class ScratchError(StoreError):
    """The scratch files of an unfinished stage are damaged; the stage begins again."""


class ConvergenceError(EigenscapeError):
    """The eigensolver stopped above its tolerance; its results are kept."""

    exit_status = 3


def reason_of(error: BaseException) -> str:
    """Return why a job failed: our own messages as they are, others with their kind."""
    return str(error) if isinstance(error, EigenscapeError) else f"{type(error).__name__}: {error}"


def concerns_all_jobs(error: BaseException) -> bool:
    """Return whether an error is not the fault of one job: the cluster is unusable or lost.

    A task that took too much memory is the fault of its job.
    """
    lost = isinstance(error, ClusterError | ClusterLostError)
    return lost and not isinstance(error, TaskMemoryError)


def concerns_all_variants(error: BaseException) -> bool:
    """Return whether an error is not the fault of one of several jobs with the same scene and disk.

    In addition to `concerns_all_jobs`: the disk is full or cannot be read, or a directory is in use.
    """
    return concerns_all_jobs(error) or isinstance(error, OutputError | BusyError | OSError)


def did_you_mean(
    name: str, choices: Iterable[str], *, shown: str = "{}", cutoff: float = 0.6
) -> str:
    """Return " Did you mean X?" for the most similar choice, or an empty text if none is similar.

    Parameters
    ----------
    name
        The given name.
    choices
        The existing names.
    shown
        Format of the choice in the question, with ``{}`` in its place.
    cutoff
        Smallest similarity, from 0 to 1, of a choice that is proposed.
    """
    close = difflib.get_close_matches(name, list(choices), n=1, cutoff=cutoff)
    return f" Did you mean {shown.format(close[0])}?" if close else ""
