"""What to do next in a study: one recommended action and the other legal ones, from its state alone; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from rlx.figures import counted
from rlx.study import remedy
from rlx.study.candidate import BASELINE
from rlx.study.contract import POINTS, ApprovalLevel
from rlx.study.lifecycle import CandidateState, Phase

HEAD_SEEDS = 6
"""How many fresh seeds the head is trained on after every move: what the next candidates race against."""
FIRST_SEEDS = 3
PROPOSAL = "candidate.json"
"""The file in the project's folder in which a proposal is written down."""
UNDECIDED: frozenset[CandidateState] = frozenset(
    {"draft", "validated", "launched", "completed", "inconclusive", "debug"}
)


@dataclass(frozen=True)
class Waiting:
    """A job that has not ended."""

    job: str
    run: str
    candidate: str
    phase: Phase
    places: int = 1
    """How many of its seeds train side by side."""


@dataclass(frozen=True)
class Standing:
    """A candidate so far; `plan` is what a launch names, empty where it is to be checked (again).

    `trained` are the seeds that count in its race, `wants` is how many further ones its next look asks for.
    """

    id: str
    state: CandidateState
    plan: str = ""
    trained: int = 0
    wants: int = 0
    is_tried: bool = False
    """Whether a trial of it was launched: it is one of the contract's candidates, another would be one more."""
    is_edited: bool = False
    """Whether it is no longer what was checked."""
    ended: str = ""
    """Why a candidate that is to be mended has nothing to show."""
    refused: str = ""
    """Why its last check was refused: the same check again is no way on."""
    cut_off: Literal["", "lost", "stopped"] = ""
    """How its trial ended without its fault: there is nothing to mend, and the same seeds are trained again."""
    look: str = ""
    """The command that shows why it failed, where nothing of it was changed since: as it is it would fail again."""
    since: str = "was changed since: when it is mended,"
    """What is another than when it failed, where something is."""
    is_mendable: bool = True
    """Whether there is something to change about it: a candidate of config keys alone is given up for another."""
    beside: str = ""
    """What it builds on, where that is not the head that it is raced against."""
    worktree: str = ""
    """Where its code is changed, from the project's folder; empty where it has none."""


@dataclass(frozen=True)
class Position:
    """Where a study stands: everything that what comes next depends on."""

    study: str
    option: str = ""
    """` --study NAME` where the study is not the one in use."""
    missing: tuple[str, ...] = ()
    unconfirmed: bool = False
    """Whether nothing is missing but a word that the points were looked at."""
    settles: str = ""
    """The command that settles the first open point, where that is known."""
    is_rehearsed: bool = False
    rehearsal_failed: str = ""
    """Where the last walk under this contract ended, and why."""
    rehearsal_mends: str = ""
    """The command that comes before another walk, where one is known: what mends it, else what shows why."""
    has_trained: bool = False
    """Whether the study trained more than rehearsals: the path was walked by its own jobs."""
    approval: str = ""
    """Why nothing may be launched; empty where it is approved."""
    level: ApprovalLevel = "asserted"
    """The least approval that the contract takes."""
    has_proposal: bool = False
    """Whether a proposal is written down."""
    waiting: tuple[Waiting, ...] = ()
    pool: int = 0
    pool_trained: int = 0
    """The seeds of the baseline that have a score, and those that have one or may yet get one."""
    pool_wanted: int = 10
    standings: tuple[Standing, ...] = ()
    head: str = BASELINE
    head_fresh: int = 0
    head_measured: int = 0
    plans: Mapping[str, str] = field(default_factory=dict)
    """The plan hash of the head, as it was checked."""
    confirmed: frozenset[str] = frozenset()
    """The sides whose confirmation seeds are trained."""
    claims_left: int = 1
    searches: bool = True
    """Whether what is still found could be claimed."""
    is_reported: bool = False
    """Whether the report tells all that is in the ledger."""
    takes_over: str = ""
    """The command that puts what was confirmed into the repository, until that is done."""
    seeds_left: int = 0
    claim_seeds: int = 20
    candidates_left: int = 0
    deadline: str = ""
    """The time after which no job starts, where it is over."""
    halted: str = ""
    """Why nothing at all goes on before a person says so."""
    stop_rule: str = ""
    """The rule that ended the search; what was found may still be claimed."""
    violations: tuple[str, ...] = ()
    parallel: int = 1

    @property
    def spare_seeds(self) -> int:
        """The seeds that the search may use: the claim's are kept."""
        return self.seeds_left - self.claim_seeds

    @property
    def affords_trial(self) -> bool:
        """Whether a trial, the head's new seeds after it and the claim can all be paid for."""
        return self.candidates_left > 0 and self.spare_seeds >= FIRST_SEEDS + HEAD_SEEDS

    @property
    def is_raceable(self) -> bool:
        """Whether the head has the scores that a race takes: nothing is launched or decided against fewer."""
        return (self.pool if self.head == BASELINE else self.head_measured) >= HEAD_SEEDS

    def may_race(self, one: Standing) -> bool:
        """Whether a trial of a candidate would be let through, and what it shows could still be claimed."""
        return self.searches and (one.is_tried or self.candidates_left > 0) and self.spare_seeds >= FIRST_SEEDS

    @property
    def has_rivals(self) -> bool:
        """Whether anything may still be raced against the head."""
        is_open = any(one.is_tried and one.state in UNDECIDED for one in self.standings)
        return self.searches and (self.candidates_left > 0 or is_open)

    @property
    def may_claim(self) -> bool:
        is_confirmed = any(one.id == self.head and one.state == "confirmed" for one in self.standings)
        return self.head != BASELINE and self.claims_left > 0 and not is_confirmed

    @property
    def claim_is_begun(self) -> bool:
        """Whether a side of the head's claim is trained or trains: that comes before another idea."""
        return self.may_claim and (bool(self.confirmed) or any(one.phase == "confirmation" for one in self.waiting))


