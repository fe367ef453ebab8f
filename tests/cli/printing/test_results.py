import pytest

from eigenscape.cli.printing.results import neighbor_line, score_lines

HELD = {"overall_accuracy_std": 0.01, "training_pixels": 30, "trials": 4}
ITSELF = {"overall_accuracy": 1.0, "samples": 300}


def test_score_lines__held_out_pixels_come_first_and_training_pixels_last():
    scores = {
        "protocol": "pixels held out (blocked)",
        "overall_accuracy": 0.61, "average_accuracy": 0.5, "kappa": 0.4,
        "held_out": {
            "blocked": {**HELD, "overall_accuracy": 0.61},
            "random": {**HELD, "overall_accuracy": 0.87},
        },
        "calibration": {
            "after": {
                "random": {"expected_calibration_error": 0.01},
                "blocked": {"expected_calibration_error": 0.05},
            }
        },
        "training_pixels": ITSELF,
    }  # fmt: skip
    lines = list(score_lines(scores))
    assert "61.0 % overall" in lines[0]
    assert lines[0].endswith("pixels held out (blocked)")
    assert [line.split("(")[-1].split(",")[0] for line in lines[1:3]] == [
        "blocked split", "random split",
    ]  # fmt: skip
    assert "off by 5.0 %" in lines[3]
    assert "100.0 %" in lines[-1]
    assert lines[-1].endswith(
        "on the 300 labels that the result learned from: no measure for others"
    )
    # The figures are of other fits than the result, which learned from more labels.
    assert "4 test fits of 30 training labels each" in lines[1]
    assert not any("100.0 %" in line for line in lines[:-1])


def test_score_lines__areas_with_what_is_right_of_the_whole_map():
    scores = {
        "protocol": "disjoint test file", "overall_accuracy": None, "held_out": {},
        "training_pixels": ITSELF,
        "areas": {"overall_accuracy": 0.8, "overall_accuracy_se": 0.01},
    }  # fmt: skip
    told = "  areas      80.0 % +- 2.0 % (95 %) of the whole map right, areas of its classes in areas.csv"
    assert told in list(score_lines(scores))
    scores["areas"] |= {"overall_accuracy_se": None, "skipped": "one label lies there"}
    lines = list(score_lines(scores))
    assert lines[1:3] == [told.replace(" +- 2.0 % (95 %)", ""), "  areas      one label lies there"]
    scores["areas"]["overall_accuracy"] = None
    assert [line for line in score_lines(scores) if "areas" in line] == [lines[2]]


def test_score_lines__name_what_the_figure_leaves_out():
    """Classes that no square tests, and an interval that squares without a mistake cannot show."""
    held = {**HELD, "overall_accuracy": 1.0, "overall_accuracy_std": 0.0}
    scores = {
        "protocol": "pixels held out (blocked)", "per_class": [1.0, None, 1.0],
        "overall_accuracy": 1.0, "average_accuracy": 1.0, "kappa": 1.0,
        "held_out": {"blocked": held}, "training_pixels": ITSELF,
        "intervals": {"overall_accuracy": None, "skipped": "all 4 squares score alike"},
        "never_found": {"oats": 36, "7": 1200}, "unreached": {"samples": 2100, "components": 2},
    }  # fmt: skip
    lines = list(score_lines(scores))
    assert lines[0].endswith("pixels held out (blocked), 2 of 3 classes tested")
    assert lines[1] == "  interval   not known: all 4 squares score alike"
    assert not any("+-" in line for line in lines)
    assert lines[-2] == ("  guessed    2,100 in 2 components of the graph without training labels")
    assert lines[-3] == (
        "  not found  oats (0 of 36), 7 (0 of 1,200): no held-out label of the class was called so in any fit"
    )


def test_score_lines__of_what_is_not_scored():
    assert not list(score_lines({}))
    assert not list(score_lines({"clusters": 3}))


def test_score_lines__where_no_labels_are_left_to_test_on():
    nothing = {
        "overall_accuracy": None, "overall_accuracy_std": 0.0, "training_pixels": 3, "trials": 0,
    }  # fmt: skip
    scores = {
        "protocol": "no pixel is held out",
        "overall_accuracy": None, "average_accuracy": None, "kappa": None,
        "held_out": {"blocked": nothing},
        "training_pixels": {**ITSELF, "samples": 3},
    }  # fmt: skip
    lines = list(score_lines(scores))
    assert lines[0] == "accuracy     not measured: no pixel is held out"
    assert lines[1] == ("  held out   not measured (blocked split: no labels are left to test on)")
    assert not any("+-" in line for line in lines)


@pytest.mark.parametrize(
    ("recall", "low", "high", "line"),
    [
        (0.99, 0.985, 0.995, "0.9900 +- 0.0050 (1,000 lists tested against exact search)"),
        (
            1.0,
            None,
            None,
            "1.0000 (1,000 lists tested against exact search: every neighbour was found)",
        ),
        (
            1.0,
            1.0,
            1.0,
            "1.0000 (1,000 lists tested against exact search: every neighbour was found)",
        ),
        (0.99, 0.99, 0.99, "0.9900 (all 1,000 lists tested against exact search)"),
    ],
)
def test_neighbor_line__has_no_interval_of_no_width(recall, low, high, line):
    found = {"recall": recall, "recall_low": low, "recall_high": high, "recall_samples": 1000}
    assert neighbor_line(found) == f"neighbours   recall {line}"
