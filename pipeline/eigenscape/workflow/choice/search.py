"""Up the ladder: few draws for many jobs, more draws for the best, within the budget."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from eigenscape.base.process.progress import Reporter
from eigenscape.errors import concerns_all_variants
from eigenscape.features.method import feature_method
from eigenscape.job.jobfile import Job
from eigenscape.labels.nested import BESIDE, Part
from eigenscape.learn.method import reads_eigenvectors
from eigenscape.workflow.choice.candidates import Candidate, Ladder, Option, Rung, candidate
from eigenscape.workflow.choice.survey import Survey
from eigenscape.workflow.choice.trials import Scored, Trials, trial_key
from eigenscape.workflow.choice.tried import Interval, Tried, lead

FINAL_DRAWS = 10
"""Draws by which the best jobs are compared, and the chosen one is judged."""

FINALISTS = 3
"""Jobs that are compared with the given one by all draws."""

_VERDICT = 2
"""Scores that the least verdict takes: of the chosen job and of the given one."""

_FINALS = _VERDICT + 2 * (FINALISTS + 1)
"""Scores that are left to the comparison of the best jobs and the verdict."""


QUICK_PIXELS = 2**18
"""Pixels of a scene up to which no job is slow. Measured with 640,976 on two busy cores: the stage learn took
374 s with "tikhonov" (90.0 % held out by squares) and 102 s with "interpolated" (95.1 %), which was
0.3 points behind on the part by which they were compared."""

WORTHWHILE = 1.0
"""Percentage points that matter: a slow job has to be ahead by more in a larger scene, beyond noise. A job
that is behind by less, within noise, is level with the best one."""

_FIRST = 2
"""Draws after which a job without a graph may be far behind: each costs it the same. Jobs with graphs have
done most of their work before the first one."""

_FAR = 5.0
"""Percentage points that a job is behind in each of its first draws, if it is far behind. Measured on 98
machines and forests of 31 choices (five real scenes and ten synthetic ones): 65 are behind by more than that
in the first two draws, and by 5.2 or more in the mean of four."""

_NEAR = 3
"""Jobs that are compared at random at most, if by squares they are behind within noise."""

_TRADED = 5
"""Points at random that outweigh a point by squares, where that point is within noise. Measured on polygons
of Landsat: a forest is 1.2 points behind by squares (standard error 4), and 16 ahead at random."""


class Scorer(Protocol):
    """Measures the accuracy (or another score) of a job."""

    def score(self, job: Job, trials: Trials) -> Scored:
        """Score a job on some draws, or take what an earlier call has finished.

        The entry ``draws`` of the summary holds, for each draw, ``overall_accuracy`` (or another score for
        which larger is better) and ``samples``, the number of samples on which it was measured.
        """
        ...

    def finished(self, job: Job, trials: Trials) -> bool:
        """Return whether that is there already."""
        ...


class Budget(Protocol):
    """A time budget; its text shows the time that is spent."""

    def allows(self, calls: int = 1) -> bool:
        """Return whether there is time for `calls` more scores."""
        ...

    def begin(self) -> None:
        """Note that a job begins."""
        ...

    def end(self, *, fresh: bool) -> None:
        """Note that it has ended; one that was finished before says nothing of the next."""
        ...


class Unlimited:
    """No budget: what is tried does not depend on the machine."""

    def allows(self, calls: int = 1) -> bool:
        """See `Budget`."""
        return True

    def begin(self) -> None:
        """See `Budget`."""

    def end(self, *, fresh: bool) -> None:
        """See `Budget`."""

    def __str__(self) -> str:
        """Return nothing: there is nothing to say."""
        return ""


@dataclass
class Search:
    """Tries jobs; what was tried is kept, and nothing is tried twice.

    Attributes
    ----------
    job
        As it was given, on the part of the scene that is tuned on.
    scene
        What the scene is.
    split
        How training pixels are drawn.
    scorer
        Scores jobs.
    budget
        Of time.
    reporter
        Called with the progress.
    name
        What progress calls it.
    part
        What the choice may see, and learn from.
    final_draws
        Draws by which the best jobs are compared.
    tried
        What was tried, by the key of the job.
    steps
        Numbers of draws at which the rungs compare jobs, with 0, ascending.
    """

    job: Job
    scene: Survey
    split: str
    scorer: Scorer
    budget: Budget
    reporter: Reporter
    name: str = "tune"
    part: Part = "choosing"
    final_draws: int = FINAL_DRAWS
    tried: dict[str, Tried] = field(default_factory=dict)
    steps: tuple[int, ...] = ()

    @property
    def untested(self) -> bool:
        """Whether no labels are left to test on in the draws that were scored: they are those of all jobs."""
        drawn = [one for one in self.tried.values() if one.drawn]
        return bool(drawn) and not any(one.accuracy for one in drawn)

    @property
    def unbeatable(self) -> bool:
        """Whether a job, which is not slow here, leaves no room for a lead that matters.

        A class of less than a percent of the labels may be lost within that percent: no job that loses half
        of one is such.
        """
        half_of_one = 1 / (2 * max(1, len(self.scene.labelled)))
        return any(
            100 * one.mean(one.drawn) >= 100 - WORTHWHILE and one.mean_average > 1 - half_of_one
            for one in self.tried.values()
            if not one.slow or self.scene.pixels <= QUICK_PIXELS
        )

    def climb(self, ladder: Ladder) -> list[Tried]:
        """Return the jobs that the last rung has kept, the best first."""
        self.steps = tuple(sorted({0, self.final_draws, *(rung.draws for rung in ladder.rungs)}))
        kept = [candidate(self.job, ladder.start)]
        best: list[Tried] = []
        for number, rung in enumerate(ladder.rungs):
            found = self._try_rung(rung, f"rung {number + 1} of {len(ladder.rungs)}", kept)
            best = found or best
            kept = [one.candidate for one in best]
            if self.unbeatable or self.untested or not self.budget.allows(_FINALS):
                break
        return best

    def finish(self, best: Sequence[Tried]) -> list[Tried]:
        """Compare some jobs by all draws; return those that the budget leaves time for, the best first.

        A job that fails is not among them.
        """
        done: list[Tried] = []
        for number, one in enumerate(best):
            there = self._there(one, self.final_draws)
            if done and not there and not self.budget.allows(_VERDICT + 2):
                break
            one.far_behind = False  # Whoever asks for it wants all draws.
            self._try(one, self.final_draws, f"finalist {number + 1} of {len(best)}")
            done += [one] if one.ranks else []
        return sorted(done, key=lambda one: -one.mean(self.final_draws))

    def settle_tie(self, best: Tried, among: Iterable[Tried]) -> tuple[Tried, str]:
        """Return the job that is best by random draws of those that are within noise by squares.

        Parameters
        ----------
        best
            The best job by squares, or one that no other is clearly ahead of.
        among
            Jobs on the same draws.

        Returns
        -------
        chosen
            The best job itself where no other one is ahead at random by more than it is behind by squares: by
            a point, or where it is behind by more than that, by `_TRADED` times as much.
        note
            What decided, for messages; empty where squares did.
        """
        near = [one for one in among if one is not best and self._is_near(one, best)]
        if self.split != "blocked" or not near:
            return best, ""
        near.sort(key=lambda one: -one.mean(best.drawn))
        shares: list[tuple[Tried, list[float]]] = []
        for one in [best, *near[:_NEAR]]:
            trials = Trials(self.part, BESIDE, 0, min(4, best.drawn))
            there = self.scorer.finished(one.candidate.job, trials)
            if not there and not self.budget.allows(_VERDICT + 2):
                break
            shares.append((one, _accuracies(self._scored(one.candidate.job, trials))))
        if len(shares) < 2:
            return best, ""
        own = shares[0][1]
        ahead = [pair for pair in shares[1:] if _outweighs(pair[1], own, lead(best, pair[0]).mean)]
        if not ahead:
            return best, ""
        chosen, theirs = max(ahead, key=lambda pair: sum(pair[1]))
        return chosen, (
            f"within noise by squares of {best.candidate.title} "
            f"({100 * best.mean(best.drawn):.1f} %); ahead of it at random, "
            f"{100 * sum(theirs) / len(theirs):.1f} to {100 * sum(own) / len(own):.1f} %"
        )

    def _is_near(self, one: Tried, best: Tried) -> bool:
        """Whether a job is behind within noise at most, and not slow in a large scene."""
        if one.error is not None or one.drawn < best.drawn:
            return False
        if one.slow and self.scene.pixels > QUICK_PIXELS:
            return False
        behind = lead(best, one)
        return behind.mean <= 0 or not behind.beyond_noise

    def judge(self, found: Sequence[Candidate], split: str) -> list[list[float]]:
        """Return the accuracies of jobs on draws that the choice has not seen, the same ones for all.

        Half of the draws where the budget leaves no time for more; one where there is no other.
        """
        accuracies: list[list[float]] = [[] for _ in found]
        half = FINAL_DRAWS // 2
        for first in (0, half):
            trials = Trials("judging", split, first, first + half)
            there = all(self.scorer.finished(one.job, trials) for one in found)
            if first and not there and not self.budget.allows(len(found)):
                break
            scored = [self._scored(one.job, trials) for one in found]
            for own, draws in zip(accuracies, scored, strict=True):
                own += _accuracies(draws)
            if any(len(draws.summary["draws"]) < half for draws in scored):
                break
        return accuracies

    def add(self, found: Candidate, rung: str, *, slow: bool = False) -> Tried:
        """Return what is known of a job, with the draws that were scored so far."""
        # Jobs that differ in what their classifier does not read have one score.
        key = trial_key(found.job, Trials(self.part, self.split, 0, 1))
        return self.tried.setdefault(key, Tried(found, rung, slow=slow))

    def _try_rung(self, rung: Rung, where: str, kept: Sequence[Candidate]) -> list[Tried]:
        """Try the options of a rung on the jobs kept so far; return the best."""
        fitting = [option for option in rung.options if option.fits(self.job, self.scene)]
        # What the job itself gives may leave nothing to try.
        wanted = [
            self.add(
                candidate(self.job, {**before, **option.keys_on(self.scene)}),
                rung.name,
                slow=option.slow,
            )
            for option in fitting
            for before in _bases(option, kept)
            if not before.keys() & set(option.without)
        ] or [self.add(one, rung.name) for one in kept]
        unique = list({id(one): one for one in wanted}.values())
        unique.sort(key=lambda one: _cost(one.candidate.job, self.scene.bands))
        done: list[Tried] = []
        for number, one in enumerate(unique):
            if self.untested:
                break
            if done and not self._there(one, rung.draws) and not self.budget.allows(_FINALS):
                self.reporter.note(
                    f"the budget leaves no time for {len(unique) - number} more of {rung.name}"
                )
                break
            step = f"{where}, {rung.name}: {number + 1} of {len(unique)}"
            self._try(one, rung.draws, step, racing=True)
            done.append(one)
            if self.unbeatable:
                break
        done.sort(key=lambda one: -one.mean(rung.draws))
        return self._worth_their_time([one for one in done if one.ranks])[: rung.keep]

    def _worth_their_time(self, ranked: list[Tried]) -> list[Tried]:
        """Return jobs, in a large scene without slow ones that are hardly better than the best other one."""
        quick = next((one for one in ranked if not one.slow), None)
        if quick is None or self.scene.pixels <= QUICK_PIXELS:
            return ranked
        gains = [lead(one, quick) for one in ranked]
        return [
            one
            for one, gain in zip(ranked, gains, strict=True)
            if not one.slow or (gain.mean > WORTHWHILE and gain.beyond_noise)
        ]

    def _there(self, one: Tried, draws: int) -> bool:
        return one.drawn >= draws or all(
            self.scorer.finished(one.candidate.job, trials)
            for trials in self._increments(one, draws)
        )

    def _increments(self, one: Tried, draws: int) -> list[Trials]:
        steps = set(self.steps) if one.has_graph else {*self.steps, _FIRST}
        ends = sorted(step for step in steps if step <= draws)
        return [Trials(self.part, self.split, *pair) for pair in itertools.pairwise(ends)]

    def _is_far_behind(self, one: Tried) -> bool:
        """Whether another job is far ahead in each of the draws so far."""
        return (
            bool(one.accuracy)
            and not one.has_graph
            and any(
                other.ranks
                and other.drawn >= one.drawn
                and all(
                    100 * (theirs - own) > _FAR
                    for theirs, own in zip(other.accuracy, one.accuracy, strict=False)
                )
                for other in self.tried.values()
                if other is not one
            )
        )

    def _try(self, one: Tried, draws: int, where: str, *, racing: bool = False) -> None:
        """Score a job on the draws that it lacks; of one that races and is far behind, on the first alone."""
        if not one.ranks or one.drawn >= draws:
            return  # and it was said
        there = self.unbeatable
        for trials in self._increments(one, draws):
            if one.drawn >= trials.last:
                continue
            try:
                scored = self._scored(one.candidate.job, trials)
            except Exception as error:
                # Otherwise a choice without the best job would be kept in the run.
                if concerns_all_variants(error):
                    raise
                told = {other.reason for other in self.tried.values()}
                one.error = error
                if one.reason not in told:
                    self.reporter.note(f"failed: {one.reason}")
                return
            one.accuracy += _accuracies(scored)
            one.average += _accuracies(scored, "average_accuracy")
            one.drawn = trials.last
            one.seconds = max(one.seconds, scored.seconds)
            one.far_behind = racing and trials.last == _FIRST < draws and self._is_far_behind(one)
            if one.far_behind:
                break
        if one.accuracy:
            found = f"{Interval.of(one.accuracy)}{', far behind,' if one.far_behind else ''}"
            title = one.candidate.title or "as given"
            self.reporter.stage(self.name, f"{self.budget}{where}: {found} {title}")
        if self.unbeatable and not there:
            self.reporter.note(
                f"no other job can be ahead of it by more than {WORTHWHILE:g} %: nothing more is tried"
            )

    def _scored(self, job: Job, trials: Trials) -> Scored:
        fresh = not self.scorer.finished(job, trials)
        self.budget.begin()
        try:
            return self.scorer.score(job, trials)
        finally:
            self.budget.end(fresh=fresh)


def _bases(option: Option, kept: Sequence[Candidate]) -> list[Mapping[str, Any]]:
    """Return the changes that an option is added to."""
    if option.alone:
        return [{}]
    return [one.values for one in (kept[:1] if option.once else kept)]


def _outweighs(theirs: Sequence[float], own: Sequence[float], behind: float) -> bool:
    """Whether a lead at random counts for more than what a job is behind by squares, within noise."""
    gain = Interval.of([its - mine for its, mine in zip(theirs, own, strict=True)])
    least = WORTHWHILE if behind < WORTHWHILE else _TRADED * behind
    return gain.mean >= least and gain.beyond_noise


def _accuracies(scored: Scored, measure: str = "overall_accuracy") -> list[float]:
    """Return a measure of each draw that tests anything: the same draws for all jobs."""
    draws: list[dict[str, Any]] = scored.summary["draws"]
    return [draw.get(measure, draw["overall_accuracy"]) for draw in draws if draw["samples"]]


def _cost(job: Job, bands: int) -> tuple[bool, float]:
    """Return what orders jobs by their time: whether eigenvectors are needed, then sizes."""
    slow = reads_eigenvectors(job.learn, potential=job.graph.potential is not None)
    return slow, feature_method(job).columns(bands) * job.neighbors.k