@dataclass(frozen=True)
class Step:
    """One thing to do: the verb, the command as it is typed, and why."""

    action: str
    command: str
    why: str
    candidate: str = ""
    phase: Phase = "trial"
    plan: str = ""
    run: str = ""

    def document(self) -> dict[str, str]:
        return {"action": self.action, "command": self.command, "why": self.why}


@dataclass(frozen=True)
class Agenda:
    """What is recommended, and what else may be done."""

    next: Step
    also: tuple[Step, ...] = ()


def agenda(at: Position) -> Agenda:
    """Return what to do now."""
    steps = tuple(_steps(at)) or (_ending(at), *_take_over(at))
    first, *others = [_addressed(step, at.option) for step in (*steps, _report(at))]
    also = dict.fromkeys(one for one in others if one.command != first.command)
    return Agenda(first, tuple(also))


def _addressed(step: Step, option: str) -> Step:
    """Name the study in commands that otherwise mean the one in use."""
    is_general = step.command.split()[1] in ("check", "decide", "launch", "propose", "verdict")
    return replace(step, command=step.command + option) if is_general else step


def _steps(at: Position) -> Iterator[Step]:
    if at.violations:
        yield Step("audit", f"rlx study audit {at.study}", f"the ledger is not sound: {at.violations[0]}")
        return
    if at.missing:
        yield _settle(at)
        return
    if at.approval:
        yield from _before_approval(at)
        return
    yield from (_wait(one) for one in at.waiting)
    if at.halted:
        yield _go_on(at, f"the study has stopped: {at.halted}")
    elif at.deadline:
        yield from (step for step in (*_unfinished(at), *_claim(at)) if step.action == "decide")
    elif at.stop_rule:
        yield from _search_is_over(at)
    elif sum(one.places for one in at.waiting) < at.parallel:
        yield from _work(at)


def _settle(at: Position) -> Step:
    """Return what settles the contract: a word where nothing else is missing, else an edit, which is then taken in."""
    missing, command = "; ".join(at.missing), f"rlx study amend {at.study}"
    if at.unconfirmed:
        confirm = f"{command} -s 'confirmed=[{', '.join(POINTS)}]'"
        return Step("amend", confirm, f"the contract is not settled: {missing}")
    if at.settles:
        return Step("amend", at.settles, f"the contract is not settled: {missing}")
    why = f"the contract is not settled; edit it, or {command} -s KEY=VALUE: {missing}"
    return Step("amend", f"rlx study show {at.study}", why)


def _before_approval(at: Position) -> Iterator[Step]:
    if at.halted:
        yield _go_on(at, f"{at.approval}; and the study has stopped: {at.halted}")
        return
    rehearse = () if at.is_rehearsed else tuple(_rehearse(at))
    why = f"{at.approval}; a person does this, an agent cannot"
    approve = Step("approve", remedy.approve(at.study, at.level), why)
    is_walked = at.has_trained and not at.rehearsal_failed
    yield from (approve, *rehearse) if is_walked else (*rehearse, approve)


