"""Choice of an array of a file: by name, or the only possible one."""

from collections.abc import Callable, Mapping

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.arrays.arrayfiles import ArraySource, array_format, list_variables
from eigenscape.scenes.formats.arrays.arraylists import Variable

_NUMBERS = "uifb"


def find_array(
    path: str,
    variable: str | None,
    pick: Callable[[Mapping[str, Variable]], list[str]],
    *,
    key: str,
    wanted: str,
) -> ArraySource:
    """Find one numeric array of a file.

    Parameters
    ----------
    path
        A .mat, .npy, .npz file or a zarr store.
    variable
        Its name, or None to take the only one that `pick` returns.
    pick
        Gives the names that may be meant, out of all numeric arrays of the file.
    key, wanted
        Key of the job file that would name it, and what is sought, for messages.

    Raises
    ------
    SceneError
        There is no such variable, or not exactly one candidate, or it holds no numbers.
    """
    kind = array_format(path)
    assert kind is not None
    known = list_variables(path, kind)
    # A file that is one array has no names to choose from.
    single = set(known) == {""}
    if variable is not None and not single:
        if variable not in known:
            raise SceneError(f"{path}: has no array {variable!r} ({key}). {_listing(known)}")
        name = variable
    else:
        numeric = {name: item for name, item in known.items() if item.dtype.kind in _NUMBERS}
        names = [""] if single else pick(numeric)
        if len(names) != 1:
            found = "none that could be" if not names else f"{len(names)} that could be"
            raise SceneError(f"{path}: holds {found} {wanted}. Name it in {key}. {_listing(known)}")
        name = names[0]
    item = known[name]
    if item.dtype.kind not in _NUMBERS:
        raise SceneError(
            f"{path}: the array {name} is of type {item.dtype}; whole and real numbers can "
            f"be used. {_listing(known)}"
        )
    return ArraySource(path, kind, name or None, item.shape, item.dtype, item.row_step, item.order)


def _listing(known: Mapping[str, Variable]) -> str:
    names = ", ".join(f"{name} ({item})" for name, item in known.items() if name)
    return f"Numeric arrays in the file: {names or 'none'}."
