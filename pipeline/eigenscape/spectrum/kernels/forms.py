"""The forms of the Laplacian: how the vectors of each follow from those of a symmetric matrix."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Form:
    """What distinguishes a Laplacian from the others.

    Attributes
    ----------
    normalized
        Whether its matrix is solved as D^-1/2 (D - W) D^-1/2, with eigenvalues from 0 to 2, or as D - W.
    constant
        Whether its null vectors are constant on each component: D^-1/2 turns those of the normalised matrix
        into them, and what is added to the Laplacian is added to D - W.
    """

    normalized: bool
    constant: bool

    @property
    def turned(self) -> bool:
        """Whether D^-1/2 turns the vectors that are solved into its own."""
        return self.normalized and self.constant

    @property
    def solved(self) -> Literal["normalized", "unnormalized"]:
        """Name of the symmetric form that is solved."""
        return "normalized" if self.normalized else "unnormalized"


FORMS = {
    "normalized": Form(normalized=True, constant=False),
    "random-walk": Form(normalized=True, constant=True),
    "unnormalized": Form(normalized=False, constant=True),
}
"""The Laplacians by their names in a job."""
