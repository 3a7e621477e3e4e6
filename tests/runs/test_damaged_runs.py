"""A damaged run from anywhere: one marked row in a list, one line on its own, and no other run is affected."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.runs import store
from rlx.runs.run import Run
from tests.conftest import Project

MakeRun = Callable[..., Run]


def fifo(name: str) -> Callable[[Path], None]:
    """Replace a file by a pipe that blocks whoever opens it to read."""

    def damage(run: Path) -> None:
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)

    return damage


def endless(name: str) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to("/dev/zero")

    return damage


def huge(name: str) -> Callable[[Path], None]:
    """Make a file of 3 GB that takes no space."""

    def damage(run: Path) -> None:
        (run / name).parent.mkdir(exist_ok=True)
        with (run / name).open("ab") as stream:
            stream.truncate(3 * 2**30)

    return damage


def text(name: str, content: str) -> Callable[[Path], None]:
    return lambda run: (run / name).write_text(content) and None


def metadata(**values: Any) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        document = json.loads((run / "metadata.json").read_text())
        (run / "metadata.json").write_text(json.dumps({**document, **values}))

    return damage


def event(**values: Any) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        with (run / "seed_0/events.jsonl").open("a") as stream:
            stream.write(json.dumps(values) + "\n")

    return damage


def nested(depth: int) -> Any:
    return json.loads("[" * depth + "]" * depth)


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
EVALUATION = "eval/abc/seed_0_latest.json"
DAMAGES: dict[str, Callable[[Path], None]] = {
    "created beyond all time": metadata(created=1e300),
    "created before all time": metadata(created=-1e17),
    "created is text": metadata(created="NaN"),
    "metadata is a list": text("metadata.json", "[1]"),
    "metadata nested": metadata(lineage=nested(300)),
    "metadata with odd types": metadata(env=[1], algorithm={"a": 1}, backend=7, lineage=[2], total_timesteps="x"),
    "metadata is a pipe": fifo("metadata.json"),
    "metadata of 3 GB": huge("metadata.json"),
    "metrics is a pipe": fifo("seed_0/metrics.jsonl"),
    "metrics never ends": endless("seed_0/metrics.jsonl"),
    "metrics of 3 GB": huge("seed_0/metrics.jsonl"),
    "events is a pipe": fifo("seed_0/events.jsonl"),
    "event at no time": event(event="completed", time=1e300, step=1),
    "event of another kind": event(event=["completed"], time=1.0),
    "attempts is a pipe": fifo("seed_0/attempts.jsonl"),
    "heartbeat is a pipe": fifo("seed_0/heartbeat"),
    "labels is a pipe": fifo("labels.json"),
    "labels are a number": text("labels.json", "3"),
    "snapshot is a pipe": fifo("config_snapshot.yaml"),
    "snapshot is a bomb": text("config_snapshot.yaml", BOMB),
    "snapshot nested": text("config_snapshot.yaml", "a: " + "[" * 20_000),
    "snapshot of 3 GB": huge("config_snapshot.yaml"),
    "snapshot is a list": text("config_snapshot.yaml", "- 1\n"),
    "evaluation is a pipe": fifo(EVALUATION),
    "evaluation is a list": text(EVALUATION, "[]"),
    "evaluation of 3 GB": huge(EVALUATION),
    "manifest is a pipe": fifo("seed_0/checkpoints/latest/manifest.json"),
    "supervisor is a pipe": fifo("supervisor.json"),
    "lock is a pipe": fifo(".supervisor.json.lock"),
    "log is a pipe": fifo("logs/seed_0.log"),
    "log of 3 GB": huge("logs/seed_0.log"),
    "seed is a loop": lambda run: (run / "seed_9").symlink_to("seed_9"),
}
ALONE = (
    ("info",), ("diagnose",), ("analyze",), ("summarize",), ("logs",), ("suggest",), ("watch", "--timeout", "1"),
    ("wait", "--timeout", "1"), ("export", "--to", "csv", "--out", "-"), ("compare", "good_001"), ("plot", "good_001"),
    ("tag", "new"), ("note", "a note"), ("untag", "none"), ("stop",), ("reflect",),
)  # fmt: skip


@pytest.fixture
def in_time() -> Iterator[None]:
    """Fail instead of waiting for a pipe or an endless file."""

    def fail(*_: object) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def make(make_run: MakeRun, project: Project) -> MakeRun:
    def made(name: str) -> Run:
        run = make_run(name, root=project.root, seeds={0: [10.0, 20.0], 1: [12.0, 22.0]})
        (run.path / "logs").mkdir()
        (run.path / "logs/seed_0.log").write_text("some line\n")
        for seed in (0, 1):
            rows = [{"seed": 200_000 + index, "return": 20.0 + index, "length": 20} for index in range(3)]
            document = {"purpose": "report", "seed": seed, "step": 200, "mean": 21.0, "std": 1.0, "n": 3, "time": 1.0}
            document["protocol"] = {"env": {"id": "CartPole-v1"}, "episodes": 3, "files": {}, "packages": {}}
            store.save_evaluation(run.path, "abc", f"seed_{seed}_latest", {**document, "episodes": rows})
        return run

    return made


def call(project: Project, *words: str) -> Any:
    """Run a command in this process."""
    done = project._call(words)
    assert done.returncode != 1, f"{words}: {done.stderr}"
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.usefixtures("in_time")
def test_damaged_runs_are_marked_rows_and_the_others_are_listed(make: MakeRun, project: Project) -> None:
    good = make("good")
    for number, damage in enumerate(DAMAGES.values()):
        damage(make(f"bad{number}").path)
    rows = json.loads(call(project, "ls", "--all", "--json").stdout)["runs"]
    assert len(rows) == len(DAMAGES) + 1
    assert next(row for row in rows if row["name"] == good.name)["return"]["mean"] == 21.0
    for words in (("ls", "--all"), ("ls", "--group"), ("ls", "--sort", "return"), ("summarize", "--all")):
        done = call(project, *words)
        assert done.returncode == 0, done.stderr
        assert "good_001" in done.stdout
    assert call(project, "watch", "--all", "--timeout", "1").returncode == 0
    assert call(project, "diagnose", "good_001").returncode == 0


@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_run_is_one_line_on_its_own_and_can_be_deleted(make: MakeRun, project: Project, kind: str) -> None:
    make("good")
    bad = make("bad")
    DAMAGES[kind](bad.path)
    for verb, *words in ALONE:
        done = call(project, verb, bad.name, *words)
        if verb == "plot":
            assert done.returncode == 0, done.stderr
        assert done.returncode == 0 or len(done.stderr.strip().splitlines()) < 8, done.stderr
    assert call(project, "rm", bad.name, "--yes").returncode == 0
    assert not bad.path.exists()


@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("name", ["index.db", "index.db-journal"])
def test_an_index_that_is_a_pipe_is_not_opened(make: MakeRun, project: Project, name: str) -> None:
    make("good")
    call(project, "ls")
    (project.root / ".rlx" / name).unlink(missing_ok=True)
    os.mkfifo(project.root / ".rlx" / name)
    assert "good_001" in call(project, "ls").stdout


def test_logs_show_the_end_and_follow_no_link_out_of_the_run(make: MakeRun, project: Project) -> None:
    secret = project.write("secret.log", "a secret\n")
    run = make("linked")
    (run.path / "logs/other.log").symlink_to(secret)
    huge("logs/big.log")(run.path)
    with (run.path / "logs/big.log").open("ab") as stream:
        stream.write(b"\nthe end\n")
    done = call(project, "logs", "linked_001")
    assert "some line" in done.stdout
    assert "the end" in done.stdout
    assert "secret" not in done.stdout
    whole = make("whole")
    os.rename(whole.path / "logs", project.root / "outside")
    (project.root / "outside/seed_0.log").write_text("a secret\n")
    (whole.path / "logs").symlink_to(project.root / "outside")
    assert "secret" not in call(project, "logs", "whole_001").stdout
    assert "secret" not in call(project, "logs", "whole_001", "-f").stdout


def test_a_document_has_a_size_that_is_checked_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    with path.open("wb") as stream:
        stream.truncate(files.LARGEST_DOCUMENT + 1)
    with pytest.raises(files.FileDamaged, match="larger than"):
        files.read_json(path)


@pytest.mark.parametrize("name", ["x;touch canary", "$(touch canary)", "a b", "-rf", "`id`", "x\ny"])
def test_a_run_whose_name_is_shell_syntax_is_never_part_of_a_printed_command(
    make: MakeRun, project: Project, name: str
) -> None:
    make("good")
    os.rename(make("odd").path, project.root / "runs" / name)
    listed = call(project, "ls", "--all", "--json")
    assert "good_001" in listed.stdout
    for verb in ("info", "diagnose", "summarize", "plot", "eval", "resume", "suggest"):
        done = call(project, verb, "--", name)
        assert done.returncode in (2, 4), done.stdout + done.stderr
        assert shlex.quote(name) in done.stderr or "\n" in name
    everything = call(project, "summarize", "--all").stdout
    assert name not in everything
