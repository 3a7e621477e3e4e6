"""A kill, a full or a broken disk at each write, fsync, rename and spawn from a candidate's proposal to its decision.

A tiny study is made once and copied for every fault, which strikes one process: a command that was typed, or the job's
supervisor. Then somebody who starts cold types what `rlx next` says, to the end. CI strikes a spread of the faults;
RLX_SWEEP=full strikes all of them. What is not covered: power loss (the page cache survives a kill).
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlx.launch import launch
from rlx.launch.study_jobs import launch_candidate
from rlx.launch.study_jobs.reconcile import reconcile
from rlx.loop.study.verify import audit, verify
from rlx.runs.run import Run, Seed
from rlx.study.ledger.ledger import Event
from rlx.study.ledger.state import State
from tests.conftest import wait_until
from tests.faults.lab import PROPOSAL, Lab, copy_project
from tests.faults.sweep import BROKEN, CALLS, FULL, KILL, SPAWNS, Outcome, can_trace, injected, traced

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_trace(), reason="NO CRASH SWEEP OF A STUDY: it needs strace and ptrace"),
]
STAGES = ("propose", "check", "launch", "job", "decide")
SPREAD = 1
"""How many faults of a stage CI strikes, beside those at its last row of the ledger and its last spawn."""
NO_PROCESS = "error=EAGAIN"


@dataclass(frozen=True)
class Fault:
    """What happens to the N-th call of its kind; `target` is the file it is about."""

    call: str
    number: int
    kind: str
    target: str = ""

    def __str__(self) -> str:
        return f"{self.call}:{self.kind}:when={self.number}"


@dataclass(frozen=True)
class Points:
    """The study before each stage of its path, and what the stage does undisturbed; all are used at the same place."""

    base: Path
    traces: dict[str, str]

    @property
    def lab(self) -> Lab:
        return Lab(self.base / "state")

    def keep(self, stage: str) -> None:
        self.lab.copied(self.base / stage)

    def fresh(self, stage: str) -> None:
        shutil.rmtree(self.lab.root)
        copy_project(self.base / stage, self.lab.root)

    def act(self, stage: str, *faults: Fault) -> Outcome:
        """Do a stage of the path, under faults."""
        lab = self.lab
        argv, environment = lab.supervisor() if stage == "job" else (lab.argv(*_words(lab, stage)), lab.environment)
        return traced(
            argv, *map(str, faults), trace=self.base / "trace.txt", cwd=lab.root, env=environment,
            stdin=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip

    def pass_by(self, stage: str) -> None:
        """Keep the study as it is before a stage, and do the stage."""
        self.keep(stage)
        undisturbed = self.act(stage)
        assert undisturbed.acknowledged, undisturbed.talk
        self.traces[stage] = undisturbed.trace


def _words(lab: Lab, stage: str) -> list[str]:
    words = lab.next()
    assert words[0] == stage
    return words


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Points:
    base = tmp_path_factory.mktemp("walk")
    Lab.found(base / "state")
    made = Points(base, {})
    made.pass_by("propose")
    made.pass_by("check")
    made.lab.copied(base / "launch")
    made.lab.intends()
    made.pass_by("job")
    made.fresh("launch")
    shutil.rmtree(base / "launch")
    made.pass_by("launch")
    while (words := made.lab.next())[0] == "wait":  # a job may be over before anybody asks
        made.lab.types(*words)
    made.pass_by("decide")
    return made


@pytest.fixture(autouse=True)
def _no_other_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is launched from this process find the lab's `envs`, not another project's that was imported before."""
    for name in [one for one in sys.modules if one.split(".")[0] == "envs"]:
        monkeypatch.delitem(sys.modules, name)


