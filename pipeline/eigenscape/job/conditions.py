"""Conditions on the keys of a job, such as ``learn.eigenvectors < learn.train``, without `eval`."""

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True)
class Condition:
    """A condition that has been read.

    Attributes
    ----------
    text
        As it was written.
    keys
        The keys of the job that it names.
    """

    text: str
    keys: frozenset[str]
    _tree: ast.expr

    def holds(self, value_of: Callable[[str], Any]) -> bool:
        """Return whether it is true of a job.

        Parameters
        ----------
        value_of
            Value of a key.

        Raises
        ------
        TypeError
            Values that cannot be compared, such as a number with a word.
        """
        return bool(_evaluate(self._tree, value_of))


def parse_condition(text: str) -> Condition:
    """Read a condition: keys, numbers, texts, lists, comparisons, ``+ - * / //``, and, or, not.

    Raises
    ------
    ValueError
        Anything else.

    Examples
    --------
    >>> condition = parse_condition("learn.k < 0.5 * learn.train")
    >>> sorted(condition.keys), condition.holds({"learn.k": 3, "learn.train": 10}.get)
    (['learn.k', 'learn.train'], True)
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise ValueError(
            f'{text!r} is not a condition; write one such as "learn.eigenvectors < learn.train"'
        ) from None
    keys: set[str] = set()
    _check(tree, text, keys)
    return Condition(text, frozenset(keys), tree)


def _check(node: ast.expr, text: str, keys: set[str]) -> None:
    """Refuse what is no condition, and note the keys it names."""
    if isinstance(node, (ast.Attribute, ast.Name)):
        keys.add(_key(node, text))
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str)):
        return
    if isinstance(node, ast.BoolOp):
        parts = node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        parts = [node.operand]
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        parts = [node.left, node.right]
    elif isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
        parts = [node.left, *node.comparators]
    elif isinstance(node, (ast.List, ast.Tuple)):
        parts = node.elts
    else:
        raise ValueError(
            f"{ast.get_source_segment(text, node)!r} in {text!r} is not understood; a condition has "
            "keys, numbers, texts, comparisons, + - * / //, and, or, not"
        )
    for part in parts:
        _check(part, text, keys)


def _key(node: ast.expr, text: str) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_key(node.value, text)}.{node.attr}"
    raise ValueError(f"{ast.get_source_segment(text, node)!r} in {text!r} is not a key of a job")


def _evaluate(node: ast.expr, value_of: Callable[[str], Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Attribute, ast.Name)):
        return value_of(_key(node, ""))
    if isinstance(node, ast.BoolOp):
        values = (_evaluate(part, value_of) for part in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.UnaryOp):
        operand = _evaluate(node.operand, value_of)
        return not operand if isinstance(node.op, ast.Not) else -operand
    if isinstance(node, ast.BinOp):
        apply = _ARITHMETIC[type(node.op)]
        return apply(_evaluate(node.left, value_of), _evaluate(node.right, value_of))
    if isinstance(node, ast.Compare):
        sides = [_evaluate(side, value_of) for side in (node.left, *node.comparators)]
        pairs = zip(node.ops, sides[:-1], sides[1:], strict=True)
        return all(_COMPARE[type(op)](left, right) for op, left, right in pairs)
    assert isinstance(node, (ast.List, ast.Tuple)), "anything else was refused"
    return [_evaluate(part, value_of) for part in node.elts]
