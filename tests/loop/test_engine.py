"""A whole study whose jobs a scheduler carries: its own commands, real processes; killed, stopped, asked twice."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlx.runs.run import Run
from rlx.study.task.task import Launcher
from tests.conftest import wait_until
from tests.faults.lab import Lab, copy_project
from tests.launch.executors import cluster

pytestmark = pytest.mark.slow
SCHEDULER = """#!/bin/sh
# submit NAME LOG SCRIPT | poll ID | cancel ID | release: a scheduler of a few lines, whose queue can be held
cd "$(dirname "$0")"
begin() { nohup sh "$3" >>"$2" 2>&1 & echo $! > "pid-$1"; }
case $1 in
  submit)
    [ -e dies-before ] && rm dies-before && kill -9 $PPID && exit 1
    shift; echo "$1" >> submitted
    if [ -e held ]; then printf '%s\\n' "$@" > "waiting-$1"; else begin "$@"; fi
    [ -e dies-after ] && rm dies-after && kill -9 $PPID
    echo "queued $1" ;;
  poll) if [ -e "waiting-$2" ]; then echo PENDING; else kill -0 "$(cat "pid-$2")" 2>/dev/null && echo RUNNING; fi ;;
  cancel) rm -f "waiting-$2"; [ -e "pid-$2" ] && kill "$(cat "pid-$2")"; true ;;
  release) rm held; for one in waiting-*; do { read -r name; read -r log; read -r script; } < "$one"; rm "$one"
    begin "$name" "$log" "$script"; done ;;
esac
"""
SLOW = """\
    import time
    reward.calls = getattr(reward, "calls", 0) + 1
    time.sleep(0.2 if reward.calls < 40 else 0)
"""


class Engine:
    """A lab whose jobs the scheduler carries, and the scheduler's own files."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.queue = base / "scheduler"
        self.lab = Lab(base / "state")

    @property
    def submitted(self) -> list[str]:
        """The names of the jobs that were handed over, without their marks."""
        return [name.rpartition("-")[0] for name in (self.queue / "submitted").read_text().split()]

    @property
    def launches(self) -> list[str]:
        """The words that launch the candidate."""
        words = self.lab.next()
        assert words[0] == "launch"
        return words

    def fresh(self) -> Engine:
        """Put lab and scheduler back to where the pool was filled."""
        for name in ("state", "scheduler"):
            shutil.rmtree(self.base / name)
            copy_project(self.base / f"{name} kept", self.base / name)
        return self

    def check(self, *, body: str = "") -> None:
        """Propose a candidate, let its reward do something more, and check it."""
        for _ in range(2):
            words = self.lab.next()
            if words[0] == "check":
                path = self.lab.study.worktree("c001") / "envs" / "pay.py"
                path.write_text(path.read_text().replace("    return", f"{body}    return", 1))
            self.lab.types(*words)

    def kills(self, words: list[str]) -> None:
        """Type a command whose process the scheduler kills."""
        done = subprocess.run(self.lab.argv(*words), cwd=self.lab.root, capture_output=True, stdin=subprocess.DEVNULL)
        assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.fixture(scope="module")
