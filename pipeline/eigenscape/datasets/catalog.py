"""The data sets that ``scene.path`` can name: ``catalog.toml``, read once."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eigenscape.datasets.entry import DataSet, Form, Remote

_ENDINGS = (".tif", ".img", ".mat", ".npy")


def read_catalog(text: str) -> dict[str, DataSet]:
    """Return the data sets of a catalogue by name, in its order.

    Parameters
    ----------
    text
        TOML: a table for each data set, with the attributes of `DataSet` as keys. ``classes`` is a
        list of names, ``colors`` a table of names with colours, ``own`` the stem of a user's files.
    """
    return {name: _data_set(name, table) for name, table in tomllib.loads(text).items()}


def _data_set(name: str, table: dict[str, Any]) -> DataSet:
    names, colors = table.pop("classes", ()), table.pop("colors", {})
    forms = tuple(_form(form) for form in table.pop("forms", ()))
    own = table.pop("own", None)
    return DataSet(
        name=name,
        shape=tuple(table.pop("shape")),
        classes={key: tuple(color) for key, color in colors.items()} or dict.fromkeys(names),
        forms=forms if own is None else _own_forms(own),
        remotes=tuple(_remote(remote) for remote in table.pop("remotes", ())),
        **table,
    )


def _form(table: dict[str, Any]) -> Form:
    return Form(**{**table, "scene": tuple(table["scene"])})


def _remote(table: dict[str, Any]) -> Remote:
    return Remote(**{**table, "members": tuple(table.get("members", ()))})


def _own_forms(stem: str) -> tuple[Form, ...]:
    """Return the forms of a scene in a user's own files: with labels, or without."""
    labelled = [
        Form((stem + one,), f"{stem}_labels{other}") for one in _ENDINGS for other in _ENDINGS
    ]
    return (*labelled, *(Form((stem + one,)) for one in _ENDINGS))


DATA_SETS: Mapping[str, DataSet] = read_catalog(
    Path(__file__).with_name("catalog.toml").read_text(encoding="utf-8")
)
"""Every registered data set, by name."""
