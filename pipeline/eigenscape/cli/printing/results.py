"""The text about results: stages, recall, eigenpairs, accuracy, clusters, output files."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.table import Table

from eigenscape.base.commands import command_line
from eigenscape.base.memory import format_bytes
from eigenscape.base.shares import (
    INTERVAL,
    counted,
    percent,
    recall_basis,
    recall_interval,
    tested_classes,
)
from eigenscape.cli.printing.console import console


def print_result(result: Any) -> None:
    """Print the result of a run, an `eigenscape.workflow.finished.result.Result`."""
    wide = console()
    wide.print(_stage_table(result))
    say = functools.partial(wide.print, highlight=False, soft_wrap=True)
    if result.applied:
        for line in _applied_lines(result.applied, result.scores):
            say(line)
    else:
        _print_found(result, say)
    for text in result.warnings:
        say(f"warning      {text}")
    for name, path in result.outputs.items():
        say(f"{name:<22} {path}")
    if "report" in result.outputs:
        say(f"To open the report: {command_line('open', result.path, '--browser')}")


def _stage_table(result: Any) -> Table:
    table = Table("stage", "seconds", "peak memory", "")
    for stage in result.stages:
        table.add_row(
            stage["name"],
            f"{stage['seconds']:.1f}",
            format_bytes(stage["peak_bytes"]),
            "reused" if stage["reused"] else "",
        )
    return table


def _applied_lines(applied: Mapping[str, Any], scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines about a run applied to another scene."""
    how = {
        "eigenvectors": "eigenvectors extended, classified as in the run",
        "support-vectors": "a support vector machine on the run's labels",
        "neighbors": "probabilities of the neighbours in the run",
    }[applied["how"]]
    yield f"classes      of {applied['samples']} samples, by {how}"
    if machine := applied.get("machine"):
        right = machine["accuracy"]
        tested = "" if right is None else f"; {percent(right)} right on squares left out"
        yield f"  machine    takes {machine['vectors']}, fitted to {machine['labels']} labels{tested}"
    if applied["far"] or applied["without_class"]:
        yield (
            f"  far        {applied['far']} samples are unlike all samples of the run (confidence lowered), "
            f"{applied['without_class']} have no class"
        )
    if shift := applied.get("shift"):
        yield (
            f"  shift      {percent(shift['farther'])} of comparisons say farther than usual within the "
            f"run's scene (50 % is usual, above {100 * shift['limit']:.0f} % it differs)"
        )
        if shift["differs"]:
            yield f"  warning    {shift['message']}"
    if "clusters" in scores:
        yield f"agreement    {_agreement(scores['agreement'])}"
    elif scores:
        yield from _compared_lines(scores)


