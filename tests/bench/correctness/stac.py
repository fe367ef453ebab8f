"""Is the STAC item of a run valid for stac-validator, without a network?

    python tests/bench/correctness/stac.py ITEM... --schemas DIR

Needs ``pip install stac-validator pystac``. The schemas of STAC itself come with pystac. Those of the
extensions are in DIR, one JSON file each, whatever its name: as published, under the addresses that the
item lists, or in the recorded answers of the tests of pystac's extension packages (their source
distributions). Other schemas to which they refer (projjson) are files there, too. Prints one JSON object
for each item, and ends with 1 where one is not valid.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pystac.validation
from stac_validator import stac_validator

_CORE = "https://schemas.stacspec.org/v1.1.0/item-spec/json-schema/"
_GEOJSON = "https://geojson.org/schema/"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("items", nargs="+", metavar="ITEM")
    parser.add_argument("--schemas", type=Path, required=True, help="folder of published schemas")
    given = parser.parse_args()
    schemas = published(given.schemas)
    fine = True
    for item in given.items:
        missing = set(json.loads(Path(item).read_text())["stac_extensions"]) - set(schemas)
        if missing:
            parser.error(f"{given.schemas} lacks the schemas of {', '.join(sorted(missing))}")
        check = stac_validator.StacValidate(item, schema_map=schemas)
        fine = check.run() and fine
        print(json.dumps(check.message[0], indent=1))
    return 0 if fine else 1


def published(folder: Path) -> dict[str, str]:
    """Return the file of each address: the schemas of STAC, of GeoJSON, and those in the folder."""
    own = Path(pystac.validation.__file__).parent / "jsonschemas"
    schemas = {_CORE + path.name: str(path) for path in (own / "stac-spec/v1.1.0").glob("*.json")}
    schemas |= {_GEOJSON + path.name: str(path) for path in (own / "geojson").glob("*.json")}
    for path in sorted(folder.glob("*.json")):
        schemas[address(json.loads(path.read_text()))] = str(path)
    return schemas


def address(schema: dict[str, Any]) -> str:
    """Return where a schema is published: what items have to list; its own name, where there is none."""
    listed = schema.get("definitions", {}).get("stac_extensions", {})
    contained = listed.get("properties", {}).get("stac_extensions", {}).get("contains", {})
    return str(contained.get("const") or schema["$id"].rstrip("#"))


if __name__ == "__main__":
    sys.exit(main())
