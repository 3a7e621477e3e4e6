from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rlx.command import rlx
from rlx.compare.race_thresholds import RULE
from rlx.hosts.cli.parser import parser_of
from rlx.study.budget import Amount
from rlx.study.contract.contract import POINTS, Contract
from rlx.study.moves import Move, refusals
from rlx.study.refusal import CODES, LAUNCH_CODES, OTHER_CODES, Refusal
from rlx.study.situation import CandidateFacts, Facts, MachineFacts
from tests.study.story import CONTRACT, NOW, Story

BUDGET = {"seeds": 30, "hours": 1.0, "per_seed_minutes": 5.0}
DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "study": "pilot",
    "task": "balance",
    "confirmed": list(POINTS),
    "metric": {"name": "success_rate"},
    "scope": {"surfaces": ["hyperparameters"]},
    "budget": BUDGET,
    "hardware": {"cores": 2, "gpus": 0.5, "disk_gb": 5.0, "parallel": 2},
    "baseline": {"commit": "abc", "command": "rlx train"},
    "evaluation": {},
    "automation": {},
}


def contract(**sections: Any) -> Contract:
    return Contract.model_validate({**DOCUMENT, **sections})


@dataclass
class Launch:
    """A trial that may start; tests break one thing at a time."""

    story: Story
    contract: Contract
    move: Move
    facts: Facts

    @property
    def reasons(self) -> tuple[Refusal, ...]:
        return refusals(self.story.state, self.contract, self.facts, self.move)

    @property
    def codes(self) -> list[str]:
        return [reason.code for reason in self.reasons]

    def ask(self, **fields: Any) -> None:
        facts = self.facts.of(self.move.candidate)
        self.move = replace(self.move, **fields)
        self.facts = replace(self.facts, candidates={self.move.candidate: facts})

    def find(self, **fields: Any) -> None:
        """Set facts: of the study, of the machine, or of the candidate."""
        machine = {key: fields.pop(key) for key in tuple(fields) if hasattr(MachineFacts, key)}
        candidate = {key: fields.pop(key) for key in tuple(fields) if hasattr(CandidateFacts, key)}
        known = {name: replace(facts, **candidate) for name, facts in self.facts.candidates.items()}
        known[self.move.candidate] = replace(self.facts.of(self.move.candidate), **candidate)
        self.facts = replace(self.facts, **fields, machine=replace(self.facts.machine, **machine), candidates=known)


def launch(name: str = "c001", phase: str = "trial", *, state: str = "validated", **options: Any) -> Launch:
    story = Story(**options)
    if options.get("pool", True):
        story.job("b2", "baseline", "baseline", (3, 4, 5), scores=(1.0, 2.0, 3.0))
    story.bring("c001", state)
    seeds = (1500, 1501) if phase == "confirmation" else (500, 501)
    plan = None if name in ("baseline", "rehearsal") else f"{name}-plan"
    reserve = Amount(0, 300.0) if phase == "smoke" else Amount(2, 600.0)
    move = Move("launch", name, phase, seeds, reserve, plan)  # type: ignore[arg-type]
    machine = MachineFacts(core_places=4, gpu_places=4, free_disk_gb=5.0)
    facts = Facts(NOW + 1000, CONTRACT, machine=machine, candidates={name: CandidateFacts(plan=plan)})
    return Launch(story, contract(), move, facts)


def open_point(message: str, point: str = "scope") -> Refusal:
    return Refusal("BLOCKED", message, point=point)


def budget(**fields: Any) -> Callable[[Launch], None]:
    return lambda one: setattr(one, "contract", contract(budget={**BUDGET, **fields}))


def automation(**fields: Any) -> Callable[[Launch], None]:
    return lambda one: setattr(one, "contract", contract(automation=fields))


def ask(**fields: Any) -> Callable[[Launch], None]:
    return lambda one: one.ask(**fields)


def find(**fields: Any) -> Callable[[Launch], None]:
    return lambda one: one.find(**fields)


def tell(kind: str, /, **fields: Any) -> Callable[[Launch], None]:
    return lambda one: one.story.tell(kind, **fields)


def approve(**fields: Any) -> Callable[[Launch], None]:
    return lambda one: one.story.approve(**fields)


def two_jobs_run(one: Launch) -> None:
    one.story.intend("p", "baseline", "baseline", (20,))
    one.story.intend("q", "baseline", "baseline", (21,))


