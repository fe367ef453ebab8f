"""What a study can measure: the names, units and meanings of the columns of its table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """One column of numbers.

    Attributes
    ----------
    label
        What tables and axes say, without the unit.
    unit
        Its unit, "" for none.
    lower_is_better
        Which of two values is the better one; None where neither is.
    short
        What the title of a small panel says; the label if that is short enough.
    """

    label: str
    unit: str = ""
    lower_is_better: bool | None = None
    short: str = ""

    @property
    def title(self) -> str:
        """The label with its unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


STAGE_NAMES = ("ingest", "features", "neighbors", "graph", "spectrum", "learn", "export")

MEASURES: dict[str, Measure] = {
    "error": Measure("error", "%", lower_is_better=True),
    "accuracy": Measure("overall accuracy", "%", lower_is_better=False),
    "average_accuracy": Measure("average accuracy", "%", lower_is_better=False),
    "training_accuracy": Measure(
        "overall accuracy on training pixels",
        "%",
        lower_is_better=False,
        short="on training pixels",
    ),
    "training_average_accuracy": Measure(
        "average accuracy on training pixels", "%", lower_is_better=False
    ),
    "kappa": Measure("kappa", lower_is_better=False),
    "ari": Measure("adjusted Rand index", lower_is_better=False),
    "nmi": Measure("normalized mutual information", lower_is_better=False),
    "held_out_error": Measure("error on held-out samples", "%", lower_is_better=True),
    "same_class": Measure(
        "neighbours in the plane of the same class",
        "%",
        lower_is_better=False,
        short="neighbours of the same class",
    ),
    "along": Measure(
        "rank correlation with the place along the manifold",
        lower_is_better=False,
        short="rank correlation",
    ),
    "trustworthiness": Measure(
        "trustworthiness of neighbours in the plane",
        lower_is_better=False,
        short="trustworthiness",
    ),
    "isolation": Measure(
        "distance of the marked sample from the nearest", "% of the diagonal", short="isolation"
    ),
    "mark_distance": Measure(
        "distance between the marked samples", "% of the diagonal", short="distance"
    ),
    "recall": Measure("recall of the neighbours", lower_is_better=False),
    "max_residual": Measure("largest residual", lower_is_better=True),
    "samples": Measure("samples"),
    "labelled": Measure("labelled samples"),
    "training_pixels": Measure("training samples"),
    "trials": Measure("draws"),
    "seconds": Measure("time", "s", lower_is_better=True),
    **{
        f"seconds_{stage}": Measure(f"time of {stage}", "s", lower_is_better=True)
        for stage in STAGE_NAMES
    },
    "speedup": Measure("times as fast", lower_is_better=False),
    "peak_bytes": Measure("peak memory", "bytes", lower_is_better=True),
}
"""Percentages for the accuracies, as the documents print them; seconds for times.

`eigenscape.study.measuring` has what six of them mean: "held_out_error" to "mark_distance"."""
