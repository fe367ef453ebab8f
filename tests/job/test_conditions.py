import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.job.conditions import parse_condition

VALUES = {"learn.train": 100, "learn.k": 3, "learn.method": "k-nn", "variant": "exact"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("learn.k < learn.train", True),
        ("learn.k * 40 <= learn.train", False),
        ("1 < learn.k < 3", False),
        ("learn.method == 'k-nn' and not learn.k > 5", True),
        ("learn.k in [1, 5] or variant != 'exact'", False),
        ("learn.train // 7 == 14 and learn.train / 8 == 12.5", True),
        ("learn.k - 4 == -1", True),
    ],
)
def test_condition__holds(text, expected):
    assert parse_condition(text).holds(VALUES.__getitem__) is expected


def test_condition__names_its_keys():
    assert parse_condition("a.b < c.d + e").keys == {"a.b", "c.d", "e"}


@pytest.mark.parametrize(
    "text",
    [
        "", "learn.k <", "f(learn.k)", "__import__('os').system('true')", "learn.k[0] > 1",
        "lambda: 1", "(learn.k := 3)", "[x for x in learn.k]", "'a'.join", "learn.k ** 9", "x; y",
    ],
)  # fmt: skip
def test_condition__refuses_what_is_none(text):
    with pytest.raises(ValueError, match=r"condition|not understood|not a key"):
        parse_condition(text)


@given(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from(["<", "<=", "==", ">=", ">", "!="]))
def test_condition__compares_as_python_does(a, b, sign):
    condition = parse_condition(f"x.a {sign} x.b + 1")
    assert condition.holds({"x.a": a, "x.b": b}.__getitem__) == eval(f"{a} {sign} {b} + 1")