def _founded(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    base = tmp_path_factory.mktemp("engine")
    (base / "scheduler").mkdir()
    script = base / "scheduler" / "scheduler.sh"
    script.write_text(SCHEDULER)
    ask = ("sh", str(script))
    launcher = Launcher(
        executor="custom",
        submit=(*ask, "submit", "{name}", "{log}", "{script}"),
        poll=(*ask, "poll", "{id}"),
        cancel=(*ask, "cancel", "{id}"),
    )
    lab = Lab.found(base / "state", launcher)
    made = Engine(base)
    assert made.submitted == ["line-walk-j001"]
    wait_until(lambda: not lab.processes())
    for name in ("state", "scheduler"):
        shutil.copytree(base / name, base / f"{name} kept", symlinks=True)
    return made


@pytest.fixture
def engine(_founded: Engine) -> Iterator[Engine]:
    yield _founded.fresh()
    wait_until(lambda: not _founded.lab.processes(), seconds=60)


def test_a_study_is_carried_from_its_baseline_to_its_decision(engine: Engine) -> None:
    typed = engine.lab.goes_on()
    assert [words.split()[0] for words in typed] == ["propose", "check", "launch", "wait", "decide"]
    assert engine.submitted == ["line-walk-j001", "line-walk-j002"]
    assert [job.outcome for job in engine.lab.study.state().jobs.values()] == ["completed", "completed"]
    wait_until(lambda: len(list((engine.lab.root / ".rlx" / "jobs").glob("*/exit.json"))) == 2)


def test_a_launch_that_is_typed_again_hands_nothing_over_again(engine: Engine) -> None:
    (engine.queue / "held").touch()
    engine.check()
    words = engine.launches
    first, again = engine.lab.types(*words), engine.lab.types(*words)
    assert (again["run"], again["is_known"]) == (first["run"], True)
    assert engine.submitted == ["line-walk-j001", "line-walk-j002"]
    assert engine.lab.next()[:2] == ["wait", first["run"]]
    assert engine.lab.types("wait", first["run"], "--timeout", "0.1", code=None)["state"] == "prepared"


def test_a_job_that_waits_in_the_queue_is_cancelled_and_can_be_launched_anew(engine: Engine) -> None:
    (engine.queue / "held").touch()
    engine.check()
    run = engine.lab.types(*engine.launches)["run"]
    engine.lab.types("stop", run)
    (engine.queue / "held").unlink()
    assert engine.lab.types("wait", run, code=5)["state"] == "abandoned"
    engine.lab.goes_on()
    assert [job.outcome for job in engine.lab.study.state().jobs_of("c001")] == ["abandoned", "completed"]


def test_a_job_that_runs_is_stopped_and_its_end_is_in_the_ledger(engine: Engine) -> None:
    engine.check(body=SLOW)
    run = engine.lab.types(*engine.launches)["run"]
    wait_until(lambda: Run(engine.lab.root / "runs" / run).seeds[0].events)
    engine.lab.types("stop", run)
    assert engine.lab.types("wait", run, code=5)["state"] == "cancelled"
    assert engine.lab.study.state().candidates["c001"].state == "debug"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_launcher_that_is_killed_while_it_hands_over_neither_loses_nor_doubles_the_job(
    engine: Engine, moment: str
) -> None:
    engine.check()
    (engine.queue / f"dies-{moment}").touch()
    engine.kills(engine.launches)
    engine.lab.goes_on()
    outcomes = [job.outcome for job in engine.lab.study.state().jobs_of("c001")]
    assert outcomes in (["completed"], ["abandoned", "completed"])
    began = [seed.events for run in engine.lab.runs() for seed in run.seeds if "c001" in run.name]
    assert sum(event["event"] == "started" for events in began for event in events) == 1
    assert len(set(engine.submitted)) == len(engine.submitted)


def test_a_carrier_that_is_killed_leaves_a_lost_job_and_no_process(engine: Engine) -> None:
    engine.check(body=SLOW)
    run = engine.lab.types(*engine.launches)["run"]
    wait_until(lambda: Run(engine.lab.root / "runs" / run).seeds[0].events)
    (carried,) = engine.queue.glob("pid-line-walk-j002-*")
    pid = int(carried.read_text())
    subprocess.run(["kill", "-9", str(pid)], check=True)
    wait_until(lambda: not engine.lab.processes())
    told = engine.lab.types("wait", run, code=5)
    assert told["state"] in ("cancelled", "lost")
    assert engine.lab.study.state().open_jobs == ()


def test_a_loop_stays_with_a_job_that_waits_in_the_queue(engine: Engine) -> None:
    (engine.queue / "held").touch()
    engine.check()
    loop = subprocess.Popen(
        engine.lab.argv("study", "loop"), cwd=engine.lab.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=engine.lab.environment,
    )  # fmt: skip
    wait_until(lambda: len(engine.submitted) == 2)
    subprocess.run(["sh", str(engine.queue / "scheduler.sh"), "release"], check=True, capture_output=True)
    told, talk = loop.communicate(timeout=240)
    assert loop.returncode == 0, talk.decode()
    assert json.loads(told)["did"][0].startswith("rlx launch c001"), told
    assert engine.lab.study.state().decisions
    assert {job.outcome for job in engine.lab.study.state().jobs.values()} == {"completed"}


@pytest.mark.skipif(bool(cluster.ABSENT), reason=cluster.REASON)
@pytest.mark.parametrize(("executor", "jobs"), [("custom", 2), ("slurm", 7)])
def test_slurm_carries_a_study_from_its_baseline_to_its_decision(
    executor: str, jobs: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path_factory.mktemp("slurm")
    with cluster.running(base) as conf:
        monkeypatch.setenv("SLURM_CONF", str(conf))
        launcher = Launcher(executor="slurm")
        if executor == "custom":
            launcher = Launcher(executor="custom", **cluster.templates(conf))
        lab = Lab.found(base / "state", launcher)
        typed = lab.goes_on()
        # the executor `slurm` makes a job of each seed: six of the baseline and one of the candidate
        wait_until(lambda: len(list((lab.root / ".rlx" / "jobs").glob("*/exit.json"))) == jobs)
    assert [words.split()[0] for words in typed] == ["propose", "check", "launch", "wait", "decide"]
    assert [job.outcome for job in lab.study.state().jobs.values()] == ["completed", "completed"]
