"""The export stage: arrays of samples back onto the scene's grid, written in strips of rows.

::

    legend, tables       names, colours and pixels of the classes; scores; pixels proposed for labelling
    output.formats       each format in turn (`eigenscape.export.format`), those that describe others last

One process writes each file from top to bottom: a GeoTIFF has one writer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eigenscape.base.blocks import blocks
from eigenscape.base.shares import percent, tested_classes
from eigenscape.context import Context
from eigenscape.export.canvas import Canvas
from eigenscape.export.format import Product, formats_of
from eigenscape.export.palette import complete_legend
from eigenscape.export.sidecar import write_legend_csv
from eigenscape.export.tables.queries import write_queries
from eigenscape.export.tables.samples import write_classes
from eigenscape.export.tables.scores import write_scores
from eigenscape.scenes.types import Grid, Legend


def export_stage(context: Context) -> dict[str, Any]:
    """Write the files of ``outputs/``: maps, images, quick-looks, legend."""
    ingest, learn = context.run.record("ingest"), context.run.record("learn")
    spectrum = context.run.record("spectrum")
    assert ingest is not None, "export follows ingest"
    assert learn is not None, "export follows learn"
    assert spectrum is not None, "export follows the spectrum"
    grid = Grid.from_json(ingest.summary["grid"])
    product = Product(
        context,
        Canvas(context, grid),
        None,
        first=spectrum.summary["null_vectors"],
        eigenvectors=min(context.job.output.eigenvectors, context.job.spectrum.dimension),
    )
    outputs: dict[str, str] = {}
    if "classes" in learn.summary:
        known = _legend(ingest.summary)
        if "names" in learn.summary:
            # Clusters, which have no names or colours of classes.
            known = Legend(names={int(k): v for k, v in learn.summary["names"].items()}, colors={})
        legend, scores = _paint(context, known, learn.summary["classes"]), learn.summary["scores"]
        product = _with_classes(product, legend, scores)
        outputs |= _write_legend(product)
        if "held_out" in scores:
            outputs |= write_scores(context, legend, learn.summary["classes"], scores)
        if learn.summary.get("queries"):
            write_queries(context, grid, legend, "queries.csv")
            outputs["queries"] = "queries.csv"
    return {"outputs": _write_formats(product, outputs)}


def export_applied_stage(context: Context) -> dict[str, Any]:
    """Write the files of ``outputs/`` of a run applied to a scene: its class map and what is with it."""
    ingest, extend = context.run.record("ingest"), context.run.record("extend")
    assert ingest is not None, "export follows ingest"
    assert extend is not None, "export follows extend"
    canvas = Canvas(context, Grid.from_json(ingest.summary["grid"]))
    known = extend.summary["legend"]
    clusters = extend.summary["clusters"]
    # Labels may have classes that the run has not.
    named = {**({} if clusters else ingest.summary["class_names"]), **known["names"]}
    names = {int(number): name for number, name in named.items()}
    colors = {int(number): tuple(color) for number, color in known["colors"].items()}
    legend = _paint(context, Legend(names, colors), extend.summary["classes"])
    if not clusters:
        # The run's own classes keep their colours.
        given = map(int, ingest.summary["labelled"])
        legend = complete_legend(legend, sorted({*extend.summary["classes"], *given}))
    scores = extend.summary["scores"]
    product = _with_classes(Product(context, canvas, None), legend, scores)
    outputs = _write_legend(product)
    if "confusion" in scores:
        outputs |= write_scores(context, legend, scores["classes"], scores)
    return {"outputs": _write_formats(product, outputs)}


def _paint(context: Context, known: Legend, classes: Sequence[int]) -> Legend:
    """Give every class a name and a colour: those of the job before those of the labels."""
    called = {name.strip().casefold(): number for number, name in known.names.items()}
    called |= {str(number): number for number in (*known.names, *classes)}
    called |= {f"class {number}": number for number in classes if number not in known.names}
    colors = dict(known.colors)
    for name, color in context.job.output.colors.items():
        if (number := called.get(name.strip().casefold())) is None:
            context.reporter.note(
                f"output.colors has {name!r}, and no class is called so. There are: "
                f"{', '.join(called)}."
            )
            continue
        red, green, blue = bytes.fromhex(color[1:])
        colors[number] = red, green, blue
    return complete_legend(Legend(known.names, colors), classes)


def _with_classes(product: Product, legend: Legend, scores: Mapping[str, Any]) -> Product:
    return replace(
        product,
        legend=legend,
        counts=_count_classes(product.context),
        scores=scores,
        subtitle=describe_scores(scores, product.grid.things),
    )


def _write_legend(product: Product) -> dict[str, str]:
    """Write the legend, of a table of samples their classes too."""
    assert product.legend is not None
    write_legend_csv(product.path("legend.csv"), product.legend, product.counts)
    if product.grid.is_table and product.context.job.output.formats:
        write_classes(product.context, product.legend, "classes.csv")
        return {"legend": "legend.csv", "classes": "classes.csv"}
    return {"legend": "legend.csv"}


def _write_formats(product: Product, outputs: dict[str, str]) -> dict[str, str]:
    """Write the files of each format of the job; return all files by what they are."""
    for each in formats_of(product.context.job.output.formats):
        if product.grid.is_table and not each.tables:
            continue
        if any(map(product.has, each.arrays)):
            outputs = outputs | each.write(replace(product, outputs=outputs))
    return outputs


def _legend(summary: dict[str, Any]) -> Legend:
    return Legend(
        names={int(k): v for k, v in summary["class_names"].items()},
        colors={int(k): tuple(v) for k, v in summary["class_colors"].items()},
    )


def _count_classes(context: Context) -> dict[int, int]:
    array = context.open("labels/class")
    counts = np.zeros(2**16, np.int64)
    for start, stop in blocks(array.shape[0], array.chunks[0]):
        counts += np.bincount(array[start:stop], minlength=2**16)
    return {int(number): int(counts[number]) for number in np.flatnonzero(counts)}


def describe_scores(scores: Mapping[str, Any], things: str) -> str:
    """Return the accuracy in one line that says what it was measured on, or what clusters cost."""
    if not scores:
        return "no labels to compare with"
    if "clusters" in scores:
        line = f"{scores['clusters']} clusters"
        if "ncut" in scores:
            line += f" ({scores['method']}), Ncut {scores['ncut']:.3g}"
        if agreed := scores["agreement"]:
            line += (
                f"; with the labels: ARI {agreed['ari']:.3f}, NMI {agreed['nmi']:.3f}, "
                f"best match {percent(agreed['best_match_accuracy'], missing='not measured')}"
            )
        return line
    if "held_out" not in scores:
        if scores["overall_accuracy"] is None:
            return f"accuracy not measured: {scores['protocol']}"
        accuracy = percent(scores["overall_accuracy"])
        return f"accuracy {accuracy} on {scores['samples']} labelled {things}: {scores['protocol']}"
    held_out = ", ".join(
        f"{'disjoint test file' if split == 'test' else f'{split} split'} "
        f"{percent(result['overall_accuracy'], missing='not measured')}"
        f"{f' ({tested})' if (tested := tested_classes(result)) else ''}"
        for split, result in scores["held_out"].items()
    )
    itself = percent(scores["training_pixels"]["overall_accuracy"], missing="not measured")
    return f"accuracy on held-out {things}: {held_out}; on training {things} {itself}"