def many_seeds_train(count: int) -> Callable[[Launch], None]:
    """One job, and as many of its seeds side by side."""
    return lambda one: one.story.intend("p", "baseline", "baseline", (20, 21, 22, 23), slots=[None] * count)


def drift(one: Launch) -> None:
    """One byte of the contract: its hash, and with it the plan, are others."""
    one.find(contract_sha256=CONTRACT[:-1] + "d", plan="c001-plan-under-d")


def test_a_launch_that_breaks_no_rule_may_start() -> None:
    assert launch().reasons == ()


@pytest.mark.parametrize(
    ("breakage", "codes"),
    [
        (tell("moved", candidate="c001", before="draft", after="confirmed"), ["LEDGER"]),
        (tell("stopped", rule="spent > 0.9"), ["STOPPED"]),
        (tell("escalated", why="three restarts without an event"), ["ESCALATED"]),
        (automation(stop=["candidates >= 0"]), ["STOPPED"]),
        (find(contract_problems=(open_point("tuning scope: nothing is in scope"),)), ["BLOCKED"]),
        (find(contract_problems=(open_point("scope: a"), open_point("scope: b"))), ["BLOCKED", "BLOCKED"]),
        (find(contract_sha256="d" * 64), ["APPROVAL_VOID"]),
        (drift, ["APPROVAL_VOID", "PLAN"]),
        (find(now=NOW + 1e6), ["APPROVAL_EXPIRED"]),
        (find(now=NOW + 1e6 - 0.001), []),
        (find(now=math.nan), ["APPROVAL_EXPIRED"]),
        (automation(approval="signed"), ["APPROVAL_LEVEL"]),
        (automation(approval="other user"), ["APPROVAL_LEVEL"]),
        (find(approval_problems=("the signature is not ada's",)), ["APPROVAL"]),
        (ask(is_unattended=True), ["UNATTENDED"]),
        (find(task_problems=("train.py:3 changed", "eval.py:9 changed")), ["TASK_STALE", "TASK_STALE"]),
        (ask(candidate="c002"), ["CANDIDATE"]),
        (find(problems=(Refusal("CANDIDATE", "no hypothesis"),)), ["CANDIDATE"]),
        (find(breaches=("eval.py is not in scope", "reward.py::Env.step is not in scope")), ["SCOPE", "SCOPE"]),
        (ask(plan=None), ["PLAN"]),
        (ask(plan="other"), ["PLAN", "PLAN"]),
        (find(plan="other"), ["PLAN"]),
        (find(plan=None), ["PLAN"]),
        (ask(seeds=(500, 1000)), ["SEEDS_RANGE"]),
        (ask(seeds=(500, -1)), ["SEEDS_RANGE"]),
        (ask(seeds=(500, 500)), ["SEEDS_RANGE"]),
        (ask(seeds=(500, True)), ["SEEDS_RANGE"]),
        (ask(seeds=()), ["SEEDS_RANGE"]),
        (ask(reserve=Amount(1, 600.0)), ["RESERVE"]),
        (ask(reserve=Amount(2, 0.0)), ["RESERVE"]),
        (ask(reserve=Amount(2, -1.0)), ["RESERVE"]),
        (ask(reserve=Amount(-100, 60.0)), ["RESERVE"]),
        (ask(reserve=Amount(2, math.nan)), ["RESERVE", "BUDGET_HOURS"]),
        (ask(reserve=Amount(2, math.inf)), ["RESERVE", "BUDGET_HOURS"]),
        (budget(seeds=8), []),
        (budget(seeds=7), ["BUDGET_SEEDS"]),
        (ask(reserve=Amount(2, 3600.0 - 180.0)), []),
        (ask(reserve=Amount(2, 3600.0 - 179.99)), ["BUDGET_HOURS"]),
        (budget(until="2020-01-01"), ["DEADLINE"]),
        (budget(until="whenever"), ["DEADLINE"]),
        (budget(until="2099-01-01T07:00"), []),
        (two_jobs_run, ["PARALLEL"]),
        (find(core_places=0), ["CORES"]),
        (find(gpu_places=0), ["GPUS"]),
        (find(memory_places=0), ["MEMORY"]),
        (many_seeds_train(4), ["PARALLEL", "CORES", "GPUS"]),
        (find(free_disk_gb=4.9), ["DISK"]),
        (find(free_disk_gb=math.nan), ["DISK"]),
        (find(sandbox_problems=("no Landlock",)), ["SANDBOX"]),
    ],
)  # fmt: skip
def test_one_thing_that_is_wrong_is_what_is_reported(breakage: Callable[[Launch], None], codes: list[str]) -> None:
    one = launch()
    breakage(one)

    assert one.codes == codes


