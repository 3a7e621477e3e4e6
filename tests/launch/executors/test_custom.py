"""Schedulers by their own commands: a script with nohup, tmux, and Slurm where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from rlx.errors import JobFailed, UsageError
from rlx.launch.executors.custom import CustomExecutor, engine_name, expand, final_state
from rlx.launch.executors.executor import Job
from rlx.testing import ExecutorContract
from tests.conftest import wait_until
from tests.launch.executors import cluster

NOHUP = """#!/bin/sh
# submit NAME LOG COMMAND... | poll ID | cancel ID: a scheduler of a few lines
case $1 in
  submit) shift; log=$2; shift 2; nohup "$@" >>"$log" 2>&1 & echo "Submitted job $!" ;;
  poll) kill -0 "$2" 2>/dev/null && echo RUNNING ;;
  cancel) kill "$2" ;;
esac
"""


@pytest.mark.slow
class TestNohup(ExecutorContract):
    executor = "custom"

    def settings(self, tmp_path: Path) -> Mapping[str, Sequence[str]]:
        script = tmp_path / "scheduler"
        script.write_text(NOHUP)
        return {
            "submit": ["sh", str(script), "submit", "{name}", "{log}", "{command}"],
            "poll": ["sh", str(script), "poll", "{id}"],
            "cancel": ["sh", str(script), "cancel", "{id}"],
        }


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
class TestTmux(ExecutorContract):
    executor = "custom"

    @pytest.fixture(autouse=True)
    def _own_server(self, tmp_path: Path) -> Iterator[None]:
        yield
        subprocess.run(["tmux", "-S", str(tmp_path / "s"), "kill-server"], capture_output=True)

    def settings(self, tmp_path: Path) -> Mapping[str, Sequence[str]]:
        own = ["tmux", "-S", str(tmp_path / "s")]
        return {name: [*own, *argv[1:]] for name, argv in documented("tmux").items()}

    def test_a_study_s_job_is_known_by_its_name_until_it_is_cancelled(self, tmp_path: Path) -> None:
        tmux = CustomExecutor(tmp_path / "jobs", **self.settings(tmp_path))
        for id in ("reach_far.more.j001", "reach_far.more.j0012"):
            tmux.submit(Job(id, ("sleep", "60"), tmp_path))
            (tmp_path / "jobs" / id / "process.json").unlink(missing_ok=True)
            assert tmux.poll(id).state in ("queued", "running")
        tmux.cancel("reach_far.more.j001")
        wait_until(lambda: tmux.poll("reach_far.more.j001").state == "cancelled")
        assert tmux.poll("reach_far.more.j0012").state in ("queued", "running")


def documented(program: str) -> dict[str, list[str]]:
    """Return the templates of the page about executors that begin with a program."""
    page = (Path(__file__).parents[3] / "docs/concepts/executors.md").read_text()
    for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL):
        found = {name: yaml.safe_load(argv) for name, argv in re.findall(r"(submit|poll|cancel): (\[.*\])", block)}
        if found["submit"][0] == program:
            return found
    raise AssertionError(program)


def test_a_name_is_one_that_every_engine_takes_and_no_other_job_has() -> None:
    names = [
        engine_name(Path(folder, "jobs", id))
        for folder in ("/one", "/two")
        for id in ("Reach_far.more.j001", "reach-far.more.j001", "r" * 64 + "." + "s" * 64 + ".j001")
    ]
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in names), names
    assert len(set(names)) == 6
    assert names[0].startswith("reach-far-more-j001-")


def test_a_command_is_words_alone_and_one_quoted_text_inside_another() -> None:
    command = ["python", "-c", "print('a b')"]
    assert expand(["run", "{command}", "--n={cores}"], {"cores": "2"}, command) == ["run", *command, "--n=2"]
    assert expand(["--wrap={command}"], {}, command) == ["--wrap=python -c 'print('\"'\"'a b'\"'\"')'"]
    assert expand(["{unknown}"], {}, command) == ["{unknown}"]


@pytest.mark.parametrize(
    ("printed", "state"),
    [
        ("JobId=7 JobState=RUNNING Reason=None Deadline=N/A Requeue=0", None),
        ("JobId=7\n   JobState=OUT_OF_MEMORY Reason=OutOfMemory", "OUT_OF_MEMORY"),
        ("PENDING\n", None),
        ("TIMEOUT\n", "TIMEOUT"),
        ("phase: Failed", "FAILED"),
        ("COMPLETING", None),
        ("", None),
    ],
)
def test_a_final_state_is_read_from_what_a_scheduler_prints(printed: str, state: str | None) -> None:
    assert final_state(printed) == state


def test_a_scheduler_that_refuses_is_quoted_and_the_job_can_be_submitted_again(tmp_path: Path) -> None:
    refusing = CustomExecutor(tmp_path / "jobs", submit=["sh", "-c", "echo 'invalid partition' >&2; exit 1"])
    with pytest.raises(JobFailed, match="submit of j001 failed: invalid partition"):
        refusing.submit(Job("j001", ("true",), tmp_path))
    assert refusing.recover() == ("j001",)
    assert refusing.poll("j001").state == "prepared"
    CustomExecutor(tmp_path / "jobs", submit=["{command}"]).submit(Job("j001", ("true",), tmp_path))
    assert refusing.poll("j001").state == "completed"


def test_a_scheduler_that_cannot_be_reached_says_nothing_about_a_job(tmp_path: Path) -> None:
    poll = ["sh", "-c", "echo 'Unable to contact slurm controller' >&2; exit 1"]
    waiting = CustomExecutor(tmp_path / "jobs", submit=["echo", "7"], poll=poll)
    waiting.submit(Job("j001", ("true",), tmp_path))
    assert waiting.poll("j001").state == "queued"
    forgot = CustomExecutor(tmp_path / "jobs", submit=["echo", "7"], poll=["sh", "-c", "exit 1"])
    assert forgot.poll("j001").state == "lost"
    says = CustomExecutor(tmp_path / "jobs", submit=["echo", "7"], poll=["echo", "JobState=OUT_OF_MEMORY"])
    assert says.poll("j001").says == "the scheduler says OUT_OF_MEMORY"


def test_a_job_that_never_began_is_cancelled(tmp_path: Path) -> None:
    queue = CustomExecutor(tmp_path / "jobs", submit=["echo", "7"], poll=["sh", "-c", "exit 1"], cancel=["true"])
    queue.submit(Job("j001", ("true",), tmp_path))
    queue.cancel("j001")
    assert queue.poll("j001").state == "cancelled"


def test_without_a_submit_there_is_no_executor(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no `submit`"):
        CustomExecutor(tmp_path)
    with pytest.raises(UsageError, match="no program `sbatch-of-nowhere`"):
        CustomExecutor(tmp_path, submit=["sbatch-of-nowhere"]).submit(Job("j001", ("true",), tmp_path))


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with cluster.running(tmp_path_factory.mktemp("slurm")) as conf:
        yield conf


@pytest.mark.slow
@pytest.mark.skipif(bool(cluster.ABSENT), reason=cluster.REASON)
class TestSlurm(ExecutorContract):
    executor = "custom"
    patience_seconds = 120.0
    conf = Path()

    @pytest.fixture(autouse=True)
    def _cluster(self, slurm: Path) -> None:
        type(self).conf = slurm

    def settings(self, tmp_path: Path) -> Mapping[str, Sequence[str]]:
        return cluster.templates(self.conf)
