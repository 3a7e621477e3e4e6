"""The driver of a lab against every fault of an agent, and killed at random moments: one row each, nothing lost."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlx.errors import Refused
from rlx.loop.lab import driver
from rlx.loop.lab.attempt import attempts
from rlx.loop.lab.drive_rules import DriveOptions
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.morning_report import write_report
from rlx.loop.lab.new_lab import approve_lab
from rlx.loop.lab.session.agent_session import session_numbers
from rlx.loop.lab.session.session_record import driver_events, lab_sessions
from rlx.loop.study import baseline
from rlx.study.ledger import ledger
from tests.faults.lab import copy_project
from tests.loop.lab.lab_project import edit, tiny_lab

AGENT = Path(__file__).with_name("mock_agent.py")
KILLS = int(os.environ.get("RLX_LAB_KILLS", "5"))
RULES = """\
agent:
  command: claude
  session_minutes: 0.2
  stall_minutes: 0.05
  backoff_seconds: 0.1
  disk_mb: 30.0
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Make a lab whose baseline is trained."""
    lab = tiny_lab(tmp_path_factory.mktemp("lab"), is_approved=False)
    text = lab.config_path.read_text()
    start, _, rest = text.partition("agent:")
    kept = rest[rest.index("\nstop:") :]
    lab.config_path.write_text(start + RULES + kept)
    lab = Lab(lab.root)
    approve_lab(lab, by="tester")
    baseline.fill(lab.study, say=lambda _: None)
    return lab


@pytest.fixture
def lab(trained: Lab, tmp_path: Path) -> Iterator[Lab]:
    made = Lab(copy_project(trained.root, tmp_path / "hop"))
    yield made
    assert not processes(str(made.root)), "nothing runs on"


def processes(text: str) -> list[str]:
    """Return the command lines of living processes that contain a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if text in line and path.parent.name != str(os.getpid()):
            found.append(line)
    return found


def drive(lab: Lab, *deeds: str, iterations: int) -> driver.DriveEnd:
    agent = f"{sys.executable} {AGENT} {' '.join(deeds)}"
    options = driver.options_from(lab, DriveOptions(agent, iterations=iterations))
    return driver.start(lab, options, say=print)


def outcomes(lab: Lab) -> list[str]:
    """Return how each session ended, and the code of its row if the change was refused."""
    found = []
    for session in lab_sessions(lab):
        codes = [str(reason["code"]) for reason in session.attempt.reasons]
        found.append(session.record.outcome if codes == ["SESSION"] else ",".join(codes) or session.attempt.status)
    return found


def test_every_fault_of_an_agent_is_one_row_and_the_drive_goes_on(lab: Lab) -> None:
    before = {path: path.read_bytes() for path in lab.root.glob("*.*") if path.is_file()}
    deeds = (
        "nothing", "leave:1", "stray", "limit:2", "outside", "hang", "daemon:marked-4711", "spin", "nothing", "fill",
    )  # fmt: skip
    end = drive(lab, *deeds, iterations=9)
    assert outcomes(lab) == [
        "NO_CHANGE", "crash", "SCOPE", "usage limit", "NO_CHANGE", "stalled", "NO_CHANGE", "timeout",
        "NO_CHANGE", "disk",
    ]  # fmt: skip
    assert (end.stop.code, end.iterations, end.sessions) == ("iterations", 9, 10), "a usage limit is not an iteration"
    assert not processes("marked-4711"), "the daemon is gone"
    assert {path: path.read_bytes() for path in before} == before
    log = (lab.folder / "sessions/0005/output.log").read_text()
    assert "WROTE" not in log, "the kernel refuses writes outside the candidate"
    assert "refused ledger.jsonl" in log
    limited = lab_sessions(lab)[3].record
    following = lab_sessions(lab)[4].record
    assert limited.resets is not None
    assert following.began >= limited.resets, "the driver waits for the reset"
    assert b"TRAINING = {" in (lab.folder / "sessions/0002/change.patch").read_bytes(), "a crash loses nothing"
    assert not list((lab.folder / "sessions").glob("*/worktree"))
    assert sum(path.stat().st_size for path in lab.folder.rglob("*") if path.is_file()) < 2**20
    assert len(attempts(lab)) == 10
    assert ledger.audit(lab.study.ledger.path).is_sound
    assert not lab.study.state().violations


