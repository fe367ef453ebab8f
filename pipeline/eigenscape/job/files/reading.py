"""The text of a job file, and what is wrong with it."""

import re
import tomllib
from pathlib import Path
from typing import Any

from eigenscape.base.commands import command_line
from eigenscape.errors import JobError, did_you_mean

_MOST_BYTES = 2**24
"""Largest size of a job file in bytes; a longer file is refused and not read to its end."""

_BARE_TEXT = re.compile(r"""\s*([\w.-]+)\s*=\s*([^\s"'\[{#][^"'#]*?)\s*(#.*)?""")


def _unquoted(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Return a hint if the text in the line of an error has no quotes, an empty text otherwise."""
    place = re.search(r"at line (\d+)", str(error))
    line = text.split("\n")[int(place[1]) - 1] if place else ""
    found = _BARE_TEXT.fullmatch(line)
    if found is None or found[2] in ("true", "false"):
        return ""
    quote = "'" if "\\" in found[2] else '"'
    return f" A text needs quotes: {found[1]} = {quote}{found[2]}{quote}."


def read_tables(path: Path) -> dict[str, Any]:
    """Return the tables of a job file.

    Raises
    ------
    JobError
        The file cannot be read, or is not TOML.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise JobError(f"{path}: is not a regular file. Give a job file (TOML).")
    try:
        with path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise JobError(
            f"{path}: no such job file.{_closest_file(path)} "
            "A job file is TOML; its only required key is path in the table [scene]."
        ) from None
    except IsADirectoryError:
        raise JobError(f"{path}: is a directory. Give the job file inside it.") from None
    except OSError as error:
        raise JobError(f"{path}: cannot be read ({error}).") from None
    try:
        text = content.decode("utf-8-sig")  # some editors begin a file with a byte order mark
        if len(content) > _MOST_BYTES or "\0" in text:
            raise ValueError("it has more bytes than any job, or zero bytes")
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise JobError(f"{path}: not valid TOML: {error}.{_unquoted(text, error)}") from None
    except RecursionError:
        raise JobError(f"{path}: not a job file: its brackets are nested too deeply.") from None
    except ValueError as error:
        raise JobError(
            f"{path}: not a job file: it is not text in UTF-8 ({error}). If it is a job, save it as UTF-8. "
            f"If it is a scene: `{command_line('init', path)}` writes a job file for it."
        ) from None


def _closest_file(path: Path) -> str:
    siblings = [str(item) for item in path.parent.glob("*.toml")] if path.parent.is_dir() else []
    return did_you_mean(str(path), siblings)
