"""The registered data sets as a list: what is here, what can be fetched, what is made."""

from typing import Any

from rich.table import Table

from eigenscape.base.memory import format_bytes
from eigenscape.datasets.cache import data_directory, find_form
from eigenscape.datasets.catalog import DATA_SETS
from eigenscape.datasets.entry import DataSet


def list_data_sets() -> list[dict[str, Any]]:
    """Return what is known of every data set, as JSON values."""
    return [_describe(item) for item in DATA_SETS.values()]


def data_set_table() -> Table:
    """Return the list as a table for a terminal."""
    table = Table("name", "size", "classes", "available", "download", "description", "licence")
    for item in list_data_sets():
        table.add_row(
            item["name"],
            " x ".join(map(str, item["shape"])),
            str(len(item["classes"]) or ""),
            "yes" if item["installed"] and item["how"] != "made" else item["how"],
            format_bytes(item["bytes"]) if item["bytes"] else "",
            item["description"]
            if item["how"] == "made"
            else f"{item['description']} {item['source']}",
            item["licence"],
        )
    return table


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
