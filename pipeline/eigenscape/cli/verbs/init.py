"""``eigenscape init``."""

from pathlib import Path
from typing import Annotated

import typer

from eigenscape.cli.arguments import exit_status


def init_command(
    scene: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENE...", help="Scene file, one file per band, or name of a data set."
        ),
    ],
    labels: Annotated[
        str | None,
        typer.Option("--labels", metavar="FILE", help="File with the labels of the scene."),
    ] = None,
    labels_field: Annotated[
        str | None,
        typer.Option(
            "--labels-field", metavar="NAME", help="Attribute or column that holds the class."
        ),
    ] = None,
    labels_layer: Annotated[
        str | None,
        typer.Option("--labels-layer", metavar="NAME", help="Layer of a vector file of labels."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="JOB", help="Job file to write; <scene>.toml by default."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing job file.")] = False,
) -> None:
    """Inspect a scene and write a commented job file for it."""
    with exit_status():
        from eigenscape.base.commands import command_line
        from eigenscape.base.files.names import own_path
        from eigenscape.tuning.initial import job_text, stem_of, write_new

        path = to or Path(f"{stem_of(scene[0])}.toml")
        text = job_text(
            scene, labels, base=Path(own_path(path)).parent, name=path.stem, field=labels_field,
            layer=labels_layer,
        )  # fmt: skip
        write_new(path, text, force=force)
        print(text, end="")
        print(
            f"{path}: written. `{command_line('plan', path)}` checks it and prints memory and disk space."
        )
