from eigenscape.workflow.many.progress import StudyProgress

NAMES = ("samples", "graph", "learn")


class Lines:
    def __init__(self):
        self.lines = []

    def stage(self, name, text):
        self.lines.append(f"{name}: {text}")

    def note(self, text):
        self.lines.append(text)


def keys(graph, learn):
    return dict(zip(NAMES, ("s", f"g{graph}", f"l{learn}"), strict=True))


def stages(**seconds):
    return [
        {"name": name, "seconds": value or 9.0, "reused": value is None}
        for name, value in seconds.items()
    ]


def test_study_progress__shared_stages_count_once():
    heard = Lines()
    progress = StudyProgress(heard, 5, [])
    left = [keys(1, 1), keys(1, 2), keys(2, 3), keys(2, 4), keys(2, 5)]
    progress.variant("a", left)
    progress.finished(stages(graph=10.0, learn=1.0), left[0], wall=11.5)
    progress.variant("b", left[1:])
    progress.finished(stages(graph=None, learn=3.0), left[1], wall=3.5)
    progress.variant("c", left[2:])
    assert heard.lines == [
        "study: variant 1 of 5: a",
        # One graph more, four times learn, four times half a second around them.
        "study: variant 2 of 5, 16 s left: b",
        # Learn takes 2 s in the mean now.
        "study: variant 3 of 5, 18 s left: c",
    ]


def test_study_progress__counts_what_was_finished():
    heard = Lines()
    progress = StudyProgress(heard, 3, [keys(1, 1), keys(1, 2)])
    progress.variant("c", [keys(1, 3)])
    progress.stage("learn", "reused")
    progress.stage("learn", "running")
    progress.stage("learn", "1.0 s, peak 1 MiB")
    assert heard.lines == [
        "study: 2 of 3 variants finished",
        "study: variant 3 of 3: c",
        "learn: 1.0 s, peak 1 MiB",
    ]


def test_study_progress__notes_of_a_reused_stage_once():
    heard = Lines()
    progress = StudyProgress(heard, 2, [])
    for state in ("running", "reused", "reused"):
        progress.stage("ingest", state)
        progress.note("7 pixels are left out")
    progress.stage("graph", "running")
    progress.note("failed: as before")
    progress.note("failed: as before")
    assert heard.lines == ["7 pixels are left out", "failed: as before", "failed: as before"]