def _rehearse(at: Position) -> Iterator[Step]:
    """Yield the walk; where one failed, first what leads to its mend: as it is the next would end like it."""
    command = f"rlx study rehearse {at.study}"
    if not at.rehearsal_failed:
        yield Step("rehearse", command, "the whole path was not walked under this contract")
        return
    failed = f"the rehearsal failed: {at.rehearsal_failed}"
    pin = remedy.pins_head(at.study)
    if at.rehearsal_mends:
        why = f"{failed}; mend that (files that it changes are committed, and pinned by {pin}), then {command}"
        yield Step("rehearse", at.rehearsal_mends, why)
    yield Step("rehearse", command, f"{failed}; when that is mended, the path is walked again")


def _go_on(at: Position, why: str) -> Step:
    command = remedy.approve(at.study, at.level, goes_on=True)
    return Step("approve", command, f"{why}; a person looks, and lets it go on or not")


def _wait(one: Waiting) -> Step:
    return Step("wait", f"rlx wait {one.run} --timeout 300", f"{one.candidate} trains ({one.phase})", run=one.run)


def _work(at: Position) -> Iterator[Step]:
    if at.pool < at.pool_wanted:
        told = f", {at.pool_trained} are trained" if at.pool_trained > at.pool else ""
        why = f"{at.pool} of the {at.pool_wanted} seeds that candidates are measured against have a score{told}"
        yield Step("baseline", f"rlx study baseline {at.study}", why)
        return
    unfinished = tuple(_unfinished(at))
    promotes = tuple(_promote(at))
    yield from promotes
    yield from (step for step in unfinished if step.action != "mend")
    if promotes:
        return
    if at.claim_is_begun:
        yield from _claim(at)
    mends = [step for step in unfinished if step.action == "mend"]
    yield from (step for step in mends if step.candidate == at.standings[-1].id)
    if at.affords_trial and at.searches:
        kept = f"{at.seeds_left} seeds left, {at.claim_seeds} of them kept for the claim"
        yield _propose(at, f"head {at.head}; {kept}")
    if not at.claim_is_begun:
        yield from _claim(at)
    yield from (step for step in mends if step.candidate != at.standings[-1].id)


def _propose(at: Position, why: str) -> Step:
    """Return how an idea is put in; a file that nobody wrote cannot be proposed, so what it holds is shown first."""
    command = f"rlx propose --file {PROPOSAL}"
    if at.has_proposal:
        return Step("propose", command, f"{why}; {PROPOSAL} is there")
    how = f"write {PROPOSAL} by this, then {command}{at.option}; or name the change by options (rlx propose --help)"
    return Step("propose", "rlx schema candidate", f"{why}; {how}")


def _promote(at: Position) -> Iterator[Step]:
    """Yield what gives a head that moved its fresh scores; every race waits for them."""
    if at.head == BASELINE or _is_busy(at, at.head) or not at.has_rivals:
        return
    if 0 < HEAD_SEEDS - at.head_fresh <= at.spare_seeds:
        why = f"the head moved: it needs {HEAD_SEEDS} fresh seeds, else its luck stands against every later candidate"
        yield _launch(at, at.head, "promotion", why)
    elif at.head_measured < at.head_fresh:
        why = "the head's fresh seeds are trained and not measured"
        yield Step("verdict", f"rlx verdict {at.head}", why, at.head)


def _unfinished(at: Position) -> Iterator[Step]:
    """Yield what is to be done about what was begun: trained seeds are decided, the rest only while it may be raced."""
    for one in at.standings:
        if _is_busy(at, one.id):
            continue
        if one.state == "completed" and at.is_raceable:
            yield Step("decide", f"rlx decide {one.id}", f"the seeds of {one.id} are trained", one.id)
        elif one.state == "inconclusive" and at.is_raceable and at.searches and 0 < one.wants <= at.spare_seeds:
            told = "leans the right way" if one.trained >= FIRST_SEEDS else f"has {one.trained} of {FIRST_SEEDS} seeds"
            yield _trial(one, f"{one.id} {told}: {counted(one.wants, 'further seed')}")
        elif at.may_race(one):
            yield from _prepared(at, one)


def _prepared(at: Position, one: Standing) -> Iterator[Step]:
    """Yield what leads a candidate to its trial."""
    check = f"rlx check candidate {one.id}"
    if one.state == "debug":
        yield from _mend(one)
    elif one.state == "validated" and one.plan:
        if at.is_raceable:
            yield _trial(one, f"{one.id} was checked")
    elif one.state in ("draft", "validated") and one.refused:
        why = f"{one.id} was refused ({one.refused}): mend it{_inside(one)} and check it again, or propose another"
        yield Step("mend", check, why, one.id)
    elif one.state == "validated":
        told = f"edited{_inside(one)} since it was checked" if one.is_edited else "checked under another contract"
        yield Step("check", check, f"{one.id} was {told}", one.id)
    elif one.state == "draft":
        told = f"; its code is changed{_inside(one)} first" if one.worktree else ""
        yield Step("check", check, f"{one.id} was proposed or edited{told}", one.id)


