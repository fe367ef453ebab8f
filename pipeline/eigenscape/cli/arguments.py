"""Arguments that several commands share, and the exit status of an error."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from eigenscape.base.process.addresses import check_address_space
from eigenscape.base.process.signals import StoppedBySignal, stopped_by_signals
from eigenscape.errors import EigenscapeError, InputError

if TYPE_CHECKING:
    from eigenscape.clusters import ClusterOptions
    from eigenscape.job.jobfile import Job


def run_dir_option(default: str) -> Any:
    """Return the option of the run directory of a command, whose help names what it is by default."""
    return typer.Option("--run-dir", metavar="DIR", help=f"Run directory (default: {default}).")


JobFile = Annotated[Path, typer.Argument(metavar="JOB", help="Job file (TOML).")]
On = Annotated[
    str | None,
    typer.Option(
        "--on", metavar="CLUSTER", help="Cluster file (TOML), or address of a Dask scheduler."
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a key of the job, such as neighbors.k=8."
    ),
]
CheckInput = Annotated[
    Literal["samples", "full"] | None,
    typer.Option(
        "--check-input",
        help="How to detect changed input files: by sampled blocks, or by their whole content.",
    ),
]
Small = Annotated[
    bool,
    typer.Option("--small", help="Use the small version of a study (its table [study.small])."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON value as the last line of stdout.")
]


def _set_data_dir(directory: Path | None) -> None:
    if directory is not None:
        os.environ["EIGENSCAPE_DATA"] = str(directory)


DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", metavar="DIR",
        help="Directory of data sets (default: EIGENSCAPE_DATA, or the user's cache).",
        callback=_set_data_dir,
    ),
]  # fmt: skip


def overrides(set_: list[str] | None, check_input: str | None) -> tuple[str, ...]:
    """Return the overrides of ``--set``, and that of ``--check-input`` as one more."""
    return (*(set_ or ()), *([f"scene.check_input={check_input}"] if check_input else ()))


@dataclass(frozen=True)
class Given:
    """The arguments of the commands on a job or a study, as typed."""

    job: JobFile
    on: On = None
    set_: Set = None
    run_dir: Annotated[Path | None, run_dir_option("runs/<name>-<key>; of a study runs/<name>")] = (
        None
    )
    check_input: CheckInput = None
    small: Small = False
    as_json: Json = False

    def load(self) -> "tuple[Job, ClusterOptions]":
        """Read the job file and the cluster file."""
        from eigenscape.clusters import load_cluster
        from eigenscape.job.jobfile import load_job

        # The stages, which callers import next, may not even load with less.
        check_address_space()
        given = overrides(self.set_, self.check_input)
        return load_job(self.job, given, small=self.small), load_cluster(self.on)


def on_a_job(command: Callable[[Given], None]) -> Callable[..., None]:
    """Turn a command that takes a `Given` into one that takes its fields as arguments."""

    def with_arguments(**arguments: Any) -> None:
        command(Given(**arguments))

    with_arguments.__doc__ = command.__doc__
    with_arguments.__signature__ = signature(Given)  # type: ignore[attr-defined]
    with_arguments.__annotations__ = Given.__annotations__
    return with_arguments


@contextmanager
def exit_status() -> Iterator[None]:
    """Turn our own errors into one message on stderr and their exit status; stop at a signal."""
    try:
        with stopped_by_signals():
            yield
    except EigenscapeError as error:
        print(f"eigenscape: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_status) from None
    except RuntimeError as error:
        # Raised by numba where kernels are imported, beside which nothing can be written.
        if "no locator available" not in str(error):
            raise
        print(
            "eigenscape: compiled kernels cannot be stored: neither the directory of the package nor the "
            "cache of this user (~/.cache/numba) can be written. Set NUMBA_CACHE_DIR to a directory of your "
            "own.",
            file=sys.stderr,
        )
        raise typer.Exit(InputError.exit_status) from None
    except MemoryError as error:
        told = f" ({error})" if str(error) else ""
        print(
            f"eigenscape: out of memory{told}. Set limits.memory to the free memory, or "
            "reduce limits.threads.",
            file=sys.stderr,
        )
        raise typer.Exit(InputError.exit_status) from None
    except OSError as error:
        # What the system refuses is a mistake of the user, not a fault of the program.
        if error.errno == errno.ENAMETOOLONG:
            text = (
                f"{str(error.filename)[:80]}...: the path is longer than the file system allows (mostly 255 "
                "bytes for a name, 4,095 for all of it). Correct or shorten it."
            )
        elif error.errno in (errno.EACCES, errno.EPERM) and error.filename is not None:
            text = (
                f"{error.filename}: the system refuses it ({error.strerror}). Give a path that you may "
                "read and write, or ask its owner for the permission."
            )
        else:
            raise
        print(f"eigenscape: {text}", file=sys.stderr)
        raise typer.Exit(InputError.exit_status) from None
    except KeyboardInterrupt as error:
        print("eigenscape: stopped. The same command continues from here.", file=sys.stderr)
        status = error.exit_status if isinstance(error, StoppedBySignal) else 130
        raise typer.Exit(status) from None
