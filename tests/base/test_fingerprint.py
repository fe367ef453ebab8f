import subprocess
import sys

import pytest

from eigenscape.base.fingerprint import code_fingerprint

PLAIN = '''"""Module."""

def f(x):
    """Say what."""
    if x in {"a", "b", "c"}:
        return [y + 1 for y in (1, 2)]
'''


@pytest.fixture
def fingerprint(tmp_path):
    def of(text):
        path = tmp_path / "module.py"
        path.write_text(text)
        return code_fingerprint([path])

    return of


@pytest.mark.parametrize(
    "text",
    [
        "# why\n\n" + PLAIN,
        PLAIN.replace("Module", "What for\n\nAnd what not"),
        PLAIN.replace("Say what", "Return it"),
        PLAIN.replace(" + ", "+").replace("(1, 2)", "(\n1,\n2)"),
        PLAIN.replace("    if", "    assert x\n    if"),
    ],
    ids=["comment", "module", "docstring", "layout", "assertion"],
)
def test_code_fingerprint__looks_at_what_code_does(fingerprint, text):
    assert fingerprint(text) == fingerprint(PLAIN)


@pytest.mark.parametrize(
    ("old", "new"), [("y + 1", "y - 1"), ("y + 1", "y + 2"), ('"c"', '"d"'), ("def f", "def g")]
)
def test_code_fingerprint__differs_with_it(fingerprint, old, new):
    assert fingerprint(PLAIN.replace(old, new)) != fingerprint(PLAIN)


def test_code_fingerprint__is_that_of_any_process(tmp_path, fingerprint):
    """Sets of strings have an order of their own in each process."""
    here = fingerprint(PLAIN)
    script = (
        "import sys; from pathlib import Path; from eigenscape.base.fingerprint import code_fingerprint; "
        "print(code_fingerprint([Path(sys.argv[1])]))"
    )
    for seed in "012":
        found = subprocess.run(
            [sys.executable, "-c", script, tmp_path / "module.py"],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert found.stdout.strip() == here