def _compared_lines(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield the accuracy of a run applied to another scene on labels that the run has not learned from."""
    if scores["overall_accuracy"] is None:
        yield f"accuracy     not measured: {scores['protocol']}"
    else:
        yield (
            f"{_accuracy(scores)}; confidence off by "
            f"{percent(scores['expected_calibration_error'])} on average"
        )
    if left_out := scores.get("left_out"):
        yield f"  left out   {left_out} labelled samples that coincide with training samples of the run"


def _accuracy(scores: Mapping[str, Any]) -> str:
    kappa = "-" if scores["kappa"] is None else f"{scores['kappa']:.3f}"
    measured = ", ".join(filter(None, [scores["protocol"], tested_classes(scores)]))
    return (
        f"accuracy     {percent(scores['overall_accuracy'])} overall, "
        f"{percent(scores['average_accuracy'])} average, kappa {kappa}: {measured}"
    )


def _agreement(agreed: Mapping[str, Any]) -> str:
    return (
        f"ARI {agreed['ari']:.3f}, NMI {agreed['nmi']:.3f}, best match "
        f"{100 * agreed['best_match_accuracy']:.1f} % of {agreed['samples']} labelled samples"
    )


def _print_found(result: Any, say: Callable[..., None]) -> None:
    """Print the results of the stages of a run."""
    spectrum, neighbors, scores = result.spectrum, result.neighbors, result.scores
    say(neighbor_line(neighbors))
    for line in dimension_lines(neighbors.get("intrinsic_dimension")):
        say(line)
    say(
        f"eigenpairs   {len(spectrum['values'])}, largest residual "
        f"{spectrum['max_residual']:.1e}, {spectrum['solver']} solver"
    )
    if "clusters" in scores:
        say(cluster_table(scores))
        for line in cluster_lines(scores):
            say(line)
    for line in score_lines(scores):
        say(line)


def neighbor_line(neighbors: Mapping[str, Any]) -> str:
    """Return how the neighbours were found, from the summary of their stage."""
    if "recall" in neighbors:
        half = recall_interval(neighbors)
        figure = f"{neighbors['recall']:.4f}" + ("" if half is None else f" +- {half:.4f}")
        return f"neighbours   recall {figure} ({recall_basis(neighbors)})"
    if "landmarks" in neighbors:
        return f"neighbours   {neighbors['k']} among {neighbors['landmarks']} landmarks"
    return f"neighbours   all within {neighbors['radius']:.4g}, {neighbors['entries']} entries"


def score_lines(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield how good a class map is: on held-out pixels, blocked first, and last on its own.

    Parameters
    ----------
    scores
        Of a method that learns from labels: see `eigenscape.learn.stage`; nothing of any other.
    """
    if "held_out" not in scores:
        return
    if scores["overall_accuracy"] is None:
        yield f"accuracy     not measured: {scores['protocol']}"
    else:
        yield _accuracy(scores)
    intervals = scores.get("intervals", {})
    if intervals.get("overall_accuracy"):
        low, high = intervals["overall_accuracy"]
        yield (
            f"  interval   {percent(low)} to {percent(high)} overall ({100 * intervals['level']:.0f} %, "
            f"bootstrap over {intervals['groups']} {intervals['resampled'].split(':')[0]})"
        )
    elif "skipped" in intervals and scores["overall_accuracy"] is not None:
        yield f"  interval   not known: {intervals['skipped']}"
    for split, held in scores["held_out"].items():
        if held["overall_accuracy"] is None:
            yield f"  held out   not measured ({_split(split)}: no labels are left to test on)"
            continue
        spread = held["overall_accuracy_std"]
        yield (
            f"  held out   {percent(held['overall_accuracy'])}"
            f"{f' +- {percent(spread)}' if spread else ''} overall ({_split(split)}, "
            f"{_fitted(split, held)})"
        )
    calibrated = scores.get("calibration", {}).get("after", {})
    for split in filter(calibrated.__contains__, scores["held_out"]):
        error = calibrated[split]["expected_calibration_error"]
        yield f"  confidence off by {percent(error)} on average ({_split(split)})"
    if never := scores.get("never_found"):
        classes = ", ".join(f"{name} (0 of {count:,})" for name, count in never.items())
        yield f"  not found  {classes}: no held-out label of the class was called so in any fit"
    if unreached := scores.get("unreached"):
        components = counted(unreached["components"], "component")
        yield (
            f"  guessed    {unreached['samples']:,} in {components} of the graph without training "
            "labels"
        )
    areas = scores.get("areas", {})
    if (right := areas.get("overall_accuracy")) is not None:
        error = areas["overall_accuracy_se"]
        half = "" if error is None else f" +- {percent(INTERVAL * error)} (95 %)"
        yield f"  areas      {percent(right)}{half} of the whole map right, areas of its classes in areas.csv"
    if skipped := areas.get("skipped"):
        yield f"  areas      {skipped}"
    itself = scores["training_pixels"]
    yield (
        f"  training   {percent(itself['overall_accuracy'])} overall on the {itself['samples']} labels "
        "that the result learned from: no measure for others"
    )


def _fitted(split: str, held: Mapping[str, Any]) -> str:
    """Return which fits were tested: those of a test may have learned from fewer labels than the map."""
    if held["trials"] == 1 and split in ("file", "test"):
        return f"{held['training_pixels']} training labels"
    return f"{held['trials']} test fits of {held['training_pixels']} training labels each"


def _split(name: str) -> str:
    return "disjoint test file" if name == "test" else f"{name} split"


def cluster_table(scores: dict[str, Any]) -> Table:
    """Return a table of the clusters of a run.

    Parameters
    ----------
    scores
        Of a method without labels: see `eigenscape.learn.clustering.report.report`.
    """
    agreed = scores["agreement"] is not None
    table = Table(
        "cluster", "samples", "share", "cut", "volume", "Ncut",
        *(["best match (samples in common)"] if agreed else []),
    )  # fmt: skip
    total = sum(row["samples"] for row in scores["per_cluster"])
    for row in scores["per_cluster"]:
        cells = [
            str(row["cluster"]), str(row["samples"]), f"{100 * row['samples'] / total:.1f} %",
            f"{row['cut']:.4g}", f"{row['volume']:.4g}", f"{row['ncut']:.4f}",
        ]  # fmt: skip
        match = row["best_match"]
        table.add_row(*cells, *(["-" if match is None else f"{match} ({row['matched']})"] * agreed))
    return table


def cluster_lines(scores: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about all clusters together."""
    method = " by ".join(scores[key] for key in ("method", "assign") if key in scores)
    yield f"clusters     {scores['clusters']}: {scores['reason']}; {method}"
    least = scores["ncut_at_least"]
    bound = "" if least is None else f", of any {scores['clusters']} clusters at least {least:.4g}"
    yield f"cuts         {scores['cut']:.4g} between clusters, Ncut {scores['ncut']:.4g}{bound}"
    if two := scores["two_way"]:
        best = two["cheeger"]
        bounds = two["bounds"]
        within = "" if bounds is None else f"{bounds['lower']:.3g} <= h < {bounds['upper']:.3g}, "
        yield (
            f"two-way cut  {within}h <= {best['cheeger']:.3g} (Cheeger's constant h; cut "
            f"{best['cut']:.4g}, {best['samples']} samples on one side); least Ncut "
            f"{two['ncut']['ncut']:.3g}"
        )
    if agreed := scores["agreement"]:
        yield f"agreement    {_agreement(agreed)}"


def dimension_lines(found: dict[str, Any] | None) -> Iterator[str]:
    """Yield the intrinsic dimension as a hint, if it was measured.

    Parameters
    ----------
    found
        Its entry in the summary of the neighbors stage.
    """
    if found is None or found["value"] is None:
        return
    interval = "" if found["low"] is None else f" ({_number(found['low'])} to "
    interval += f"{_number(found['high'])})" if interval else ""
    yield (
        f"dimension    {_number(found['value'])}{interval} by maximum likelihood on the neighbour "
        "lists: spectrum.dimension should be no smaller"
    )


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f}"