def faults_of(trace: str, root: Path) -> list[Fault]:
    """Return the faults to strike an undisturbed process with, in the order of its calls.

    A call about a file of the project fails in every way; spawns and what is done in temporary folders in one way each.
    """
    seen: Counter[str] = Counter()
    found: list[Fault] = []
    for line in trace.splitlines():
        call = line.split("(", 1)[0]
        if call in (*CALLS, *SPAWNS):
            seen[call] += 1
            kinds = (KILL, NO_PROCESS) if call in SPAWNS else (KILL, FULL, BROKEN)
            is_own = call not in SPAWNS and str(root) in line and "rlx-git-" not in line
            wanted = kinds if is_own else (kinds[seen[call] % len(kinds)],)
            found += [Fault(call, seen[call], kind, line[:200]) for kind in wanted]
    return found


def chosen(faults: Sequence[Fault]) -> list[Fault]:
    """Return the faults to strike: all, or those around the last row of the ledger, the last spawn and a few others."""
    if os.environ.get("RLX_SWEEP") == "full":
        return list(faults)
    kills = [one for one in faults if one.kind == KILL]
    rows = [one for one in kills if "ledger.jsonl" in one.target]
    telling = [*rows[-1:], *[one for one in kills if one.call in SPAWNS][-1:]]
    others = [one for one in faults if one not in telling and "rlx-" not in one.target]
    stride = max(1, len(others) // SPREAD)
    return [*telling, *others[stride // 2 :: stride][:SPREAD]]


def has_struck(fault: Fault, outcome: Outcome) -> bool:
    return outcome.was_killed if fault.kind == KILL else f"{fault.call}(" in injected(outcome.trace)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("stage", STAGES)
def test_a_study_survives_a_fault_anywhere_and_goes_on_to_its_decision(points: Points, stage: str) -> None:
    faults = faults_of(points.traces[stage], points.lab.root)
    assert {"write", "fsync"} <= {one.call for one in faults}
    broken = []
    for fault in chosen(faults):
        points.fresh(stage)
        before = points.lab.study.ledger.events()  # a copy is approved in its own folder
        outcome = points.act(stage, fault)
        try:
            assert has_struck(fault, outcome), "it never happened"
            survives(points.lab, before, stage, outcome)
        except AssertionError as error:
            broken.append(f"{fault} at {fault.target}\n{error}")
    assert not broken, "\n\n".join(broken)


def survives(lab: Lab, before: Sequence[Event], stage: str, outcome: Outcome) -> None:
    """Assert that nothing acknowledged is lost, that the next commands go on to the end, and that nothing ran twice."""
    assert stage == "job" or "Traceback" not in outcome.talk, outcome.talk
    found = audit(lab.study)
    assert found["is_sound"], found["problems"]
    events = lab.study.ledger.events()
    assert events[: len(before)] == before
    if outcome.acknowledged and stage != "job":
        assert_acknowledged(lab.study.state(), stage, json.loads(outcome.acknowledged[0]))
    typed = lab.goes_on()
    state = lab.study.state()
    assert list(state.candidates) == ["c001"], typed
    assert state.candidates["c001"].decisions
    assert state.open_jobs == ()
    assert b"at / 100" in (lab.study.patch("c001") or b"")
    assert_trained_once(lab, state)
    assert audit(lab.study)["is_sound"]
    if stage == "decide":
        assert verify(lab.study)["problems"] == []
    wait_until(lambda: not lab.processes(), seconds=30)


def assert_acknowledged(state: State, stage: str, told: dict[str, object]) -> None:
    standing = state.candidates["c001"]
    if stage == "check":
        assert standing.plan == told["plan"]
    if stage == "launch":
        assert state.jobs[str(told["job"])].run == told["run"]
    if stage == "decide":
        assert standing.decisions[-1]["decision"] == told["decision"]


def assert_trained_once(lab: Lab, state: State) -> None:
    """Every seed began at most once and under a job of the ledger; a job is launched anew only where one was lost."""
    began = [(run.name, seed.number) for run, seed in _begun(lab)]
    assert len(began) == len(set(began))
    jobs = {str(job.run): job for job in state.jobs.values()}
    assert {run for run, _ in began} <= jobs.keys()
    assert all(jobs[run].outcome != "abandoned" for run, _ in began)
    trials = [job for job in state.jobs_of("c001", "trial") if job.outcome != "abandoned"]
    assert [job.outcome for job in trials][-1:] == ["completed"]
    assert all(job.outcome != "completed" for job in trials[:-1])


def _begun(lab: Lab) -> Iterator[tuple[Run, Seed]]:
    for run in lab.runs():
        for seed in run.seeds:
            for event in seed.events:
                if event["event"] == "started":
                    yield run, seed


def test_a_run_whose_launch_died_before_its_intent_is_found(points: Points) -> None:
    rows = [one for one in faults_of(points.traces["launch"], points.lab.root) if "ledger.jsonl" in one.target]
    points.fresh("launch")
    outcome = points.act("launch", next(one for one in rows if (one.call, one.kind) == ("write", KILL)))
    assert outcome.was_killed
    (found,) = [note for note in audit(points.lab.study)["notes"] if "intent" in note]
    assert found.startswith("walk_c001_001: its launch died before the intent was written")


def test_a_machine_that_cannot_start_a_worker_is_not_the_candidates_failure(points: Points) -> None:
    faults = faults_of(points.traces["job"], points.lab.root)
    full = next(one for one in faults if one.kind == FULL and one.call == "mkdir" and one.target.count(".scratch"))
    points.fresh("job")
    before = points.lab.study.ledger.events()
    outcome = points.act("job", full)
    assert has_struck(full, outcome)
    (job,) = points.lab.study.state().jobs_of("c001", "trial")
    assert (job.outcome, job.counted_seeds) == ("lost", ())
    assert "No space left on device" in job.says
    survives(points.lab, before, "job", outcome)


def test_a_patch_that_does_not_apply_proposes_nothing(points: Points) -> None:
    points.fresh("propose")
    patch = points.lab.root / "guide.patch"
    good = patch.read_text()
    patch.write_text(good.replace("1.0 if there", "2.0 if there"))
    refused = points.lab.types(*PROPOSAL, code=4)
    assert [one["code"] for one in refused["reasons"]] == ["PATCH"]
    assert points.lab.study.state().refusals == 1
    assert points.lab.study.candidates() == []
    patch.write_text(good)
    assert points.lab.types(*PROPOSAL)["candidate"] == "c001"


def test_a_candidate_that_was_launched_keeps_the_patch_that_ran(points: Points) -> None:
    points.fresh("decide")
    before = points.lab.study.patch("c001")
    pay = points.lab.study.worktree("c001") / "envs" / "pay.py"
    pay.write_text(pay.read_text().replace("100", "50"))
    points.lab.types("check", "candidate", "c001")
    assert points.lab.study.patch("c001") == before


def test_a_launcher_that_lives_and_starts_nothing_is_not_waited_for(
    points: Points, monkeypatch: pytest.MonkeyPatch
) -> None:
    points.fresh("launch")
    study = points.lab.study
    monkeypatch.setattr(launch_candidate, "_start", lambda *_: None)
    order = launch_candidate.LaunchOrder("c001", "trial", plan=study.state().candidates["c001"].plan, count=1)
    assert launch_candidate.launch(study, order).run
    assert reconcile(study) == []
    monkeypatch.setattr("rlx.launch.study_jobs.reconcile.START_SECONDS", 0.0)
    assert reconcile(study) == ["j002 (c001, trial): abandoned: its launcher died before it started"]


def test_a_process_that_cannot_be_started_leaves_no_open_job(points: Points, monkeypatch: pytest.MonkeyPatch) -> None:
    points.fresh("launch")
    study = points.lab.study

    def refuses(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr(launch, "start", refuses)
    order = launch_candidate.LaunchOrder("c001", "trial", plan=study.state().candidates["c001"].plan, count=1)
    with pytest.raises(BlockingIOError):
        launch_candidate.launch(study, order)
    assert study.state().open_jobs == ()
