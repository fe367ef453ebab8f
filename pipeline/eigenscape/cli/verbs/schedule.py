"""``eigenscape schedule`` and ``eigenscape prune``."""

import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eigenscape.base.shares import counted
from eigenscape.cli.arguments import Json, On, Set, exit_status, run_dir_option
from eigenscape.cli.verbs.batch import AtOnce, Scenes, SceneTable

if TYPE_CHECKING:
    from eigenscape.clusters import ClusterOptions
    from eigenscape.schedule.entry import Schedule
    from eigenscape.schedule.media import Medium

Keep = Annotated[
    int | None,
    typer.Option(
        "--keep", metavar="N", min=1,
        help="Number of finished runs to keep for each job: of the same name on the same scene.",
    ),
]  # fmt: skip


def schedule_command(
    job: Annotated[
        Path | None,
        typer.Argument(metavar="[JOB]", help="Job file; for a batch, the template of all scenes."),
    ] = None,
    cron: Annotated[
        str | None,
        typer.Option(
            "--cron", metavar="EXPR", help="When to run, in the format of crontab(5): '0 3 * * *'."
        ),
    ] = None,
    scenes: Scenes = None,
    table: SceneTable = None,
    on: On = None,
    set_: Set = None,
    run_dir: Annotated[
        Path | None,
        run_dir_option("runs/<name>-<key>; of a study runs/<name>, of a batch runs/<template>"),
    ] = None,
    at_once: AtOnce = None,
    keep: Keep = None,
    install: Annotated[
        bool, typer.Option("--install", help="Install the schedule instead of printing it.")
    ] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the schedule of JOB, wherever it is installed.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="List installed schedules.")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="Run once now, as the schedule would.")
    ] = False,
    following: Annotated[
        bool, typer.Option("--next", help="Print the next time of --cron.")
    ] = False,
    crontab: Annotated[bool, typer.Option("--crontab", help="Use cron (default).")] = False,
    scrontab: Annotated[
        bool,
        typer.Option("--scrontab", help="Use SLURM's scrontab (default if it is installed)."),
    ] = False,
    chain: Annotated[
        bool, typer.Option("--chain", help="Use a SLURM job that submits its successor.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print or install a schedule that repeats a job or a batch.

    Unfinished runs are resumed, runs do not overlap, the log is rotated, and --keep limits the number of old
    runs.
    """
    with exit_status():
        from eigenscape.errors import InputError

        media: dict[Medium, bool] = {"crontab": crontab, "scrontab": scrontab, "chain": chain}
        alone = {"list": listed, "remove": remove, "now": now, "next": following}
        _refuse_two(*alone.items(), ("install", install))
        _refuse_two(*alone.items(), *media.items())
        if as_json and not listed:
            raise InputError("--json: only --list prints JSON. Give --list, or leave --json out.")
        if listed:
            _print_installed(as_json=as_json)
            return
        if following:
            from eigenscape.schedule.cron import not_before, parse_cron
            from eigenscape.schedule.entry import DUE

            after = not_before(datetime.now(), os.environ.get(DUE, ""))
            print(parse_cron(cron or "").next_after(after).isoformat())
            return
        if job is None:
            raise InputError(
                "Give the job file to schedule, or --list to list installed schedules."
            )
        if remove:
            from eigenscape.schedule.media import remove as take_away

            print(take_away(job))
            return
        from eigenscape.batch.sources import Source
        from eigenscape.clusters import load_cluster
        from eigenscape.schedule.entry import make_schedule

        is_batch = scenes is not None or table is not None
        source = Source(
            () if is_batch else (job,), job if is_batch else None, scenes, table, tuple(set_ or ())
        )
        schedule = make_schedule(source, on=on, run_dir=run_dir, at_once=at_once, keep=keep)
        if now:
            from eigenscape.schedule.once import run_once

            status = run_once(schedule)
            if status:
                log = schedule.directory / "schedule.log"
                print(
                    f"eigenscape: {schedule.name} ended with {status}: see {log}", file=sys.stderr
                )
            raise typer.Exit(status)
        if cron is None:
            raise InputError(
                "--cron EXPR is missing. Give the time of the runs, as in --cron '0 3 * * *'."
            )
        medium = next((name for name, is_given in media.items() if is_given), None)
        _put(schedule, cron, load_cluster(on), medium, install=install)


def prune_command(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Directory of runs, such as `runs`, or of a batch."),
    ],
    keep: Annotated[
        int,
        typer.Option(
            "--keep",
            metavar="N",
            min=0,
            help="Number of finished runs to keep for each job: of the same name on the same scene.",
        ),
    ],
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the runs that would be deleted; delete nothing."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete old finished runs; keep the newest of each job."""
    with exit_status():
        from eigenscape.schedule.prune import prune_runs

        pruned = prune_runs(directory, keep, dry=dry_run)
        if as_json:
            print(json.dumps(pruned.to_json()))
        else:
            for path in pruned.deleted:
                print(f"{'would delete' if dry_run else 'deleted'}  {path}")
            for path, why in pruned.kept:
                print(f"kept  {path}: {why}")
            for path, why in pruned.failed:
                print(f"not deleted  {path}: {why}")
        if pruned.failed:
            print(
                f"eigenscape: {counted(len(pruned.failed), 'run')} could not be deleted; the "
                "output says why. Runs of another user can be deleted by that user.",
                file=sys.stderr,
            )
            raise typer.Exit(pruned.exit_status)


def _refuse_two(*flags: tuple[str, bool]) -> None:
    """Refuse two flags, of which only one would have an effect."""
    from eigenscape.errors import InputError

    given = [f"--{name}" for name, is_given in flags if is_given]
    if len(given) > 1:
        raise InputError(f"{given[0]} and {given[1]} exclude each other: give one of them.")


def _put(
    schedule: "Schedule", cron: str, on: "ClusterOptions", given: "Medium | None", *, install: bool
) -> None:
    from eigenscape.schedule.cron import parse_cron
    from eigenscape.schedule.media import choose_medium, describe
    from eigenscape.schedule.media import install as put_into_place

    when, medium = parse_cron(cron), choose_medium(given, on)
    if install:
        print(put_into_place(schedule, when, on, medium))
        return
    print(describe(schedule, when, on, medium), end="")
    print(
        f"eigenscape: not installed. --install installs the schedule in the {medium}.",
        file=sys.stderr,
    )


def _print_installed(*, as_json: bool) -> None:
    from eigenscape.schedule.media import installed

    entries = installed(lambda sentence: print(f"eigenscape: {sentence}", file=sys.stderr))
    if as_json:
        print(json.dumps([vars(entry) for entry in entries]))
        return
    for entry in entries:
        print(f"{entry.name}  ({entry.medium}: {entry.title})\n    {entry.text}")
    if not entries:
        print("no schedules")