def test_a_session_reads_neither_the_ledger_nor_runs_nor_other_processes_and_its_knots_are_one_row(lab: Lab) -> None:
    end = drive(lab, "spy", "knot", iterations=2)
    assert (end.stop.code, end.sessions) == ("iterations", 2)
    log = (lab.folder / "sessions/0001/output.log").read_text()
    assert "refused ledger.jsonl" in log
    assert "READ" not in log
    assert outcomes(lab) == ["NO_CHANGE", "SIZE"]
    kept = lab.folder / "sessions/0002/idea.txt"
    assert "approved" not in kept.read_text(), "a link does not lead out of the session"
    assert len(attempts(lab)) == 2


def test_an_agent_that_always_fails_is_given_up(lab: Lab) -> None:
    end = drive(lab, *["leave:1"] * 9, iterations=9)
    assert end.stop.code == "failures"
    assert outcomes(lab) == ["crash"] * 5


def test_a_second_driver_is_refused_and_an_unknown_agent_writes_nothing(lab: Lab) -> None:
    rows = lab.study.state().rows
    with driver.held(lab), pytest.raises(Refused, match="another driver"):
        drive(lab, iterations=1)
    with pytest.raises(Exception, match="not installed"):
        driver.start(lab, DriveOptions("no-such-agent"), say=print)
    assert lab.study.state().rows == rows


def test_a_person_must_approve_changed_rules_before_the_driver_goes_on(lab: Lab) -> None:
    drive(lab, "nothing", iterations=1)
    edit(lab, "program.md", "# Mission", "# Another mission")
    with pytest.raises(Refused, match="a person"):
        driver.resume(Lab(lab.root), say=print)


def test_a_person_stops_the_driver_and_resume_goes_on(lab: Lab) -> None:
    agent = f"{sys.executable} {AGENT} spin nothing"
    process = start_process(lab, "run", "--agent", agent, "--iterations", "1")
    log = lab.folder / "sessions/0001/output.log"
    wait_for(lambda: log.is_file() and "spin" in log.read_text())
    assert driver.is_running(lab)
    driver.interrupt(lab)
    assert process.wait(60) == 130
    assert outcomes(lab) == ["interrupted"]
    assert driver_events(lab)[-1]["code"] == "person"
    driver.ask_to_stop(lab, by="tester")  # nobody runs: the next drive does not hear it
    assert driver.resume(lab, say=print).stop.code == "iterations"
    assert outcomes(lab) == ["interrupted", "NO_CHANGE"]


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline, "it never happens"
        time.sleep(0.05)


def assert_page_is_true(lab: Lab) -> None:
    """Every link of the morning page leads to a file, and every score is the mean of the files that it links."""
    page = write_report(lab)
    text = page.read_text()
    links = [part.split(")")[0].partition("#")[0] for part in text.split("](")[1:]]
    assert links
    assert all((page.parent / link).exists() for link in links)
    for score, cell in re.findall(r"\| ([\d.]+) \((\[1\][^|]+)\) \|", text):
        paths = re.findall(r"\]\(([^)]+)\)", cell)
        values = [json.loads((page.parent / path).read_text())["score"] for path in paths]
        assert float(score) == pytest.approx(sum(values) / len(values), rel=1e-3)


def start_process(lab: Lab, *words: str) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "RLX_ROOT"}
    return subprocess.Popen(
        [sys.executable, "-m", "rlx", "lab", *words], cwd=lab.root, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def test_a_driver_that_is_killed_at_random_moments_loses_nothing_and_does_nothing_twice(lab: Lab) -> None:
    deeds = ["nothing", "leave:1", "rate:0.002", "stray", "limit:1", "nothing"]
    agent = f"{sys.executable} {AGENT} {' '.join(deeds)}"
    moments = random.Random(os.environ.get("RLX_LAB_SEED", "23"))
    words = ("run", "--agent", agent, "--iterations", "6")
    for _ in range(KILLS):
        process = start_process(lab, *words)
        time.sleep(moments.uniform(0.5, 12.0))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if driver_events(lab):
            words = ("resume",)
    assert start_process(lab, *words).wait(900) == 0
    sessions = lab_sessions(lab)
    numbers = [session.record.number for session in sessions]
    assert numbers == session_numbers(lab), "every session has one row, and no row is without its session"
    assert numbers == list(range(1, len(numbers) + 1))
    counted = [session for session in sessions if session.record.outcome not in ("usage limit", "interrupted")]
    assert len(counted) == 6
    assert len(attempts(lab)) == len(sessions)
    assert max(Counter(attempt.description for attempt in attempts(lab) if attempt.candidate).values(), default=1) == 1
    assert [attempt for attempt in attempts(lab) if attempt.status == "open"] == []
    assert driver_events(lab)[-1]["what"] == "ended"
    assert ledger.audit(lab.study.ledger.path).is_sound
    assert not lab.study.state().violations
    assert not list((lab.folder / "sessions").glob("*/worktree"))
    assert_page_is_true(lab)