def _inside(one: Standing) -> str:
    return f" in {one.worktree}" if one.worktree else ""


def _mend(one: Standing) -> Iterator[Step]:
    """Yield what follows a trial that nothing came of: no more than another try, a look at it, a check when mended."""
    command, told = f"rlx check candidate {one.id}", f" ({one.ended})" if one.ended else ""
    if one.cut_off:
        why = f"{one.id} was {one.cut_off}{told}: check it, and the same seeds are trained again"
        yield Step("check" if one.cut_off == "lost" else "mend", command, why, one.id)
    elif not one.look:
        refused = f"was refused since ({one.refused}): mend it{_inside(one)} and"
        since = refused if one.refused else one.since
        yield Step("mend", command, f"{one.id} failed{told} and {since} check it", one.id)
    elif one.is_mendable:
        why = f"{one.id} failed{told}: see why, mend it{_inside(one)}, then {command}; or propose another"
        yield Step("mend", one.look, why, one.id)


def _is_busy(at: Position, candidate: str) -> bool:
    return any(one.candidate == candidate for one in at.waiting)


def _trial(one: Standing, why: str) -> Step:
    why = f"{why}; {one.beside}" if one.beside else why
    command = f"rlx launch {one.id} --phase trial --plan {one.plan}"
    return Step("launch", command, why, one.id, "trial", one.plan)


def _launch(at: Position, candidate: str, phase: Phase, why: str) -> Step:
    plan = at.plans.get(candidate, "")
    command = f"rlx launch {candidate} --phase {phase}" + (f" --plan {plan}" if plan else "")
    return Step("launch", command, why, candidate, phase, plan)


def _claim(at: Position) -> Iterator[Step]:
    """Yield what makes the head a claim: both sides on fresh seeds, then the decision."""
    if not at.may_claim or any(one.phase != "confirmation" for one in at.waiting):
        return
    sides = [BASELINE, at.head]
    missing = [side for side in sides if side not in at.confirmed and not _is_busy(at, side)]
    if missing and at.seeds_left >= at.claim_seeds // 2 * len(missing):
        why = f"the head {at.head} against the original baseline, both on seeds nobody has seen"
        yield _launch(at, missing[0], "confirmation", why)
    elif not missing and not at.waiting:
        why = "both sides of the claim are trained"
        yield Step("decide", f"rlx decide {at.head}", why, at.head, "confirmation")


def _search_is_over(at: Position) -> Iterator[Step]:
    """Yield what a stop rule leaves: to decide what is trained, the claim, and a person's word where that ends it."""
    yield from (step for step in _unfinished(at) if step.action == "decide")
    yield from _claim(at)
    yield _ending(at)
    yield from _take_over(at)
    if "_in_a_row" in at.stop_rule:
        yield _go_on(at, f"stop rule: {at.stop_rule}")


def _ending(at: Position) -> Step:
    """Return what is left where nothing is to be trained or decided: the report, and when that is written, nothing."""
    if not at.is_reported:
        return replace(_report(at), why=_over(at))
    return Step("done", f"rlx study verify {at.study}", f"{_over(at)}; the report is written")


def _take_over(at: Position) -> Iterator[Step]:
    """Yield what puts a confirmed change into the repository: after the study, whose files it would change."""
    if at.takes_over and at.is_reported:
        yield Step("take over", at.takes_over, "puts what was confirmed into your files; a person does this")


def _over(at: Position) -> str:
    """Say why a study is over."""
    if at.deadline:
        return f"no job starts after {at.deadline}"
    if at.stop_rule:
        return f"stop rule: {at.stop_rule}"
    confirmed = [one.id for one in at.standings if one.state == "confirmed"]
    if at.may_claim:
        return f"too few seeds for the claim of {at.head}: {at.seeds_left} left, {at.claim_seeds} needed for both sides"
    if not at.searches:
        taken = [one.id for one in at.standings if one.state == "reverted"]
        none = f", none stands ({', '.join(taken)} taken back)" if taken else ", none was confirmed"
        told = f" ({', '.join(confirmed)} confirmed)" if confirmed else none
        return f"the contract's claims are made{told}"
    if at.candidates_left <= 0:
        return "the contract's candidates are tried"
    return (
        f"too few seeds: {at.seeds_left} left, {at.claim_seeds} kept for the claim, "
        f"and {FIRST_SEEDS + HEAD_SEEDS} needed for a trial and a new head"
    )


def _report(at: Position) -> Step:
    return Step("report", f"rlx study report {at.study}", "what was tried, what it cost, what is shown")
