"""What results depend on beside their inputs: the code that made them."""

import hashlib
import marshal
from collections.abc import Iterable
from pathlib import Path
from types import CodeType


def code_fingerprint(files: Iterable[Path]) -> str:
    """Return a hash of what Python modules do, not of how they are laid out or explained.

    It is of their compiled code: comments, the text of docstrings, assertions and the place of the
    package change nothing; another minor version of Python does.

    Parameters
    ----------
    files
        The modules, in an order that is always the same.
    """
    digest = hashlib.sha256()
    for file in files:
        code = compile(file.read_bytes(), "", "exec", dont_inherit=True, optimize=2)
        # Version 2 has no references between objects, which differ from call to call.
        digest.update(marshal.dumps(_without_lines(code), 2))
    return digest.hexdigest()


def _without_lines(code: CodeType) -> CodeType:
    constants = tuple(
        _without_lines(constant) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts
    )
    return code.replace(co_consts=constants, co_firstlineno=1, co_linetable=b"")
