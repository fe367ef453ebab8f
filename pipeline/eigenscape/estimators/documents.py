"""Docstrings of estimators: every parameter explained, also those of their bases."""

import inspect

_SECTION = "Parameters\n----------\n"


def explain_parameters(estimator: type) -> None:
    """List every parameter of ``__init__`` in the docstring of an estimator, in their order.

    What its own docstring does not explain is taken over from its bases, so that `help` and editors
    show all of it and each parameter is explained in one place of the source.

    Parameters
    ----------
    estimator
        Its docstring is replaced; without one (``python -OO``) nothing is done.

    Raises
    ------
    TypeError
        A parameter is explained nowhere.
    """
    if not estimator.__doc__:
        return
    known: dict[str, str] = {}
    for base in reversed(estimator.__mro__):
        known |= _explained(base.__dict__.get("__doc__"))
    parts = []
    for name, parameter in inspect.signature(estimator).parameters.items():
        if name not in known:
            raise TypeError(f"{estimator.__name__}: the parameter {name} is explained nowhere")
        parts.append(f"{name} : default={parameter.default!r}\n{known[name]}")
    text = inspect.cleandoc(estimator.__doc__)
    before, found, after = text.partition(_SECTION)
    if found:
        rest = after.partition("\n\n")[2]
    else:
        before, mark, rest = text.partition("\n\nAttributes\n")
        before, rest = before + "\n\n", (mark + rest).lstrip("\n")
    estimator.__doc__ = (before + _SECTION + "\n".join(parts) + "\n\n" + rest).rstrip() + "\n"


def _explained(text: str | None) -> dict[str, str]:
    """Return what a docstring says of each parameter, indented."""
    section = inspect.cleandoc(text or "").partition(_SECTION)[2].partition("\n\n")[0]
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line.startswith(" "):
            found[name] += f"{line}\n"
        else:
            name = line.partition(" :")[0]
            found[name] = ""
    return {name: lines.rstrip() for name, lines in found.items()}
