import pytest

from eigenscape.errors import InputError
from eigenscape.tuning.budget import Budget, parse_budget


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10min", 600), ("1.5 h", 5400), (".5min", 30)]
)
def test_parse_budget(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["10", "min", "0s", "-5s", "10 days", "1e3s"])
def test_parse_budget__refuses_what_is_no_time(text):
    with pytest.raises(InputError, match="expected a time above 0"):
        parse_budget(text)


def test_budget__counts_what_earlier_calls_have_spent(tmp_path):
    budget = Budget(100, tmp_path / "tune.json")
    assert budget.allows()
    budget.begin()
    budget.end(fresh=True)
    spent = budget.spent
    assert 0 < spent < 1
    budget.begin()
    budget.end(fresh=False)
    assert budget.spent == spent
    assert Budget(100, tmp_path / "tune.json").spent == pytest.approx(spent, abs=1e-3)


def test_budget__keeps_a_reserve(tmp_path):
    (tmp_path / "tune.json").write_text('{"spent_seconds": 80}')
    budget = Budget(100, tmp_path / "tune.json")
    assert not budget.allows()
    assert budget.allows(last=True)
