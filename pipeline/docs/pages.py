"""Pages of the site that are written elsewhere: texts of the repository, and references made of the code.

A page that consists of ``{include} ../../jobs/GUIDE.md`` is that text, with its links led to the pages
of the site; a line ``{made} keys`` stands for what a function below makes of the code.
So nothing is said twice.
"""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from docutils.nodes import SkipNode, literal_block

__all__ = ["SkipNode", "fill", "show_commands"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

_INCLUDE = re.compile(r"```\{include\} (\S+)\n```\n")
_MADE = re.compile(r"```\{made\} ([\w-]+)\n```")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"(^ {4,}[^\n]*$|^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


@cache
def texts() -> dict[Path, Path]:
    """Return the texts of the repository and the page that shows each."""
    found = {}
    for page in sorted(HERE.rglob("*.md")):
        if match := _INCLUDE.fullmatch(page.read_text(encoding="utf-8")):
            found[(page.parent / match[1]).resolve()] = page
    return found


def fill(app: Any, docname: str, source: list[str]) -> None:
    """Put texts of the repository, and what is made of the code, in their places."""
    page = Path(app.env.doc2path(docname))
    if match := _INCLUDE.fullmatch(source[0]):
        text = (page.parent / match[1]).resolve()
        app.env.note_dependency(str(text))
        source[0] = led(text, page)
    source[0] = _MADE.sub(lambda match: MADE[match[1]](), source[0])


def led(text: Path, page: Path) -> str:
    """Return a text of the repository with its links as they are from a page of the site."""
    parts = _CODE.split(text.read_text(encoding="utf-8"))
    # A link whose words are code is not cut in two: code is put back before links are sought.
    kept = [part for part in parts[1::2]]
    marked = "".join(
        part if place % 2 == 0 else f"\0{place // 2}\0" for place, part in enumerate(parts)
    )
    marked = _LINK.sub(lambda match: _lead(match, text, page), marked)
    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], marked)


def _lead(match: re.Match[str], text: Path, page: Path) -> str:
    mark, words, target = match.groups()
    file, _, anchor = target.partition("#")
    if re.match(r"\w+:", target) or not file:
        return match[0]
    aim = (text.parent / file).resolve()
    if aim.is_dir():
        return words
    aim = texts().get(aim, aim)
    if aim == ROOT / "README.md":
        aim = HERE / "index.md"
    way = os.path.relpath(aim, page.parent)
    return f"{mark}[{words}]({way}{'#' if anchor else ''}{anchor})"


def show_commands(app: Any, doctree: Any) -> None:
    """Show a cell of commands as commands: without the line that hands it to the shell."""
    for block in doctree.findall(literal_block):
        first, _, rest = block.rawsource.partition("\n")
        if first.strip() == "%%bash":
            block.rawsource = rest
            block.children = [type(block.children[0])(rest)]
            block["language"] = "bash"
        elif first.startswith("%%writefile "):
            name = first.split()[1]
            block.rawsource = f"# {name}\n{rest}"
            block.children = [type(block.children[0])(block.rawsource)]
            block["language"] = "toml" if name.endswith(".toml") else "python"


def _type_of(annotation: Any) -> str:
    """Write a type as users write its values."""
    if annotation in (None, NoneType):
        return "none"
    if get_origin(annotation) is Literal:
        return ", ".join(f'"{each}"' if isinstance(each, str) else str(each)
                         for each in get_args(annotation))  # fmt: skip
    arguments = [each for each in get_args(annotation) if each is not ...]
    origin = get_origin(annotation)
    if hasattr(annotation, "__metadata__"):
        return _type_of(arguments[0])
    if origin in (tuple, list, set, frozenset):
        return f"list of {' or '.join(dict.fromkeys(map(_type_of, arguments)))}"
    if (
        origin is not None
        and arguments
        and not (isinstance(origin, type) and issubclass(origin, dict))
    ):
        # What may be left out says so by having no default.
        kinds = [each for each in arguments if each is not NoneType]
        return " or ".join(dict.fromkeys(map(_type_of, kinds)))
    return {
        str: "text",
        int: "whole number",
        float: "number",
        bool: "true or false",
        dict: "table",
    }.get(origin or annotation, "table")


def _cell(text: str) -> str:
    """Make of reStructuredText a cell of a Markdown table."""
    text = re.sub(r"``(.+?)``", r"`\1`", re.sub(r"\s+", " ", text))
    return text.replace("|", r"\|")


def _default(field: Any) -> str:
    import tomlkit

    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return ""
    if isinstance(value, (str, bool, int, float)):
        return f"`{tomlkit.item(value).as_string()}`"
    if isinstance(value, (tuple, list)):
        return f"`{tomlkit.item(list(value)).as_string()}`"
    return ""


