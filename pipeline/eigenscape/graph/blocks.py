"""Writers of the arrays of the graph stage."""

from typing import Any

from numpy.typing import NDArray

from eigenscape.base.files.mapped import note_rows
from eigenscape.store.arrays import attach_whole
from eigenscape.store.workspace import Workspace


def write_whole(workspace: Workspace, name: str, values: NDArray[Any], *dims: str) -> None:
    """Write an array that is to be mapped, over that of an earlier attempt.

    Parameters
    ----------
    workspace
        Of the stage.
    name
        Of the array.
    values
        All of it.
    dims
        Names of its axes.
    """
    path = workspace.create_array(
        name, values.shape, values.dtype, whole=True, **({"dims": dims} if dims else {})
    )
    mapped = attach_whole(path)
    mapped[...] = values
    note_rows(mapped)
