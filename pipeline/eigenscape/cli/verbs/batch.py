"""``eigenscape batch``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from eigenscape.base.process.addresses import check_address_space
from eigenscape.cli.arguments import (
    CheckInput,
    Json,
    On,
    Set,
    exit_status,
    overrides,
    run_dir_option,
)

Scenes = Annotated[
    str | None,
    typer.Option(
        "--scenes", metavar="GLOB", help="Pattern of scene files, in quotes: 'tiles/*.tif'."
    ),
]
SceneTable = Annotated[
    Path | None,
    typer.Option(
        "--table", metavar="CSV", help="Table of scenes: one row per scene, one column per job key."
    ),
]
AtOnce = Annotated[
    int | None,
    typer.Option(
        "--at-once", metavar="N", min=1,
        help="Number of scenes at a time, each on one worker. With 1, each scene uses all workers.",
    ),
]  # fmt: skip


def batch_command(
    jobs: Annotated[
        list[Path] | None, typer.Argument(metavar="[JOB]...", help="Job files, one per scene.")
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            "--template",
            metavar="JOB",
            help="Job file for all scenes; its scene.path, if any, is replaced.",
        ),
    ] = None,
    scenes: Scenes = None,
    table: SceneTable = None,
    on: On = None,
    set_: Set = None,
    run_dir: Annotated[
        Path | None, run_dir_option("runs/<template>; without a template runs/batch")
    ] = None,
    check_input: CheckInput = None,
    at_once: AtOnce = None,
    watch: Annotated[
        float | None,
        typer.Option(
            "--watch",
            metavar="SECONDS",
            min=0.1,
            help="Repeat the search for new scenes at this interval, until interrupted.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run many scenes; skip those that are finished and unchanged.

    Exit status: 0 all done or skipped, 2 a scene failed, 3 one did not converge.
    """  # fmt: skip
    with exit_status():
        check_address_space()

        from eigenscape.base.process.progress import console_reporter
        from eigenscape.batch.run import run_batch
        from eigenscape.batch.sources import Source
        from eigenscape.cli.kinds import BATCH, end_of_many
        from eigenscape.cli.printing.batches import print_batch
        from eigenscape.clusters import load_cluster

        given = overrides(set_, check_input)
        source = Source(tuple(jobs or ()), template, scenes, table, given)
        cluster = load_cluster(on)
        result = run_batch(
            source, on=cluster, run_dir=run_dir, at_once=at_once, watch=watch,
            reporter=console_reporter(),
        )  # fmt: skip
        end_of_many(BATCH, result, partial(print_batch, result), as_json=as_json)
