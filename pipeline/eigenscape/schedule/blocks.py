"""Our entries within the text of a crontab. Whatever else stands there stays as it is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eigenscape.errors import InputError

_MARK = re.compile(
    r"^# (?P<way>>>>|<<<) eigenscape schedule (?P<name>\S+?)(?:: (?P<title>.*))? (?P=way)$"
)

_BREAK = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
"""Whatever ends a line for cron, for a shell or for `str.splitlines`."""


@dataclass(frozen=True)
class Block:
    """One entry with the comments that mark it.

    Attributes
    ----------
    name
        What tells it from others.
    title
        For people: the job file.
    lines
        What stands between the marks.
    """

    name: str
    title: str
    lines: tuple[str, ...]

    def text(self) -> str:
        """Return it as it stands in a crontab."""
        marked = (
            f"# >>> eigenscape schedule {self.name}: {self.title} >>>",
            *self.lines,
            f"# <<< eigenscape schedule {self.name} <<<",
        )
        return "".join(f"{line}\n" for line in marked)


def find_blocks(text: str) -> list[Block]:
    """Return our entries in a crontab.

    Raises
    ------
    InputError
        A mark has lost its partner.
    """
    return [block for block, _, _ in _spans(text)]


def put_block(text: str, block: Block) -> str:
    """Return a crontab with a block: in the place of the one of the same name, or at the end."""
    for found, start, stop in _spans(text):
        if found.name == block.name:
            return text[:start] + block.text() + text[stop:]
    # cron refuses a last line that does not end.
    return text + "\n" * bool(text and not text.endswith("\n")) + block.text()


def drop_block(text: str, name: str) -> str:
    """Return a crontab without the block of a name."""
    for found, start, stop in reversed(_spans(text)):
        if found.name == name:
            text = text[:start] + text[stop:]
    return text


def _spans(text: str) -> list[tuple[Block, int, int]]:
    """Return every block with where it starts and stops."""
    spans: list[tuple[Block, int, int]] = []
    begun: re.Match[str] | None = None
    lines: list[str] = []
    start = position = 0
    for line in text.splitlines(keepends=True):
        mark = _MARK.match(line.rstrip("\r\n"))
        if mark and mark["way"] == ">>>" and begun is None:
            begun, start, lines = mark, position, []
        elif mark and mark["way"] == "<<<" and begun and begun["name"] == mark["name"]:
            block = Block(begun["name"], begun["title"] or "", tuple(lines))
            spans.append((block, start, position + len(line)))
            begun = None
        elif mark:
            raise _damaged(mark["name"])
        elif begun:
            lines.append(line.rstrip("\n"))
        position += len(line)
    if begun:
        raise _damaged(begun["name"])
    return spans


def _damaged(name: str) -> InputError:
    return InputError(
        f"the crontab has only one of the two comments around the entry {name}. Delete what is left of "
        "it by `crontab -e` (or `scrontab -e`), then install it again."
    )


def escape_percent(command: str) -> str:
    """Return a command as crontab(5) takes it: there, a bare % ends the line."""
    return command.replace("%", r"\%")


def check_backslashes(command: str) -> None:
    r"""Refuse a command that crons read differently.

    Some take a backslash off before another one, and each takes ``\\%`` for a percent sign that ends the
    command.

    Raises
    ------
    InputError
        A backslash stands before a backslash or a percent sign.
    """
    if found := re.search(r"\\[\\%]", command):
        raise InputError(
            f"{command[max(0, found.start() - 20) : found.end() + 20]!r}: a backslash before a backslash "
            "or a percent sign cannot stand in a crontab. Rename the file, or put what --set says into "
            "the job file."
        )


def check_lines(lines: Sequence[str], limit: int = 990) -> None:
    """Refuse lines that cron would cut.

    Raises
    ------
    InputError
        One is too long, or has a line break in it.
    """
    for line in lines:
        if _BREAK.search(line):
            raise InputError(
                f"{line!r}: a path with a line break or another control character cannot stand in a "
                "crontab. Rename it."
            )
        if len(line.encode(errors="surrogateescape")) > limit:
            raise InputError(
                f"the entry has {len(line)} characters, and cron takes {limit}: {line[:80]}... Put what "
                "--set says into the job file, or use shorter paths."
            )
