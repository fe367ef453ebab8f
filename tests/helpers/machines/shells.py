"""What cron, queues and shells make of a line, for tests that compare it with what was meant."""

import os
import subprocess
from pathlib import Path

from hypothesis import strategies as st

AWKWARD = "%$`\"'\\ ;&|<>()[]{}*?~#!=-+@,:.\tüλ世x1"
"""Characters to which a shell, cron or a queue gives a meaning, and some of other scripts."""

words = st.one_of(
    st.text(AWKWARD, min_size=1, max_size=12),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12),
    st.sampled_from(["$(touch ran)", "`touch ran`", "-rf", "--wrap=x", "a\nb", "a\rb", "%%", "\\%", "$HOME",
                     "a\x85b", "'; touch ran; '", '"$(touch ran)"', "~/x", "a b", "#x", "\\\\", "a\\",
                     "\u2028"]),
)  # fmt: skip
"""Values with quotes, percent signs, line breaks, commands, leading dashes ..."""


def breaks(*texts: str) -> bool:
    """Whether one has a line break or another control character."""
    return any(
        len(f"a{text}b".splitlines()) > 1 or any(ord(one) < 32 or ord(one) == 127 for one in text)
        for text in texts
    )


def cron_command(command: str, *, takes_backslashes: bool) -> str:
    """Return what cron hands to the shell of the command in a line of a crontab.

    As `do_command.c` of Vixie's cron has it: up to the first bare %, and the backslash before a % goes;
    some descendants take off one before a backslash, too.
    """
    found: list[str] = []
    escaped = False
    for letter in command:
        if escaped:
            if letter == "%" or (letter == "\\" and takes_backslashes):
                found[-1] = letter
            else:
                found.append(letter)
            escaped = False
        elif letter == "%":
            break
        else:
            found.append(letter)
            escaped = letter == "\\"
    return "".join(found)


def make_teller(folder: Path) -> Path:
    """Write a program that tells where it works, $EIGENSCAPE_DATA and its arguments; see `told`."""
    program = folder / "it's a %s program $(touch ran)"
    program.write_text('#!/bin/sh\nprintf \'%s\\0\' "$(pwd -P)" "$EIGENSCAPE_DATA" "$@"\n')
    program.chmod(0o755)
    return program


def told(text: str, where: Path, **environment: str) -> list[str]:
    """Run a text as sh does; return what the program told, and see that nothing else was run."""
    done = subprocess.run(
        ["/bin/sh", "-c", text], capture_output=True, check=True, cwd=where,
        env={"PATH": os.environ["PATH"], **environment},
    )  # fmt: skip
    assert not (where / "ran").exists()
    return done.stdout.decode().split("\0")[:-1]