@pytest.mark.parametrize("point", POINTS)
def test_a_point_that_is_not_confirmed_or_missing_blocks_and_is_named(point: str) -> None:
    one = launch()
    one.contract = contract(confirmed=[name for name in POINTS if name != point])
    (reason,) = one.reasons
    assert (reason.code, reason.message) == ("BLOCKED", f"{POINTS[point]}: not confirmed")  # type: ignore[index]

    one.find(contract_problems=(open_point("not confirmed", point),))
    assert one.codes == ["BLOCKED"]
    if point != "task":
        one.find(contract_problems=())
        one.contract = contract(**{point: None})
        assert set(one.codes) == {"BLOCKED"}


@pytest.mark.parametrize(
    ("phase", "state", "codes"),
    [
        ("trial", "validated", ["STOPPED"]),
        ("promotion", "advanced", ["STOPPED"]),
        ("confirmation", "advanced", []),
        ("smoke", "validated", []),
    ],
)
def test_a_stop_rule_ends_the_search_at_the_door_and_leaves_the_claim(phase: str, state: str, codes: list[str]) -> None:
    one = launch(phase=phase, state=state)
    automation(stop=["candidates >= 9", "spent > 0.05"])(one)
    assert one.codes == codes
    assert all("spent > 0.05" in reason.message for reason in one.reasons)


def test_an_empty_contract_names_all_eight_points() -> None:
    one = launch()
    one.contract = Contract(schema=1, study="pilot", task="balance")  # type: ignore[call-arg]

    assert one.codes == ["BLOCKED"] * 8


def test_without_an_approval_nothing_but_a_rehearsal_starts() -> None:
    for name, phase in (("baseline", "baseline"), ("baseline", "confirmation")):
        one = launch(name, phase, state="draft", approve=False, pool=False)
        assert "NOT_APPROVED" in one.codes
    one = launch(approve=False, pool=False)
    assert one.codes == ["NOT_APPROVED", "PHASE"]
    one.ask(phase="smoke")
    assert one.codes == ["NOT_APPROVED"]
    for name in ("rehearsal", "baseline"):
        assert launch(name, "smoke", approve=False, pool=False).codes == []


def test_a_rehearsal_is_short_and_keeps_every_other_rule() -> None:
    one = launch("rehearsal", "smoke", approve=False, pool=False)
    one.ask(reserve=Amount(0, 300.01))
    assert one.codes == ["NOT_APPROVED", "REHEARSAL"]
    one.ask(reserve=Amount(0, math.nan))
    assert one.codes == ["NOT_APPROVED", "REHEARSAL", "RESERVE", "BUDGET_HOURS"]
    one.ask(reserve=Amount(0, 60.0))
    one.find(
        breaches=("eval.py",),
        sandbox_problems=("none",),
        contract_problems=(open_point("hardware target: no", "hardware"),),
    )
    assert one.codes == ["BLOCKED", "SCOPE", "SANDBOX"]


def test_rehearsals_together_are_short_too_until_the_contract_is_approved() -> None:
    one = launch("rehearsal", "smoke", approve=False, pool=False)
    for number in range(12):
        reserve = {"seeds": 0, "seconds": 300.0}
        one.story.intend(f"r{number}", "rehearsal", "smoke", (0,), reserve=reserve)
        one.story.end(f"r{number}", (0,), spent={"seeds": 0, "seconds": 295.0})
    one.contract = contract(budget={**BUDGET, "hours": 10.0})
    one.ask(reserve=Amount(0, 60.0))
    assert one.codes == []
    one.ask(reserve=Amount(0, 61.0))
    assert one.codes == ["NOT_APPROVED", "REHEARSAL"]
    one.story.approve()
    assert one.codes == []


def test_an_approval_of_an_earlier_contract_is_void_even_if_its_bytes_come_back() -> None:
    one = launch()
    one.story.tell("amended", contract="d" * 64)

    assert one.codes == ["APPROVAL_VOID", "PLAN"]


