"""One candidate beside the baseline: the looks that were and can be taken, the verdict, and what to know about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rlx.compare.code import Codes
from rlx.compare.guardrails import tail_check
from rlx.compare.looks import Look, Stage, available, look, with_failures
from rlx.compare.objections import Objection, objections
from rlx.compare.reports import winners_curse
from rlx.compare.side import Side, Training
from rlx.compare.verdict import Rules, Verdict, judge, strength, undecided
from rlx.figures import figure
from rlx.runs.looks import LookRecord, Party
from rlx.runs.run import Run

Scores = dict[int, float]


@dataclass(frozen=True)
class Taken:
    """A look and its record; `is_older` where it was taken before, on other scores than there are now, and stands."""

    look: Look
    record: LookRecord
    is_older: bool


@dataclass(frozen=True, eq=False)
class Pair:
    """A candidate and the baseline under one protocol; `known` are the looks the project has recorded.

    A replication has the baseline's own config, on purpose. `also_under` are further protocols that both were scored
    under.
    """

    base_run: Run
    new_run: Run
    base: Side
    new: Side
    fingerprint: str
    codes: Codes
    known: Sequence[LookRecord]
    minimum_effect: float = 0.0
    is_replication: bool = False
    also_under: tuple[str, ...] = ()

    @cached_property
    def ids(self) -> tuple[str, str]:
        first, second = (str(run.metadata.get("id", run.name)) for run in (self.base_run, self.new_run))
        return first, second

    @cached_property
    def rules(self) -> Rules:
        return Rules(minimum_effect=self.minimum_effect, can_be_worse=not self.base.having("crashed"))

    @property
    def floor(self) -> float | None:
        """The random policy's score where it was measured."""
        return min((side.floor for side in (self.base, self.new) if side.floor is not None), default=None)

    @cached_property
    def objections(self) -> list[Objection]:
        return [*objections(self.base, self.new, is_replication=self.is_replication), *self._gone()]

    @cached_property
    def taken(self) -> tuple[Taken, ...]:
        """Every look these seeds allow; one that was taken before stands as it was."""
        if self.objections:
            return ()
        sizes = len(self.base.as_baseline()), len(self.new.as_candidate())
        return tuple(self._take(stage) for stage in available(self.rules.plan, *sizes))

    @cached_property
    def strength(self) -> float:
        return strength([one.look for one in self.taken], self.rules)

    def judge(self, share: float) -> Verdict:
        """Return the verdict, its levels scaled by `share`; only for a pair without objections."""
        base, new = list(self.base.as_baseline().values()), list(self.new.as_candidate().values())
        if not base or not np.isfinite(new).any():
            waiting = next(iter(self._waiting()), "nothing has been scored yet")
            return undecided(waiting, n=(len(base), len(new)))
        looks = [one.look for one in self.taken]
        return judge(base, new, rules=self.rules, floor=self.floor, looks=looks, share=share)

    def _take(self, stage: Stage) -> Taken:
        now = self._scores(stage)
        before = next((row for row in self._mine() if row.seeds == stage.seeds), None)
        ours, theirs = (dict(before.baseline.scores), dict(before.candidate.scores)) if before else now
        made = look(stage, list(ours.values()), list(theirs.values()))
        return Taken(made, before or self._record(made, ours, theirs), is_older=(ours, theirs) != now)

    def _scores(self, stage: Stage) -> tuple[Scores, Scores]:
        """Return what a look takes now: the first seeds of either side, crashed candidate seeds filled in."""
        ours = dict(list(self.base.as_baseline().items())[: self.rules.plan.baseline_seeds(stage)])
        theirs = dict(list(self.new.as_candidate().items())[: stage.seeds])
        filled = with_failures(list(ours.values()), list(theirs.values()), floor=self.floor)
        return ours, dict(zip(theirs, filled.tolist(), strict=True))

    def _record(self, made: Look, ours: Mapping[int, float], theirs: Mapping[int, float]) -> LookRecord:
        base, new = (
            Party(run.name, identity, str(run.metadata.get("group_hash", "")), scores)
            for run, identity, scores in zip((self.base_run, self.new_run), self.ids, (ours, theirs), strict=True)
        )
        return LookRecord(base, new, self.fingerprint, made.stage.seeds, made.above, made.below)

    def _mine(self) -> list[LookRecord]:
        return [row for row in self.known if row.pair == self.ids and row.fingerprint == self.fingerprint]

    def _gone(self) -> Iterator[Objection]:
        """Seeds that a look was taken on must still be there: taking one away is another way of looking again."""
        for row in self._mine():
            for party, side in ((row.baseline, self.base), (row.candidate, self.new)):
                missing = sorted(set(party.scores) - {one.seed for one in side.trainings})
                if missing:
                    yield Objection(f"{_seeds(missing)} of {side.name}, in the look at {row.seeds}, is gone")
                    return

    # What to know and what to do

    def commands(self, verdict: Verdict) -> list[str]:
        """Return the commands that lead on from a verdict; each of them works."""
        found = [objection.command for objection in self.objections]
        if not self.objections:
            for side in self._own():
                found += [one.mend(side.name, evaluate=side.evaluate) for one in side.having("pending")]
            missing = self.by_hand(verdict)
            can_settle = missing and len(self._own()) == 2
            found += [f"rlx settle {self.base.name} {self.new.name}"] if can_settle else missing
            found += [] if found else [f"rlx plot {self.base.name} {self.new.name}"]
        return [command for command in dict.fromkeys(found) if command]

    def by_hand(self, verdict: Verdict) -> list[str]:
        """Return the commands that train what the next look needs, one a side: what `rlx settle` does by itself."""
        wanted = verdict.next_look
        if self.objections or verdict.is_futile or wanted is None:
            return []
        counted = len(self.base.trainings) - len(self.base.having("crashed")), len(self.new.trainings)
        return [
            f"rlx train --more {side.name} --seeds {wanted - count}"
            for side, count in zip((self.base, self.new), counted, strict=True)
            if count < wanted and not side.is_script
        ]

    def _own(self) -> list[Side]:
        """Return the sides that rlx trains; the others are trained by a script."""
        return [side for side in (self.base, self.new) if not side.is_script]

    def notes(self, verdict: Verdict) -> list[str]:
        """Return what a reader of the verdict has to know beside it."""
        found = [*self._code_note(), *self._protocols()]
        if not self.objections:
            found += [*self._waiting(), *self._crashed(), *self._every_seed(verdict), *self._tail(), *self._history()]
            found += [*self._scripts(verdict)]
        return [*found, *self._curse()]

    def _scripts(self, verdict: Verdict) -> Iterator[str]:
        for side in (self.base, self.new):
            if side.is_script and verdict.next_look is not None and not verdict.is_futile:
                fresh = max((one.seed for one in side.trainings), default=-1) + 1
                call = f'rlx.start(config, seed={fresh}, run="{side.name}")'
                yield f"{side.name} is trained by a script: `{call}` adds a seed"

    def _code_note(self) -> Iterator[str]:
        ours, theirs = self.base.codes, self.new.codes
        if ours != theirs and len(ours) == len(theirs) == 1:
            changed = self.codes.changed(ours[0], theirs[0])
            files = f": {changed}" if changed else ""
            yield f"code differs: {self.base.name} {ours[0]}, {self.new.name} {theirs[0]}{files}"

    def _waiting(self) -> Iterator[str]:
        for side in (self.base, self.new):
            states: dict[str, list[int]] = {}
            for one in side.having("pending"):
                states.setdefault("not evaluated" if one.state == "completed" else one.state, []).append(one.seed)
            for state, seeds in states.items():
                verb = "is" if len(seeds) == 1 else "are"
                yield f"{_seeds(seeds)} of {side.name} ({state}) {verb} waited for, never dropped"

    def _crashed(self) -> Iterator[str]:
        for one in self.base.having("crashed"):
            yield f"seed {one.seed} of {self.base.name} {_end(one)}: on the baseline's side it is left out and replaced"
        failed = self.new.having("crashed")
        if failed:
            ours, theirs = self.base.as_baseline(), self.new.as_candidate()
            seen = [score for score in (*ours.values(), *theirs.values(), self.floor) if score is not None]
            worst = float(np.nanmin(seen)) if seen and not np.isnan(seen).all() else float("nan")
            by = "the worst seen" if self.floor is None or worst < self.floor else "as the random policy"
            for one in failed:
                yield f"seed {one.seed} of {self.new.name} {_end(one)}: it scores {figure(worst)}, {by}"

    def _every_seed(self, verdict: Verdict) -> Iterator[str]:
        """Seeds beyond the look that decided are shown, and change nothing."""
        base, new = list(self.base.as_baseline().values()), list(self.new.as_candidate().values())
        if verdict.look is not None and (len(base), len(new)) != verdict.n:
            whole = judge(base, new, floor=self.floor, looks=())
            yield f"decided at the look of {verdict.look}; every seed, {len(base)} v {len(new)}: {whole.effect()}"

    def _tail(self) -> Iterator[str]:
        ours, theirs = list(self.base.as_baseline().values()), list(self.new.as_candidate().values())
        if not ours or not np.isfinite(theirs).any():
            return
        tail = tail_check(ours, with_failures(ours, theirs, floor=self.floor))
        if tail.is_flagged:
            below = f"{tail.below} of {self.new.name}'s {len(theirs)} seeds score below {self.base.name}'s worst"
            yield f"{below} (p = {tail.p:.2g} between equal learners)"

    def _history(self) -> Iterator[str]:
        for one in self.taken:
            if one.is_older:
                yield f"the look at {one.record.seeds} was taken on other scores than there are now; it stands"
        asked = [row for row in self.known if row.fingerprint == self.fingerprint and row.pair != self.ids]
        rivals = {row.candidate.run for row in asked if row.baseline.id == self.ids[0] and not row.is_replication} - {
            self.new.name
        }
        if rivals:
            yield f"also looked at against {self.base.name}: {', '.join(sorted(rivals))}; each look may err anew"
        groups = tuple(run.metadata.get("group_hash") for run in (self.base_run, self.new_run))
        again = {f"{row.baseline.run} v {row.candidate.run}" for row in asked
                 if (row.baseline.group, row.candidate.group) == groups}  # fmt: skip
        if again:
            yield f"the same two configs were looked at before: {', '.join(sorted(again))}; each pair may err anew"

    def _protocols(self) -> Iterator[str]:
        """Say where the protocol is not both runs' own, which others there are, and what was decided under those."""
        ours, theirs = self.base_run.own_protocol, self.new_run.own_protocol
        if ours == theirs and ours not in (None, self.fingerprint):
            yield f"judged under {self.fingerprint}, not under the runs' own protocol {ours}"
        elif ours and theirs and ours != theirs:
            whose = [f", that of {run.name}" for run in (self.base_run, self.new_run)
                     if run.own_protocol == self.fingerprint]  # fmt: skip
            yield f"the two have no protocol of their own in common: judged under {self.fingerprint}{''.join(whose)}"
        for other in self.also_under:
            start = _beginning(other, (self.fingerprint, *self.also_under))
            command = f"rlx compare {self.base.name} {self.new.name} --protocol {start}"
            yield f"also evaluated under {other}: {command}{self._peeked(other)}"

    def _peeked(self, fingerprint: str) -> str:
        """Say what a look under another protocol decided."""
        stages = {stage.seeds: stage for stage in self.rules.plan.stages}
        for row in self.known:
            if row.pair == self.ids and row.fingerprint == fingerprint and row.seeds in stages:
                ours, theirs = (tuple(party.scores.values()) for party in (row.baseline, row.candidate))
                made = Look(stages[row.seeds], ours, theirs, row.above, row.below)
                decision = self.rules.decision(made, share=1.0)
                if decision:
                    return f" (`{decision}` there, at {row.seeds} seeds: choosing among protocols is peeking)"
        return ""

    def _curse(self) -> Iterator[str]:
        for run in (self.base_run, self.new_run):
            curse = winners_curse(run, self.fingerprint)
            if curse and curse.claimed > curse.scored:
                claim = f"`best` of {run.name} was selected at {figure(curse.claimed)}"
                seeds = f"{curse.seeds} seed{'' if curse.seeds == 1 else 's'}"
                scored = f"scores {figure(curse.scored)} on {curse.episodes} episodes ({seeds})"
                yield f"{claim} and {scored}: winner's curse"


def _beginning(fingerprint: str, among: Sequence[str]) -> str:
    """Return as much of a fingerprint as tells it from the others."""
    sizes = range(4, len(fingerprint))
    told = (fingerprint[:size] for size in sizes if sum(one.startswith(fingerprint[:size]) for one in among) == 1)
    return next(told, fingerprint)


def _end(one: Training) -> str:
    if one.reason:
        return f"crashed ({one.reason})"
    return "crashed" if one.score is None else f"scored {figure(one.score)}"


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