def _rows(kind: Any, fields: dict[str, Any], prefix: str) -> Iterator[str]:
    about = kind.descriptions()
    yield "| key | values | default | meaning |"
    yield "|---|---|---|---|"
    for name, field in fields.items():
        kinds = _cell(_type_of(field.annotation))
        yield f"| `{prefix}{name}` | {kinds} | {_default(field)} | {_cell(about.get(name, ''))} |"
    yield ""


def _own(kind: Any) -> dict[str, Any]:
    return {
        name: field
        for name, field in kind.model_fields.items()
        if not field.exclude and not _is_table(field.annotation)
    }


def _is_table(annotation: Any) -> bool:
    from eigenscape.job.scene import Options

    if isinstance(annotation, type) and issubclass(annotation, Options):
        return True
    return any(map(_is_table, get_args(annotation)))


def _say(kind: Any) -> str:
    """Return the first paragraph of a class's docstring."""
    text = re.split(r"\n\s*\n", (kind.__doc__ or "").strip())[0]
    return re.sub(r"``(.+?)``", r"`\1`", re.sub(r"\s+", " ", text))


def keys() -> str:
    """Return every key of a job file, from the models that check it."""
    from eigenscape.job.explanations import tables_of
    from eigenscape.job.jobfile import Job
    from eigenscape.job.registry import MethodOptions

    lines = ["## Beside the tables", "", *_rows(Job, _own(Job), "")]
    for table, kind in tables_of(Job).items():
        lines += [f"## [{table}]", "", _say(kind), ""]
        shared = _own(kind)
        if not issubclass(kind, MethodOptions):
            lines += _rows(kind, shared, f"{table}.")
            continue
        names = kind.registry.all()
        given = ", ".join(f'"{name}"' for name in names)
        lines += [*_rows(kind, shared, f"{table}."), f"`{table}.method` is one of {given}.", ""]
        for name, method in names.items():
            own = {
                key: field
                for key, field in _own(method).items()
                if key not in shared or (key != "method" and field.default != shared[key].default)
            }
            lines += [f'### {table}.method = "{name}"', "", _say(method), ""]
            lines += _rows(method, own, f"{table}.") if own else []
    return "\n".join(lines)


def cluster_keys() -> str:
    """Return every key of a cluster file."""
    from eigenscape.clusters.options import ClusterOptions
    from eigenscape.clusters.registry import KINDS

    shared = _own(ClusterOptions)
    lines = []
    for name, kind in KINDS.all().items():
        lines += [f'## kind = "{name}"', "", _say(kind), ""]
        own = {key: field for key, field in _own(kind).items() if key not in shared}
        lines += _rows(kind, own, "") if own else []
    return "\n".join(lines)


def commands() -> str:
    """Return every command of the command line with its arguments."""
    import typer

    from eigenscape.cli.app import app

    return "\n".join(_commands(typer.main.get_command(app), "eigenscape"))


def _commands(command: Any, name: str) -> Iterator[str]:
    if subcommands := getattr(command, "commands", None):
        for word, each in subcommands.items():
            yield from _commands(each, f"{name} {word}")
        return
    yield from (f"## {name}", "", _cell(command.help or ""), "")
    context = command.make_context(name, [], resilient_parsing=True)
    records = [one.get_help_record(context) for one in command.params if one.name != "help"]
    if not (shown := [record for record in records if record]):
        return
    yield "| argument | meaning |"
    yield "|---|---|"
    for words, said in shown:
        yield f"| `{words}` | {_cell(said)} |"
    yield ""


def errors() -> str:
    """Return the tree of errors, with the exit status of each."""
    from eigenscape import errors

    tree = (errors.__doc__ or "").partition("::\n")[2].partition("\n\nA message")[0]
    return "```text\n" + "\n".join(line[4:] for line in tree.strip("\n").splitlines()) + "\n```"


def extras() -> str:
    """Return the extras that a user may want, from pyproject.toml."""
    import tomllib

    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    groups = tomllib.loads("[e]" + section)["e"]
    lines = ["| extra | for | packages |", "|---|---|---|"]
    for name, needs in groups.items():
        said = re.search(rf"((?:^# .*\n)*)^{name} = ", section, re.MULTILINE)
        meaning = " ".join(line[2:] for line in (said[1] if said else "").splitlines())
        packages = ", ".join(f"`{re.split('[>=<]', need)[0]}`" for need in needs)
        if meaning:
            lines.append(f"| `{name}` | {_cell(meaning)} | {packages} |")
    return "\n".join(lines)


MADE = {
    "keys": keys,
    "cluster-keys": cluster_keys,
    "commands": commands,
    "errors": errors,
    "extras": extras,
}