@pytest.mark.parametrize(("level", "wanted", "is_enough"), [
    ("asserted", "asserted", True),
    ("signed", "asserted", True),
    ("signed", "other user", False),
    ("other user", "signed", True),
    ("other user", "other user", True),
])  # fmt: skip
def test_an_approval_counts_from_the_level_that_the_contract_asks_for(level: str, wanted: str, is_enough: bool) -> None:
    one = launch()
    one.story.approve(level=level)
    automation(approval=wanted)(one)

    assert ("APPROVAL_LEVEL" not in one.codes) == is_enough


@pytest.mark.parametrize("expires", [math.inf, "Infinity", 1e300])
def test_an_approval_that_never_runs_out_is_read(expires: object) -> None:
    one = launch()
    one.story.approve(expires=expires)
    assert one.codes == []
    one.find(now=math.nan)
    assert one.codes == ["APPROVAL_EXPIRED"]


def test_unattended_jobs_and_a_missing_sandbox_are_what_the_contract_says_they_are() -> None:
    one = launch()
    one.ask(is_unattended=True)
    one.find(sandbox_problems=("no Landlock",))
    automation(unattended=True, sandbox="if available")(one)

    assert one.codes == []


@pytest.mark.parametrize(
    ("state", "phase", "codes"),
    [
        ("draft", "trial", ["STATE"]),
        ("launched", "trial", ["PARALLEL"]),
        ("completed", "trial", ["STATE"]),
        ("inconclusive", "trial", []),
        ("rejected", "trial", ["STATE"]),
        ("debug", "trial", ["STATE"]),
        ("validated", "smoke", []),
        ("draft", "smoke", ["STATE"]),
        ("validated", "promotion", ["STATE", "PHASE"]),
        ("advanced", "promotion", []),
        ("confirmed", "promotion", []),
        ("reverted", "promotion", ["STATE", "PHASE"]),
        ("advanced", "confirmation", []),
        ("confirmed", "confirmation", ["STATE", "PHASE"]),
        ("completed", "confirmation", ["STATE", "PHASE"]),
        ("validated", "baseline", ["PHASE"]),
        ("advanced", "trial", ["STATE", "PHASE"]),
    ],
)
def test_every_phase_has_its_states(state: str, phase: str, codes: list[str]) -> None:
    one = launch(phase=phase, state=state)
    one.contract = contract(hardware={"cores": 2, "gpus": 0.5, "parallel": 1})
    if state == "draft":
        one.story.tell("proposed", candidate="c001", kind="code", sha256="x")

    assert one.codes == codes


@pytest.mark.parametrize(
    ("name", "phase", "state", "codes"),
    [
        ("baseline", "smoke", "draft", []),
        ("baseline", "baseline", "draft", []),
        ("baseline", "trial", "draft", ["PHASE"]),
        ("baseline", "promotion", "draft", ["PHASE"]),
        ("baseline", "confirmation", "draft", ["PHASE"]),
        ("baseline", "confirmation", "advanced", []),
        ("rehearsal", "smoke", "draft", []),
        ("rehearsal", "baseline", "draft", ["PHASE"]),
        ("rehearsal", "confirmation", "advanced", ["PHASE"]),
    ],
)
def test_candidates_that_change_nothing_have_their_own_phases(
    name: str, phase: str, state: str, codes: list[str]
) -> None:
    assert launch(name, phase, state=state).codes == codes


def test_a_null_candidate_needs_no_plan_but_a_wrong_one_is_refused() -> None:
    one = launch("baseline", "baseline")
    one.ask(plan="other")
    assert one.codes == ["PLAN"]
    one.find(plan="other")
    assert one.codes == []


