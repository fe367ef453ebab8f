"""Labels around other ones, of which they change what is read."""

from dataclasses import dataclass

from eigenscape.scenes.types import Labels, Legend


@dataclass(frozen=True, eq=False)
class WrappedLabels:
    """Other labels; classes that derive from it say what is read, and fulfil the `Labels` protocol.

    Attributes
    ----------
    labels
        The other ones.
    """

    labels: Labels

    @property
    def legend(self) -> Legend:
        """Names and colours, as far as the source has them."""
        return self.labels.legend

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the labels are read from."""
        return self.labels.files
