import pytest

from eigenscape.errors import InputError
from eigenscape.tuning.budget import Budget, as_seconds


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [("90s", 90), ("10min", 600), ("1.5 h", 5400), (".5min", 30), (90, 90), (0.5, 0.5)],
)
def test_as_seconds(budget, seconds):
    assert as_seconds(budget) == seconds


@pytest.mark.parametrize(
    "budget", ["10", "min", "0s", "-5s", "10 days", "1e3s", 0, -1.0, float("nan"), True, None, [9]]
)
def test_as_seconds__refuses_what_is_no_time(budget):
    with pytest.raises(InputError, match="expected a time above 0"):
        as_seconds(budget)


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr("eigenscape.tuning.budget.time", found)
    return found


def score(budget, clock, seconds, *, fresh=True):
    budget.begin()
    clock.now += seconds
    budget.end(fresh=fresh)


def test_budget__counts_what_earlier_calls_have_spent(tmp_path, clock):
    budget = Budget(100, tmp_path / "tune.json", "key")
    assert budget.allows()
    clock.now += 3  # whatever is done beside the scores
    score(budget, clock, 4)
    score(budget, clock, 0.5, fresh=False)
    assert budget.spent == 7.5
    following = Budget(100, tmp_path / "tune.json", "key")
    assert following.spent == 7.5
    clock.now += 1
    assert following.spent == 8.5
    # What was finished before says nothing of the next.
    assert budget.allows(17)
    assert not budget.allows(18)


def test_budget__what_was_spent_on_something_else_does_not_count(tmp_path, clock):
    path = tmp_path / "tune.json"
    score(Budget(100, path, "key"), clock, 60)
    again, other = Budget(100, path, "key"), Budget(100, path, "other")
    assert (again.spent, again.continues) == (60, True)
    assert (other.spent, other.continues) == (0, False)
    # A directory of an earlier version says nothing of what was tuned.
    path.write_text('{"spent_seconds": 60.0, "budget_seconds": 100}')
    assert not Budget(100, path, "key").continues
    score(other, clock, 5)
    assert Budget(100, path, "other").spent == 5
    assert not Budget(100, path, "key").continues


def test_budget__allows_as_many_as_took_no_longer_than_the_last_ones(tmp_path, clock):
    budget = Budget(200, tmp_path / "tune.json", "key")
    score(budget, clock, 60)
    for _ in range(4):
        score(budget, clock, 8)
        score(budget, clock, 12)
    # 140 s are spent and 6 reserved, and one takes 12.5 s with caution.
    assert str(budget) == "140 s of 200 s, "
    assert budget.allows(4)
    assert not budget.allows(5)


def test_budget__leaves_time_for_what_follows_the_last_score(tmp_path, clock):
    budget = Budget(100, tmp_path / "tune.json", "key")
    clock.now += 96.9
    assert budget.allows()
    clock.now += 0.2
    assert not budget.allows()
