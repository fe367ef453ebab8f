import pytest

from eigenscape import load_job, parse_job
from eigenscape.errors import JobError
from eigenscape.study.layout import order_of, points_of, read_published


def job(tmp_path, text=None, **study):
    if text is not None:
        (tmp_path / "p.csv").write_text(text, encoding="utf-8")
        study["published"] = "p.csv"
    table = {"scene": {"path": "a.npy"}, "study": {"grid": {"learn.k": [1, 3]}, **study}}
    return parse_job(table, name="study", base=tmp_path)


def row(**values):
    return {"state": "finished", "main": "true", **values}


def test_points_of__the_best_of_several_beside_the_published(finished):
    study, result = finished
    from eigenscape.base.files.tables import read_table

    points = points_of(study, read_table(result.outputs["csv"]))
    errors = {(p.place("learn.train"), p.place("learn.eigenvectors")): p for p in points}
    assert list(errors) == [
        ("12", "3"), ("40", "3"), ("40", "8"), ("12", "best k-NN"), ("40", "best k-NN"),
    ]  # fmt: skip
    # "3.0" in the file is 3; one variant was not published.
    assert [p.theirs("error") for p in points] == [53.7, 48.3, 12.9, 28.1, None]
    each = [
        r["error"] for r in result.rows if r["main"] and r["learn.k"] and r["learn.train"] == 40
    ]
    assert len(each) == 2
    assert errors["40", "best k-NN"].value("error") == pytest.approx(min(each))


def test_points_of__the_best_accuracy_is_the_largest(tmp_path):
    study = job(tmp_path, variants=[{"name": "k", "best": ["learn.k"]}], measure="accuracy")
    rows = [row(variant="k", accuracy=a, **{"learn.k": k}) for k, a in (("1", "50"), ("3", "60"))]
    (point,) = points_of(study, rows)
    assert point.value("accuracy") == 60


def test_points_of__a_variant_beside_the_published_values_of_another(tmp_path):
    variants = [{"name": "plain"}, {"name": "best graph", "published": "plain"}, {"name": "other"}]
    study = job(tmp_path, "variant,learn.k,error\nplain,3,7.5\n", variants=variants)
    names = [variant["name"] for variant in variants]
    rows = [row(variant=name, error="5", **{"learn.k": "3"}) for name in names]
    assert [point.theirs("error") for point in points_of(study, rows)] == [7.5, 7.5, None]


def test_points_of__protocol_and_state(tmp_path):
    rows = [
        row(protocol="random", error="1", **{"learn.k": "1"}),
        row(protocol="blocked", main="false", error="2", **{"learn.k": "1"}),
        {"state": "failed", "learn.k": "3"},
    ]
    assert [p.value("error") for p in points_of(job(tmp_path), rows)] == [1]
    blocked = points_of(job(tmp_path, protocol="blocked"), rows)
    assert [p.value("error") for p in blocked] == [2]


def test_points_of__means_over_seeds_with_their_standard_error(tmp_path):
    grid = {"learn.k": [1, 3], "features.seed": [0, 1]}
    study = job(tmp_path, grid=grid, average=["features.seed"])
    rows = [
        row(error=e, trials="9", **{"learn.k": k, "features.seed": s})
        for k, s, e in (("1", "0", "2"), ("1", "1", "4"), ("3", "0", "5"), ("3", "1", "5"))
    ]
    first, second = points_of(study, rows)
    assert (first.value("error"), first.spread("error"), first.row["trials"]) == (3, 1, "2")
    assert (second.value("error"), second.spread("error")) == (5, 0)
    assert "features.seed" not in first.row


def test_order_of__numbers_before_names(tmp_path):
    rows = [row(variant="b", **{"learn.k": k}) for k in ("10", "auto", "9")] + [row(variant="a")]
    assert order_of(points_of(job(tmp_path), rows), "learn.k") == ["9", "10", "auto", "a"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("learn.kk,error\n1,2\n", ["column learn.kk", "Did you mean learn.k?"]),
        ("learn.k,errors\n1,2\n", ["column errors", "Did you mean error?"]),
    ],
)
def test_read_published__refuses_columns_it_does_not_know(tmp_path, text, words):
    with pytest.raises(JobError) as caught:
        read_published(job(tmp_path, text))
    for word in words:
        assert word in str(caught.value)


def test_read_published__missing_file(tmp_path):
    with pytest.raises(JobError, match=r"study.published = 'no.csv'.*relative to the job file"):
        read_published(job(tmp_path, published="no.csv"))


def test_read_published__of_the_study_of_the_tests(write_study):
    assert len(read_published(load_job(write_study()))) == 4
