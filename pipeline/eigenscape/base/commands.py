"""Commands that messages suggest, as a shell takes them."""

import shlex


def command_line(*words: object) -> str:
    """Return a command of eigenscape to copy from a message, with its words quoted where a shell needs it.

    Examples
    --------
    >>> print(command_line("plan", "my scene.toml"))
    eigenscape plan 'my scene.toml'
    """
    return shlex.join(("eigenscape", *map(str, words)))
