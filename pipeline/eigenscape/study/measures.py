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
    """

    label: str
    unit: str = ""
    lower_is_better: bool | None = None

    @property
    def title(self) -> str:
        """The label with its unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


STAGE_NAMES = ("ingest", "features", "neighbors", "graph", "spectrum", "learn", "export")

MEASURES: dict[str, Measure] = {
    "error": Measure("error", "%", lower_is_better=True),
    "accuracy": Measure("overall accuracy", "%", lower_is_better=False),
    "average_accuracy": Measure("average accuracy", "%", lower_is_better=False),
    "kappa": Measure("kappa", lower_is_better=False),
    "ari": Measure("adjusted Rand index", lower_is_better=False),
    "nmi": Measure("normalized mutual information", lower_is_better=False),
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
    "peak_bytes": Measure("peak memory", "bytes", lower_is_better=True),
}
"""Percentages for the accuracies, as the documents print them; seconds for times."""
