"""Metadata in XML, without what XML can do beyond elements: no document type, so no entities at all."""

import math
from collections.abc import Iterator
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from eigenscape.errors import SceneError

MOST_BYTES = 2**26
"""Of an XML file; metadata of products have up to a few MB."""

_DEEPEST = 64


def parse_xml(content: bytes, name: str) -> Element:
    """Return the root of an XML document, tags without their namespaces.

    Parameters
    ----------
    content
        The document.
    name
        Of the file, for messages.

    Raises
    ------
    SceneError
        It is damaged, or has a document type, which could define entities that grow without bound or
        stand for other files. Metadata of products have none.
    """
    builder = TreeBuilder()
    # Without a separator for namespaces a name is what stands in the file, prefix included.
    parser = expat.ParserCreate()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise SceneError(
                f"{name}: its elements are nested deeper than {_DEEPEST}: it is damaged."
            )
        builder.start(tag.rpartition(":")[2], attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag.rpartition(":")[2])

    def refuse(*_: object) -> None:
        raise SceneError(
            f"{name}: has a document type (<!DOCTYPE ...>), which could define entities; such a file is not "
            "read, as none that is meant has one. Download it again."
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
        return builder.close()
    except (expat.ExpatError, AssertionError, LookupError, ValueError) as error:
        raise SceneError(
            f"{name}: the XML is truncated or damaged ({error}). Download it again."
        ) from None


def text_of(root: Element, tag: str) -> str:
    """Return the text of the first element of a tag anywhere below, stripped; "" where there is none."""
    found = next(root.iter(tag), None)
    return "" if found is None else (found.text or "").strip()


def number_of(root: Element, tag: str) -> float:
    """Return the number in the first element of a tag anywhere below; NaN where there is none."""
    return as_number(text_of(root, tag))


def as_number(text: str | None) -> float:
    """Return a number as text; NaN where it is none."""
    try:
        return float(text) if text else math.nan
    except ValueError:
        return math.nan


def children(root: Element, *path: str) -> Iterator[Element]:
    """Yield the elements under a path of tags, the first of which may be anywhere below."""
    above = list(root.iter(path[0]))
    for tag in path[1:]:
        above = [child for one in above for child in one if child.tag == tag]
    yield from above