def test_a_trial_waits_for_scores_that_the_head_did_not_win_with() -> None:
    one = launch(pool=False)
    for seed in range(RULE.head):
        assert one.codes == ["PHASE"]
        one.story.job(f"b{seed}", "baseline", "baseline", (seed,), scores=(1.0,))
    assert one.codes == []
    one.story.bring("c002", "advanced")
    assert one.codes == ["PHASE"]
    assert "c002 has 0 fresh scores" in one.reasons[0].message
    one.story.job("p", "c002", "promotion", tuple(range(7, 13)), scores=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    assert one.codes == []


def test_a_race_needs_six_scores_of_the_head_even_if_the_claim_has_two_seeds() -> None:
    one = launch(pool=False)
    one.contract = contract(metric={"name": "success_rate", "seeds": 2})
    one.story.job("b", "baseline", "baseline", (0, 1), scores=(1.0, 2.0))
    assert one.codes == ["PHASE"]
    one.story.job("b2", "baseline", "baseline", (2, 3, 4, 5), scores=(1.0, 2.0, 3.0, 4.0))
    assert one.codes == []


def test_seeds_that_were_used_are_not_used_again() -> None:
    one = launch(state="inconclusive")
    one.ask(seeds=(2, 3), reserve=Amount(2, 60.0))
    assert one.codes == ["SEEDS_USED"]
    assert "c001 has used the seeds 2" in one.reasons[0].message
    one.ask(phase="smoke", reserve=Amount(0, 60.0))
    assert one.codes == []


def test_claims_are_counted_by_candidate_and_a_confirmation_that_was_lost_may_go_on() -> None:
    one = launch(phase="confirmation", state="advanced")
    one.story.job("lost", "c001", "confirmation", (1000,), outcome="lost")
    assert one.codes == []
    one.story.bring("c002", "advanced")
    one.ask(candidate="c002", plan="c002-plan")
    one.find(plan="c002-plan")
    assert one.codes == ["CLAIMS"]
    one.contract = contract(metric={"name": "success_rate", "claims": 2})
    assert one.codes == []
    one.contract = contract()
    one.ask(candidate="baseline", plan=None)
    assert one.codes == ["CLAIMS"]


def test_a_claim_is_made_once() -> None:
    one = launch(phase="confirmation", state="advanced")
    one.story.claim("c001")
    one.story.decide("c001", "inconclusive")

    assert one.codes == ["PHASE"]
    assert one.reasons[0].message == "the claim of c001 was made: its episodes are drawn"


def test_a_confirmation_that_never_started_is_no_claim() -> None:
    one = launch(phase="confirmation", state="advanced")
    one.story.intend("never", "c001", "confirmation", (1000,))
    one.story.end("never", outcome="abandoned")
    one.story.bring("c002", "advanced")
    one.ask(candidate="c002", plan="c002-plan")
    one.find(plan="c002-plan")

    assert one.codes == []


def test_a_confirmation_that_was_started_is_a_claim_whatever_is_left_of_it() -> None:
    one = launch(phase="confirmation", state="advanced")
    one.story.job("gone", "c001", "confirmation", (1000,), outcome="lost", spent={"seeds": 0, "seconds": 0.0})
    one.story.bring("c002", "advanced")
    one.ask(candidate="c002", plan="c002-plan")
    one.find(plan="c002-plan")

    assert one.codes == ["CLAIMS"]


def test_what_jobs_reserve_counts_until_they_end_and_what_they_spent_then() -> None:
    one = launch()
    one.contract = contract(budget={**BUDGET, "seeds": 12})
    one.story.intend("p", "baseline", "baseline", (20, 21, 22, 23, 24))
    assert one.codes == ["BUDGET_SEEDS"]
    one.story.end("p", (20, 21, 22, 23))
    assert one.codes == []


def test_candidates_are_counted_when_they_are_launched() -> None:
    one = launch()
    one.contract = contract(budget={**BUDGET, "candidates": 2})
    one.story.bring("c002", "rejected")
    one.story.bring("c003", "validated")
    assert one.codes == []
    one.story.bring("c004", "rejected")
    assert one.codes == ["BUDGET_CANDIDATES"]
    fix = one.reasons[0].fix
    assert fix == rlx("study", "amend", "pilot", "-s", "budget.candidates=N", is_complete=False, needs_person=True)
    one.ask(phase="smoke", reserve=Amount(0, 60.0))
    assert one.codes == []


def test_a_candidate_checked_under_another_contract_is_checked_again() -> None:
    one = launch()
    one.story.tell("amended", contract="d" * 64)
    one.story.approve("d" * 64)
    one.find(contract_sha256="d" * 64, plan="plan-under-d")
    one.ask(plan="plan-under-d")

    assert one.codes == ["PLAN"]
    assert one.reasons[0].message == "the candidate was checked under another contract"


@pytest.mark.parametrize(("content", "codes"), [("same", []), ("other", ["PLAN"]), (None, ["PLAN"])])
def test_the_head_goes_on_under_an_amended_contract_while_it_is_the_same(content: str | None, codes: list[str]) -> None:
    one = launch(phase="confirmation", state="draft")
    one.story.tell("moved", candidate="c001", before="draft", after="validated", plan="c001-plan", content="same")
    one.story.job("t", "c001", "trial", (0,), scores=(1.0,))
    one.story.decide("c001", "advanced")
    one.story.tell("amended", contract="d" * 64)
    one.story.approve("d" * 64)
    one.find(contract_sha256="d" * 64, plan="plan-under-d", content=content)
    one.ask(plan="plan-under-d")

    assert one.codes == codes


PROBLEM_CODES = ("SIZE", "CANDIDATE", "DUPLICATE", "NO_CHANGE", "SEED_ONLY", "RECORD_MISSING", "KIND", "KEY", "VALUE")


def break_everything(one: Launch) -> None:
    one.story.bring("c002", "advanced")
    for breakage in (
        two_jobs_run,
        tell("invented"),
        approve(contract="d" * 64, expires=NOW),
        tell("stopped", rule="r"),
        tell("escalated", why="w"),
        ask(plan="other", is_unattended=True, seeds=(2, 3, 3, 1000), reserve=Amount(2, 1e9)),
        find(contract_problems=(open_point("eval.py is in scope", "metric"),), task_problems=("stale",),
             plan="yet another", problems=tuple(Refusal(code, code) for code in PROBLEM_CODES),
             breaches=("eval.py", "link -> /etc"),
             approval_problems=("bad signature",), sandbox_problems=("none",), core_places=0, gpu_places=0,
             memory_places=0, free_disk_gb=0.0),
    ):  # fmt: skip
        breakage(one)
    one.contract = contract(
        confirmed=[point for point in POINTS if point != "hardware"],
        budget={"seeds": 1, "hours": 0.001, "per_seed_minutes": 1.0, "candidates": 1, "until": "2020-01-01"},
        automation={"approval": "signed"},
        hardware={"cores": 2, "gpus": 1.0, "parallel": 1},
    )


def test_every_reason_is_listed_in_the_order_of_the_codes() -> None:
    one = launch(state="completed")
    break_everything(one)
    codes = one.codes

    assert set(LAUNCH_CODES) - set(codes) == {"NOT_APPROVED", "REHEARSAL", "CLAIMS"}
    assert codes == sorted(codes, key=list(CODES).index)
    assert codes.count("SCOPE") == codes.count("BLOCKED") == 2


def test_every_reason_has_a_known_code_one_line_and_a_hint() -> None:
    one = launch("c009", "confirmation")
    one.find(breaches=("a",), problems=(Refusal("KEY", "b"),), now=NOW + 1e9, free_disk_gb=0.0, sandbox_problems=("c",))

    assert len(one.reasons) >= 6
    for reason in one.reasons:
        assert reason.code in CODES
        assert reason.message
        assert "\n" not in reason.message
        assert reason.fix is not None
        assert reason.document() == {"code": reason.code, "says": reason.message, "hint": reason.hint}


def test_a_baseline_that_cannot_run_is_mended_in_another_study() -> None:
    one = launch("baseline", "baseline")
    one.find(problems=(Refusal("CANDIDATE", "its config is refused"),))
    assert [(reason.code, reason.hint) for reason in one.reasons] == [("CANDIDATE", "rlx study new NAME")]


def test_every_fix_is_a_command_that_parses() -> None:
    one = launch(state="completed")
    break_everything(one)
    fixes = [reason.fix for reason in one.reasons if reason.fix]
    for words in {fix.argv[1:] for fix in fixes if fix.argv[0] == "rlx" and "--help" not in fix.argv}:
        parser_of(words[0]).parse_args(list(words[1:]))
    assert len(fixes) == len(one.reasons)


def test_the_documentation_lists_the_codes_as_they_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "concepts" / "ledger.md").read_text()

    launch = re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \| [^|]+ \|$", page, re.MULTILINE)
    other = re.findall(r"^\| `([A-Z_]+)` \| [^|]+ \| ([^|]+) \| [^|]+ \|$", page, re.MULTILINE)
    assert launch == list(LAUNCH_CODES.items())
    assert other == list(OTHER_CODES.items())


def test_a_clock_that_is_set_back_revives_no_approval() -> None:
    one = launch()
    one.story.approve(expires=NOW + 100)
    one.find(now=NOW + 50)
    assert one.codes == []
    event = one.story.tell("rehearsed", contract=CONTRACT, ok=True, checks=[])
    one.story.events[-1] = replace(event, time=NOW + 200)
    assert one.codes == ["APPROVAL_EXPIRED"]
