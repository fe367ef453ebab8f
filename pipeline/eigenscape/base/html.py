"""HTML of objects in notebooks: one small card, in the colours of the notebook, light or dark.

Text is escaped; there is no script, no style sheet and nothing to load.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup, escape

_CARD = "font-family:sans-serif;font-size:13px;line-height:1.5;max-width:60em"
_LINE = "1px solid rgba(128,128,128,.35)"
_CELL = f"text-align:left;padding:1px 14px 1px 0;border-bottom:{_LINE};background:none"
_FAINT = "opacity:.7"
_CODE = "font-family:monospace;white-space:pre-wrap;margin:4px 0"


def card(kind: str, title: str, *parts: str) -> str:
    """Return the HTML of an object: its kind and name, and parts below it.

    Parameters
    ----------
    kind
        Such as "Result".
    title
        Such as the name of the job.
    parts
        HTML, from the functions of this module.
    """
    head = f"<div><b>{escape(kind)}</b> <span>{escape(title)}</span></div>"
    return f'<div style="{_CARD}">{head}{"".join(parts)}</div>'


def facts(pairs: Mapping[str, object]) -> str:
    """Return names and values in two columns; those without a value are left out."""
    rows = [(name, value) for name, value in pairs.items() if value not in (None, "")]
    return table((), rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table: the first cell of each row names it.

    Parameters
    ----------
    heads
        Heads of the columns; none for a table without.
    rows
        Cells of each row; `markupsafe.Markup` goes in as it is.
    """
    top = "".join(
        f'<th style="{_CELL};{_FAINT};font-weight:normal">{escape(h)}</th>' for h in heads
    )
    body = "".join(
        f"<tr>{_cell(row[0], 'white-space:nowrap')}{''.join(map(_cell, row[1:]))}</tr>"
        for row in rows
    )
    head = f"<thead><tr>{top}</tr></thead>" if heads else ""
    style = "border-collapse:collapse;margin:4px 0;border:none;color:inherit;font-size:inherit"
    return f'<table style="{style}">{head}<tbody>{body}</tbody></table>' if body else ""


def lines(texts: Iterable[str]) -> str:
    """Return sentences below each other."""
    return "".join(f'<div style="{_FAINT}">{escape(text)}</div>' for text in texts)


def folded(summary: str, content: str) -> str:
    """Return what opens with a click; `content` is HTML."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def code(text: str) -> str:
    """Return text as it stands in a file."""
    return f'<pre style="{_CODE};background:none;border:none">{escape(text)}</pre>'


def link(path: object, text: str) -> Markup:
    """Return a link to a file of this machine."""
    address = Path(str(path)).absolute().as_uri()
    return Markup(f'<a href="{escape(address)}">{escape(text)}</a>')


def bar(share: float) -> Markup:
    """Return a bar that is filled to a share from 0 to 1."""
    percent = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
    outer = "display:inline-block;width:16em;height:.7em;background:rgba(128,128,128,.3);border-radius:3px"
    inner = f"display:block;width:{percent};height:100%;background:#3b82c4;border-radius:3px"
    return Markup(f'<span style="{outer}"><span style="{inner}"></span></span>')


def _cell(value: object, style: str = "") -> str:
    return f'<td style="{_CELL};{style}">{escape(value)}</td>'
