"""``eigenscape synth``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from eigenscape.cli.arguments import exit_status


def synth_command(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="OUT.tif", help="Scene file to write; the labels go to OUT_labels.tif."
        ),
    ],
    height: Annotated[int, typer.Option(help="Number of rows.")] = 679,
    width: Annotated[int, typer.Option(help="Number of columns.")] = 944,
    bands: Annotated[int, typer.Option(help="Number of bands.")] = 110,
    classes: Annotated[int, typer.Option(help="Number of classes (materials).")] = 22,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
) -> None:
    """Write a synthetic scene of any size and its labels."""
    with exit_status():
        from eigenscape.datasets.made.synthetic import synthesize

        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("synthesizing", total=height)
            synthesize(
                path,
                height=height,
                width=width,
                bands=bands,
                classes=classes,
                seed=seed,
                progress=lambda done, total: progress.update(task, completed=done, total=total),
            )
        labels = path.with_name(f"{path.stem}_labels.tif")
        print(f"{path}: {height} x {width} x {bands}; labels: {labels}")
