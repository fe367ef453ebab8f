from dataclasses import dataclass
from pathlib import Path

import pytest

from eigenscape.errors import InputError, reason_of
from eigenscape.workflow.many.outcomes import Outcome, Outcomes, count_states


@dataclass(frozen=True)
class Named(Outcome):
    name: str

    @property
    def title(self):
        return self.name


def outcomes_of(*states, **fields):
    return Outcomes(Path("x"), tuple(Named(state, state=state, **fields) for state in states))


@pytest.mark.parametrize(
    ("states", "converged", "status"),
    [
        (["done", "skipped", "to do"], True, 0),
        (["done", "skipped"], False, 3),
        (["done", "failed"], True, 2),
        (["done", "failed"], False, 2),
        ([], True, 0),
    ],
)
def test_exit_status__is_that_of_the_worst(states, converged, status):
    assert outcomes_of(*states, converged=converged).exit_status == status


def test_remarks__name_failures_and_doubts():
    found = (
        Named("a", state="done"),
        Named("b", state="failed", reason="no file"),
        Named("c", state="skipped", converged=False, reason="not converged"),
    )
    result = Outcomes(Path("x"), found)
    assert result.remarks() == ["b failed: no file", "c: not converged"]
    assert [result.count(state) for state in ("done", "failed", "to do")] == [1, 1, 0]


def test_count_states__leaves_out_what_there_is_none_of():
    assert count_states(["to do", "done", "failed", "done"]) == "2 done, 1 failed, 1 to do"
    assert count_states([]) == ""


def test_reason_of__names_the_kind_of_foreign_errors_alone():
    assert reason_of(InputError("k = 3")) == "k = 3"
    assert reason_of(KeyError("k")) == "KeyError: 'k'"
