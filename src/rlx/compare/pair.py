"""One candidate and the baseline: the looks that were taken and can be taken, the verdict, and notes on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rlx.compare.arms import Arm, Training
from rlx.compare.code_version import CodeVersions
from rlx.compare.comparability import Objection, objections, spell_seeds
from rlx.compare.guardrails import tail_check
from rlx.compare.interim_plan import InterimLook, LookStage, available, look, with_failures
from rlx.compare.question import STANDARD, ComparisonQuestion
from rlx.compare.run_pool import RunPool
from rlx.compare.stored_scores import winners_curse
from rlx.compare.verdict import Verdict, VerdictRules, judge, strength, undecided
from rlx.number_format import counted, figure
from rlx.runs.interim_looks import LookRecord, Party
from rlx.runs.run import Run, deleted_note

Scores = dict[int, float]


@dataclass(frozen=True)
class TakenLook:
    """A look and its record. `is_older` says that it was taken earlier on other scores; it still stands."""

    look: InterimLook
    record: LookRecord
    is_older: bool


@dataclass(frozen=True, eq=False)
class Pair:
    """A candidate and the baseline under one protocol. `known` are the looks that the project has recorded.

    A replication has the baseline's own config on purpose. Both runs were also scored under the protocols `also_under`.
    """

    base_run: Run
    new_run: Run
    base: Arm
    new: Arm
    fingerprint: str
    codes: CodeVersions
    known: Sequence[LookRecord]
    minimum_effect: float = 0.0
    is_replication: bool = False
    also_under: tuple[str, ...] = ()
    question: ComparisonQuestion = STANDARD

    @cached_property
    def ids(self) -> tuple[str, str]:
        return _run_id(self.base_run), _run_id(self.new_run)

    @cached_property
    def rules(self) -> VerdictRules:
        return VerdictRules(minimum_effect=self.minimum_effect, can_be_worse=not self.base.having("crashed"))

    @cached_property
    def floor(self) -> float | None:
        """The random policy's score, if it was measured."""
        return min((arm.floor for arm in (self.base, self.new) if arm.floor is not None), default=None)

    @cached_property
    def base_scores(self) -> Scores:
        return self.base.as_baseline()

    @cached_property
    def new_scores(self) -> Scores:
        return self.new.as_candidate()

    @cached_property
    def objections(self) -> list[Objection]:
        against = objections(self.base, self.new, is_replication=self.is_replication, question=self.question)
        return [*against, *self._missing_seeds()]

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """What is special about this question and belongs into the verdict: logged scores, different budgets."""
        terms = []
        if self.question.metric is not None:
            lower = ", negated because lower is better" if self.question.is_lower_better else ""
            terms.append(f"reported: the last value of {self.question.metric} that training logged{lower}")
        if self.question.budgets_may_differ:
            budgets = [arm.planned_steps or max(arm.steps, default=0) for arm in (self.base, self.new)]
            terms.append(f"budgets: {self.new.name} {budgets[1]:,} steps, {self.base.name} {budgets[0]:,} steps")
        return tuple(terms)

    def _missing_seeds(self) -> Iterator[Objection]:
        """Seeds that a look used must still exist: removing one would be another way of looking again."""
        for row in self._own_records():
            for party, arm in ((row.baseline, self.base), (row.candidate, self.new)):
                missing = sorted(set(party.scores) - {training.seed for training in arm.trainings})
                if missing:
                    yield Objection(f"{spell_seeds(missing)} of {arm.name}, in the look at {row.seeds}, is gone")
                    return

    def _own_records(self) -> list[LookRecord]:
        return [row for row in self.known if row.pair == self.ids and row.fingerprint == self.fingerprint]

    @cached_property
    def taken(self) -> tuple[TakenLook, ...]:
        """Every look that these seeds allow. A look that was taken before keeps its scores."""
        if self.objections:
            return ()
        stages = available(self.rules.plan, len(self.base_scores), len(self.new_scores))
        return tuple(self._take(stage) for stage in stages)

    @cached_property
    def strength(self) -> float:
        return strength([taken.look for taken in self.taken], self.rules)

    def judge(self, share: float) -> Verdict:
        """Return the verdict, its levels scaled by `share`. Only for a pair without objections."""
        base = list(self.base_scores.values())
        new = list(self.new_scores.values())
        if not base or not np.isfinite(new).any():
            reason = next(self._waiting(), "nothing has been scored yet")
            return undecided(reason, n=(len(base), len(new)))
        looks = [taken.look for taken in self.taken]
        return judge(base, new, rules=self.rules, floor=self.floor, looks=looks, share=share)

    def _take(self, stage: LookStage) -> TakenLook:
        # The first seeds of each side, with crashed candidate seeds filled in.
        base = dict(list(self.base_scores.items())[: self.rules.plan.baseline_seeds(stage)])
        new = dict(list(self.new_scores.items())[: stage.seeds])
        filled = with_failures(list(base.values()), list(new.values()), floor=self.floor)
        new = dict(zip(new, filled.tolist(), strict=True))
        record = next((row for row in self._own_records() if row.seeds == stage.seeds), None)
        if record is not None:
            is_older = (dict(record.baseline.scores), dict(record.candidate.scores)) != (base, new)
            made = look(stage, list(record.baseline.scores.values()), list(record.candidate.scores.values()))
            return TakenLook(made, record, is_older)
        made = look(stage, list(base.values()), list(new.values()))
        parties = _party(self.base_run, base), _party(self.new_run, new)
        record = LookRecord(*parties, self.fingerprint, stage.seeds, made.above, made.below)
        return TakenLook(made, record, is_older=False)

    # Commands and notes for people

    def commands(self, verdict: Verdict) -> list[str]:
        """Return the commands that lead on from a verdict. Each of them works."""
        if self.objections:
            commands = [objection.command for objection in self.objections]
        else:
            own = [arm for arm in (self.base, self.new) if not arm.is_script]
            commands = [
                training.finish_command(arm.name, evaluate=arm.evaluate)
                for arm in own
                for training in arm.having("pending")
            ]
            by_hand = self.by_hand(verdict)
            if by_hand and len(own) == 2:
                by_hand = [f"rlx settle {self.base.name} {self.new.name}{self.question.options}"]
            commands += by_hand
            commands = commands or [f"rlx plot {self.base.name} {self.new.name}"]
        return [command for command in dict.fromkeys(commands) if command]

    def by_hand(self, verdict: Verdict) -> list[str]:
        """Return one command per side that trains what the next look needs. `rlx settle` does the same by itself."""
        if self.objections or verdict.is_futile or verdict.next_look is None:
            return []
        counts = (
            (self.base, len(self.base.trainings) - len(self.base.having("crashed"))),
            (self.new, len(self.new.trainings)),
        )
        return [
            f"rlx train --more {arm.name} --seeds {verdict.next_look - count}"
            for arm, count in counts
            if count < verdict.next_look and not arm.is_script
        ]

    def notes(self, verdict: Verdict) -> list[str]:
        """Return what a reader of the verdict has to know."""
        deleted = [f"{run.name}: {deleted_note(run)}" for run in (self.base_run, self.new_run) if run.deleted_seeds]
        notes = [*deleted, *self._pools(), *self._code_note(), *self._protocols()]
        if not self.objections:
            notes += [*self._waiting(), *self._crashed(), *self._every_seed(verdict), *self._tail(), *self._history()]
            notes += self._scripts(verdict)
        return [*notes, *self._curse()]

    def _pools(self) -> Iterator[str]:
        for run in (self.base_run, self.new_run):
            if isinstance(run, RunPool):
                names = ", ".join(member.name for member in run.members)
                again = ""
                if run.repeated:
                    again = f"; {counted(run.repeated, 'training')} of a seed that another run has: not counted"
                yield f"{run.name} stands for {len(run.members)} runs of one config: {names}{again}"

    def _scripts(self, verdict: Verdict) -> Iterator[str]:
        for arm in (self.base, self.new):
            if arm.is_script and verdict.next_look is not None and not verdict.is_futile:
                next_seed = max((training.seed for training in arm.trainings), default=-1) + 1
                call = f'rlx.start(config, seed={next_seed}, run="{arm.name}")'
                yield f"{arm.name} is trained by a script: `{call}` adds a seed"

    def _code_note(self) -> Iterator[str]:
        for arm in (self.base, self.new):
            if len(arm.codes) > 1 and self.question.is_reuse:
                changed = self.codes.changed(arm.codes[0], arm.codes[-1]) or "the project's code"
                yield f"{arm.name}: seeds of different code count together by --reuse; changed: {changed}"
        if self.base.codes != self.new.codes and len(self.base.codes) == len(self.new.codes) == 1:
            before = self.base.codes[0]
            after = self.new.codes[0]
            changed = self.codes.changed(before, after)
            names = ""
            if changed:
                names = f": {changed}"
            yield f"code differs: {self.base.name} {before}, {self.new.name} {after}{names}"

    def _waiting(self) -> Iterator[str]:
        for arm in (self.base, self.new):
            states: dict[str, list[int]] = {}
            for training in arm.having("pending"):
                state = "not evaluated"
                if self.question.metric is not None:
                    state = f"no value of {self.question.metric}"
                if training.state != "completed":
                    state = training.state
                states.setdefault(state, []).append(training.seed)
            for state, seeds in states.items():
                yield f"waiting for {spell_seeds(seeds)} of {arm.name} ({state}): a pending seed is never dropped"

    def _crashed(self) -> Iterator[str]:
        for training in self.base.having("crashed"):
            ending = _ending(training)
            yield f"seed {training.seed} of {self.base.name} {ending}: a baseline seed is left out and replaced"
        crashed = self.new.having("crashed")
        if not crashed:
            return
        scores = [*self.base_scores.values(), *self.new_scores.values()]
        if self.floor is not None:
            scores.append(self.floor)
        if not np.isnan(scores).all():
            worst = float(np.nanmin(scores))
        else:
            worst = float("nan")
        source = "as the random policy"
        if self.floor is None or worst < self.floor:
            source = "the worst seen"
        for training in crashed:
            yield f"seed {training.seed} of {self.new.name} {_ending(training)}: it scores {figure(worst)}, {source}"

    def _every_seed(self, verdict: Verdict) -> Iterator[str]:
        """Show the seeds beyond the look that decided. They do not change the verdict."""
        sizes = (len(self.base_scores), len(self.new_scores))
        if verdict.look is not None and sizes != verdict.n:
            whole = judge(list(self.base_scores.values()), list(self.new_scores.values()), floor=self.floor, looks=())
            yield f"decided at the look of {verdict.look}; every seed, {sizes[0]} v {sizes[1]}: {whole.effect()}"

    def _tail(self) -> Iterator[str]:
        base = list(self.base_scores.values())
        new = list(self.new_scores.values())
        if not base or not np.isfinite(new).any():
            return
        tail = tail_check(base, with_failures(base, new, floor=self.floor))
        if tail.is_flagged:
            below = f"{tail.below} of {self.new.name}'s {len(new)} seeds score below {self.base.name}'s worst"
            yield f"{below} (p = {tail.p:.2g} between equal learners)"

    def _history(self) -> Iterator[str]:
        """Name looks on other scores, other candidates of this baseline, and other runs of the same two configs."""
        for taken in self.taken:
            if taken.is_older:
                yield f"the look at {taken.record.seeds} was taken earlier, on other scores; it stands"
        groups = tuple(run.metadata.get("group_hash") for run in (self.base_run, self.new_run))
        rivals: set[str] = set()
        repeats: set[str] = set()
        for row in self.known:
            if row.fingerprint != self.fingerprint or row.pair == self.ids:
                continue
            if row.baseline.id == self.ids[0] and not row.is_replication and row.candidate.run != self.new.name:
                rivals.add(row.candidate.run)
            if (row.baseline.group, row.candidate.group) == groups:
                repeats.add(f"{row.baseline.run} v {row.candidate.run}")
        if rivals:
            names = ", ".join(sorted(rivals))
            yield f"also compared with {self.base.name}: {names}; each comparison has its own chance of error"
        if repeats:
            names = ", ".join(sorted(repeats))
            yield f"the same two configs were compared before: {names}; each pair has its own chance of error"

    def _protocols(self) -> Iterator[str]:
        """Say if the protocol is not both runs' own, which others there are, and what those decided."""
        if self.question.metric is not None:
            return
        base_own = self.base_run.own_protocol
        new_own = self.new_run.own_protocol
        if base_own == new_own and base_own not in (None, self.fingerprint):
            yield f"judged under {self.fingerprint}, not under the runs' own protocol {base_own}"
        elif base_own and new_own and base_own != new_own:
            runs = (self.base_run, self.new_run)
            owner = "".join(f", that of {run.name}" for run in runs if run.own_protocol == self.fingerprint)
            yield f"the two runs have different protocols of their own: judged under {self.fingerprint}{owner}"
        for other in self.also_under:
            prefix = _unique_prefix(other, (self.fingerprint, *self.also_under))
            command = f"rlx compare {self.base.name} {self.new.name} --protocol {prefix}"
            yield f"also evaluated under {other}: {command}{self._other_decision(other)}"

    def _other_decision(self, fingerprint: str) -> str:
        """Say what a look under another protocol decided."""
        stages = {stage.seeds: stage for stage in self.rules.plan.stages}
        for row in self.known:
            if row.pair == self.ids and row.fingerprint == fingerprint and row.seeds in stages:
                scores = tuple(row.baseline.scores.values()), tuple(row.candidate.scores.values())
                other = InterimLook(stages[row.seeds], *scores, row.above, row.below)
                decision = self.rules.decision(other, share=1.0)
                if decision:
                    return f" (`{decision}` there, at {row.seeds} seeds: choosing among protocols is peeking)"
        return ""

    def _curse(self) -> Iterator[str]:
        for run in (self.base_run, self.new_run):
            curse = winners_curse(run, self.fingerprint)
            if curse and curse.claimed > curse.scored:
                scored = f"scores {figure(curse.scored)} on {curse.episodes} episodes ({counted(curse.seeds, 'seed')})"
                yield f"`best` of {run.name} was selected at {figure(curse.claimed)} and {scored}: winner's curse"


def _run_id(run: Run) -> str:
    return str(run.metadata.get("id", run.name))


def _party(run: Run, scores: Scores) -> Party:
    return Party(run.name, _run_id(run), str(run.metadata.get("group_hash", "")), scores)


def _unique_prefix(fingerprint: str, fingerprints: Sequence[str]) -> str:
    """Return the shortest beginning of a fingerprint that no other one shares."""
    for size in range(4, len(fingerprint)):
        if sum(other.startswith(fingerprint[:size]) for other in fingerprints) == 1:
            return fingerprint[:size]
    return fingerprint


def _ending(training: Training) -> str:
    if training.reason:
        return f"crashed ({training.reason})"
    if training.score is None:
        return "crashed"
    return f"scored {figure(training.score)}"
