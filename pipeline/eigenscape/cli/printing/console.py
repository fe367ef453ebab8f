"""The console on which tables are printed."""

from rich.console import Console


def console() -> Console:
    """Return a console that is wide enough for a table where stdout is a file.

    It prints brackets as they are: names of extras and of job tables have some.
    """
    found = Console(markup=False)
    return found if found.is_terminal else Console(width=140, markup=False)
