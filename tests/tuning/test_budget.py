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


def test_budget__allows_as_many_as_took_no_longer_than_those_before(tmp_path, monkeypatch):
    now = iter([0.0, 8.0, 10.0, 22.0])
    monkeypatch.setattr("eigenscape.tuning.budget.time.monotonic", lambda: next(now))
    budget = Budget(60, tmp_path / "tune.json")
    for _ in range(2):
        budget.begin()
        budget.end(fresh=True)
    # 20 s are spent, and one takes 12.5 s with caution.
    assert str(budget) == "20 s of 60 s, "
    assert budget.allows(3)
    assert not budget.allows(4)


def test_budget__counts_what_is_done_beside_but_expects_no_more_of_it(tmp_path, monkeypatch):
    now = iter([0.0, 50.0, 50.0, 52.0])
    monkeypatch.setattr("eigenscape.tuning.budget.time.monotonic", lambda: next(now))
    budget = Budget(60, tmp_path / "tune.json")
    with budget.beside():
        pass
    budget.begin()
    budget.end(fresh=True)
    assert budget.spent == 52
    assert budget.allows(3)
    assert not budget.allows(4)
