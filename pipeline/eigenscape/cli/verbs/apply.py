"""``eigenscape apply``: a finished run on another scene."""

import json
from pathlib import Path
from typing import Annotated

import typer

from eigenscape.base.process.addresses import check_address_space
from eigenscape.cli.arguments import Json, On, exit_status, run_dir_option


def apply_command(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Directory of a finished run with a class map.")
    ],
    scene: Annotated[
        list[str],
        typer.Option(
            "--scene",
            metavar="FILE",
            help="Scene file; repeat the option for scenes of one file per band.",
        ),
    ],
    labels: Annotated[
        str | None,
        typer.Option("--labels", metavar="FILE", help="Labels of the scene, to score the map."),
    ] = None,
    on: On = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a key of [scene], [output] or [limits], such as limits.memory=8GiB.",
        ),
    ] = None,
    run_dir: Annotated[Path | None, run_dir_option("runs/<scene>-<key>")] = None,
    as_json: Json = False,
) -> None:
    """Classify another scene with the model of a finished run."""
    with exit_status():
        check_address_space()

        from eigenscape.applied.run import apply
        from eigenscape.base.process.progress import console_reporter
        from eigenscape.cli.printing.results import print_result
        from eigenscape.clusters import load_cluster

        result = apply(
            run, scene[0] if len(scene) == 1 else scene, labels=labels, overrides=set_ or (),
            on=load_cluster(on), run_dir=run_dir, reporter=console_reporter(),
        )  # fmt: skip
        if as_json:
            print(json.dumps(result.to_json()))
        else:
            print_result(result)
