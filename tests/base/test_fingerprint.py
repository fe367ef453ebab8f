import shutil
import subprocess
import sys

import pytest

from eigenscape.base.fingerprint import code_fingerprint, content_key

PLAIN = '''"""Module."""

def f(x):
    """Say what."""
    if x in {"a", "b", "c"}:
        return [y + 1 for y in (1, 2)]
'''


@pytest.fixture
def fingerprint(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

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


@pytest.mark.parametrize("content", [b"", b"no code", None], ids=["empty", "other", "cut"])
def test_code_fingerprint__damaged_compiled_files_change_nothing(tmp_path, fingerprint, content):
    expected = fingerprint(PLAIN)
    (kept,) = tmp_path.glob("__pycache__/module.*.opt-2.pyc")
    kept.write_bytes(kept.read_bytes()[:-9] if content is None else content)
    # Anew: digests are remembered in a process.
    (tmp_path / "module.py").touch()
    assert fingerprint(PLAIN) == expected


def test_code_fingerprint__where_nothing_can_be_written(tmp_path, fingerprint, monkeypatch):
    (tmp_path / "__pycache__").write_text("a file in the place of the directory")
    closed = fingerprint(PLAIN)
    (tmp_path / "__pycache__").unlink()
    assert fingerprint(PLAIN) == closed
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    shutil.rmtree(tmp_path / "__pycache__")
    assert fingerprint(PLAIN) == closed
    assert not (tmp_path / "__pycache__").exists()


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


def test_content_key__is_the_same_whatever_the_order_of_keys():
    assert content_key(["a", {"x": 1, "y": [2.5, None]}]) == content_key(
        ("a", {"y": (2.5, None), "x": 1})
    )
    # Runs and prepared data on disk are found by it.
    assert content_key(["stage", {"k": 12}]) == "1865887383e282e15bc0713520d23808"
