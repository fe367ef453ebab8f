"""The registered data sets as a list: what is here, what can be fetched, what is made."""

from typing import Any

from eigenscape.datasets.cache import data_directory, find_form
from eigenscape.datasets.catalog import DATA_SETS
from eigenscape.datasets.entry import DataSet


def list_data_sets() -> list[dict[str, Any]]:
    """Return what is known of every data set, as JSON values."""
    return [_describe(item) for item in DATA_SETS.values()]


def _describe(item: DataSet) -> dict[str, Any]:
    found = find_form(item)
    made = item.kind == "made"
    return {
        "name": item.name,
        "description": item.description,
        "shape": item.shape,
        "classes": list(item.classes),
        "installed": made or found is not None,
        "how": "made" if made else "fetch" if item.remotes else "by hand",
        "place": str(found[1][0].parent if found else data_directory() / item.folder),
        "urls": [remote.url for remote in item.remotes],
        "bytes": item.size,
        "obtain": item.obtain,
        "keys": [key for key, has in (("samples", item.samples), ("seed", item.seeded)) if has],
        "source": item.source,
        "licence": item.licence,
    }
