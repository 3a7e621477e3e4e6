"""`kill -9` at random moments, and a suspended machine: no seed is lost, reported twice or left without its report.

Each round starts the next command that a person would type, and kills one of the processes that work in the project:
the command itself, a supervisor, a guard or a worker. RLX_KILLS is the number of planned kills over all commands
(default 6; a command that has ended before its kill spares one), RLX_KILL_SEED the first random seed, RLX_KILL_LOG a
file that gets one line per kill. RLX_SUSPEND_SECONDS really stops the processes of a training for that long.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlx.loop.study.verify import audit
from rlx.loop.sweep.sweep_log import SweepLog
from rlx.runs import interim_looks
from rlx.runs.run import HEARTBEAT, Run
from rlx.runs.status import STALE_SECONDS
from tests.conftest import Project, wait_until
from tests.faults.lab import Lab
from tests.loop.conftest import FAST, FROZEN, write_config
from tests.loop.conftest import hills as hills

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
KILLS = int(os.environ.get("RLX_KILLS", "6"))
FIRST_SEED = int(os.environ.get("RLX_KILL_SEED", "1"))
SUSPEND_SECONDS = float(os.environ.get("RLX_SUSPEND_SECONDS", "0"))
KILL_LOG = Path(os.environ.get("RLX_KILL_LOG", os.devnull))
KILLS_PER_ROUND = 3
"""So many kills strike one project; then its commands go on undisturbed."""
Words = tuple[str, ...]


def rounds(share: float) -> list[tuple[int, int]]:
    """Return the random seed and the number of kills of each round of a command that gets this share of all kills."""
    left = max(1, round(KILLS * share))
    planned: list[tuple[int, int]] = []
    while left:
        kills = min(left, KILLS_PER_ROUND)
        planned.append((FIRST_SEED + len(planned), kills))
        left -= kills
    return planned


@dataclass
class Killer:
    """Types commands in a project and kills one of its processes, chosen at random, at a random moment."""

    root: Path
    start: Callable[..., subprocess.Popen[str]]
    dice: random.Random

    def strike(self, words: Words, *, longest: float) -> None:
        """Start a command, kill one process while it runs, and wait until the command has ended."""
        child = self.start(*words)
        until = time.monotonic() + self.dice.uniform(0.2, longest)
        while time.monotonic() < until and (child.poll() is None or processes(self.root)):
            time.sleep(0.02)
        found = sorted(processes(self.root).items())
        if found:
            pid, line = self.dice.choice(found)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                with KILL_LOG.open("a") as log:
                    log.write(f"{words[0]}: {pid} {line}\n")
        _, errors = child.communicate(timeout=240)
        assert "Traceback" not in errors, errors
        if self.dice.random() < 0.5:  # otherwise the next command meets what the killed one left behind
            self.wait()

    def wait(self) -> None:
        wait_until(lambda: not processes(self.root), seconds=240)


def processes(root: Path) -> dict[int, str]:
    """Return the processes that work in a project, with their command lines."""
    return dict(_processes(str(root)))


def _processes(root: str) -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if line and (root in line or str((folder / "cwd").readlink()).startswith(root)):
                yield int(folder.name), line


def go_on(project: Project, next_words: Callable[[], Words | None]) -> None:
    """Type the next command, undisturbed, until there is none."""
    for _ in range(6):
        words = next_words()
        if words is None:
            return
        project.rlx(*words)
    raise AssertionError(f"it goes on for ever: {next_words()}")


def assert_reported_once(run: Run, seeds: list[int]) -> None:
    """Assert that each seed of a run completed once, with one report, and that no step was logged twice."""
    assert [seed.number for seed in run.seeds] == seeds, run.name
    assert run.status == "completed", [seed.status for seed in run.seeds]
    names = [row["name"] for row in run.evaluations() if row["purpose"] == "report"]
    reports = Counter(name for name in names if name.endswith("_latest"))
    assert reports == {f"seed_{number}_latest": 1 for number in seeds}, run.name
    for seed in run.seeds:
        kinds = Counter(event["event"] for event in seed.events)
        assert (kinds["completed"], kinds["reported"]) == (1, 1), (run.name, seed.number, seed.events)
        steps = [row["step"] for row in seed.rows]
        assert steps == sorted(set(steps)), (run.name, seed.number)


def disturb(project: Project, next_words: Callable[[], Words | None], number: int, kills: int, longest: float) -> None:
    """Strike the commands of a project so many times, then let them go on to their end."""
    killer = Killer(project.root, project.start, random.Random(number))
    for _ in range(kills):
        words = next_words()
        if words is None:
            break
        killer.strike(words, longest=longest)
    killer.wait()
    go_on(project, next_words)


def small(project: Project) -> str:
    return project.config(algo={"total_timesteps": 512}, checkpoint={"save_every": 128}, eval={"every": 256})


@pytest.mark.parametrize(("number", "kills"), rounds(0.4))
def test_kills_over_train_and_resume_lose_no_seed(project: Project, number: int, kills: int) -> None:
    config = small(project)

    def next_words() -> Words | None:
        runs = project.runs()
        if not runs:
            return ("train", config, "--seeds", "3")
        return None if project.run(runs[0]).status == "completed" else ("resume", runs[0])

    disturb(project, next_words, number, kills, longest=1)
    assert project.runs() == ["tiny_001"]
    assert_reported_once(project.run("tiny_001"), [0, 1, 2])


@pytest.mark.parametrize(("number", "kills"), rounds(0.2))
def test_kills_over_settle_lose_no_seed_and_no_look(hills: Project, number: int, kills: int) -> None:
    words = ("settle", write_config(hills, "base", stride=FROZEN), write_config(hills, "new", stride=FAST), "--json")
    killer = Killer(hills.root, hills.start, random.Random(number))
    for _ in range(kills):
        killer.strike(words, longest=2)
    killer.wait()
    told = json.loads(hills.rlx(*words).stdout)
    assert (told["verdict"], told["seeds"]) == ("better", {"baseline": 10, "candidate": 10})
    assert hills.runs() == ["base_001", "new_001"]
    for name in hills.runs():
        assert_reported_once(hills.run(name), list(range(10)))
    looks = [row.seeds for row in interim_looks.read(hills.root)]
    assert looks == sorted(set(looks))


@pytest.mark.parametrize(("number", "kills"), rounds(0.2))
def test_kills_over_a_sweep_lose_no_trial(project: Project, number: int, kills: int) -> None:
    config = small(project)
    log = SweepLog(project.root / ".rlx" / "sweeps" / "k")
    first = ("sweep", config, "-p", "algo.gamma=0.9,0.95,0.97,0.99", "--trials", "4", "--name", "k", "--race", "2",
             "--confirm", "0")  # fmt: skip

    def next_words() -> Words | None:
        if not log.ledger.path.exists() or not log.ledger.events():
            return first
        return None if log.state().is_over else ("sweep", "resume", "k")

    disturb(project, next_words, number, kills, longest=2)
    state = log.state()
    assert len(state.trials) == 4
    runs = [project.run(name) for name in project.runs()]
    assert sorted(run.metadata["lineage"]["trial"] for run in runs) == list(range(4))
    for run in runs:
        assert_reported_once(run, [seed.number for seed in run.seeds])
    scored = Counter((event["trial"], event["seed"]) for event in log.ledger.events() if event.kind == "scored")
    trained = {(run.metadata["lineage"]["trial"], seed.number) for run in runs for seed in run.seeds}
    assert scored == dict.fromkeys(trained, 1)


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab.found(tmp_path_factory.mktemp("kills") / "founded")


@pytest.mark.parametrize(("number", "kills"), rounds(0.2))
def test_kills_over_a_study_leave_every_job_and_seed_with_one_end(
    founded: Lab, tmp_path: Path, number: int, kills: int
) -> None:
    lab = Lab(founded.copied(tmp_path / "state"))

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            lab.argv(*words), cwd=lab.root, env=lab.environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    for _ in range((number + 1) % 4):  # proposed, checked, launched: so that rounds strike every stage
        lab.types(*lab.next())
    killer = Killer(lab.root, start, random.Random(number))
    for _ in range(kills):
        if not lab.study.state().decisions:
            killer.strike(tuple(lab.next()), longest=2)
    killer.wait()
    lab.next()  # it closes the jobs of dead supervisors
    # A candidate could kill its own worker to get another try. So a killed worker is a failed seed of the candidate.
    if all(job.outcome != "failed" for job in lab.study.state().jobs_of("c001", "trial")):
        lab.goes_on()
    killer.wait()
    state = lab.study.state()
    assert state.open_jobs == ()
    ends = [event for event in lab.study.ledger.events() if event.kind == "ended"]
    assert len({event["job"] for event in ends}) == len(ends)
    for event in ends:
        planned = {str(seed) for seed in state.jobs[event["job"]].seeds}
        assert event["outcome"] not in ("completed", "failed") or set(event["seeds"]) == planned, event
    assert audit(lab.study)["is_sound"]


def test_a_suspended_machine_loses_nothing(project: Project) -> None:
    config = project.config(algo={"total_timesteps": 8192}, checkpoint={"save_every": 512}, eval={"every": 8192})
    project.rlx("train", config, "--seeds", "2", "--detach")
    wait_until(lambda: all(seed.rows for seed in project.run("tiny_001").seeds))
    stopped = processes(project.root)
    assert stopped
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(SUSPEND_SECONDS)
        long_ago = time.time() - 5 * STALE_SECONDS
        for seed in project.run("tiny_001").seeds:
            os.utime(seed.folder / HEARTBEAT, (long_ago, long_ago))
        assert project.run("tiny_001").status == "running"
        for words in (("resume", "tiny_001"), ("rm", "tiny_001", "--yes")):
            assert project.rlx(*words, code=None).returncode not in (0, 1), words
        assert project.run("tiny_001").status == "running"
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    project.rlx("wait", "tiny_001", "--timeout", "120")
    run = project.run("tiny_001")
    assert_reported_once(run, [0, 1])
    assert [sum(event["event"] == "started" for event in seed.events) for seed in run.seeds] == [1, 1]
