"""How seeds are written, and what a run in progress looks like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import parse_seeds
from rlx.hosts.cli.progress import Count, Display, Line, RunProgress, follow
from rlx.runs import store
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run
from tests.conftest import Project


@pytest.mark.parametrize(("text", "seeds"), [("5", 5), ("0,7", (0, 7)), ("0,", (0,)), ("3, 4", (3, 4))])
def test_seeds_are_a_count_or_a_list(text: str, seeds: object) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "1.5", "1,1", ",", "²"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_seeds(text)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    snapshot = "algo: {total_timesteps: 1000}\n"
    return store.create(tmp_path, name="some", snapshot=snapshot, metadata={"env": "x"}, seeds=[0, 1])


def test_progress_shows_step_share_and_return_of_every_seed(run: Run, tmp_path: Path) -> None:
    live = LiveSeed(run.path / "seed_0", root=tmp_path)
    live.log(250, {"rollout/return_mean": 12.5})
    live.beat(step=500)
    first, second = (line.text for line in RunProgress(run.path).read())
    assert first.split() == ["seed", "0", "running", "500/1,000", "50%", "return", "12.5"]
    assert second.split() == ["seed", "1", "prepared", "0/1,000", "0%"]
    live.interrupted(500)
    live.close()


def test_off_a_terminal_no_line_is_printed_twice(capfd: pytest.CaptureFixture[str]) -> None:
    display = Display()
    for is_last in (False, False, True):
        display.draw([Line("seed 0", "seed 0  running      1/9   10%", "running")], is_last=is_last)
    assert capfd.readouterr().err.count("seed 0") == 1


def test_off_a_terminal_only_news_of_seeds_that_train_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    display = Display()
    waiting = [Line(f"seed {seed}", f"seed {seed}  prepared", "prepared", is_waiting=True) for seed in range(1, 10)]
    for text, news in (("running  0/9", ""), ("running  1/9", "running"), ("running  5/9", "running")):
        display.draw([Line("seed 0", f"seed 0  {text}", news), *waiting])
    display.draw([Line("seed 0", "seed 0  completed  9/9", "completed"), *waiting], is_last=True)
    assert capfd.readouterr().err.splitlines() == ["seed 0  running  1/9", "seed 0  completed  9/9"]


def test_a_count_is_silent_unless_it_takes_long(capfd: pytest.CaptureFixture[str]) -> None:
    count = Count("episodes")
    for done in range(1, 11):
        count(done, 10)
    assert capfd.readouterr().err == ""


def test_a_program_that_was_not_told_how_long_to_train_has_no_share(tmp_path: Path) -> None:
    made = store.create(
        tmp_path, name="own", snapshot="algo: {total_timesteps: 100000}\n", metadata={"total_timesteps": 0}, seeds=[0]
    )
    live = LiveSeed(made.path / "seed_0", root=tmp_path)
    live.beat(step=3)
    assert RunProgress(made.path).read()[0].text.split() == ["seed", "0", "running", "3", "steps"]
    live.interrupted(3)
    live.close()


def test_following_a_run_that_is_over_returns_at_once(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number in (0, 1):
        live = LiveSeed(run.path / f"seed_{number}", root=tmp_path)
        live.completed(1000)
        live.close()
    assert follow(Run(run.path)).status == "completed"
    assert capfd.readouterr().err.count("completed") == 2


def test_train_without_a_config_says_what_to_do(project: Project) -> None:
    assert "rlx init" in project.rlx("train", code=2).stderr
    assert "--seeds" in project.rlx("train", "--more", "x", code=2).stderr


def test_a_run_gets_the_name_that_was_asked_for(project: Project) -> None:
    (project.root / "tiny.yaml").write_text(
        "env: {id: CartPole-v1, num_envs: 2}\n"
        "algo: {total_timesteps: 128, rollout_steps: 32, batch_size: 32, update_epochs: 1}\n"
    )
    words = ("train", "tiny.yaml", "--seeds", "1", "--name", "my run: 2", "--json")
    assert json.loads(project.rlx(*words).stdout)["run"] == "my_run_2_001"
    project.rlx("train", "--more", "my_run_2_001", "--seeds", "1", "--name", "other", code=2)


def test_logs_wait_watch_and_stop_of_an_unknown_run_say_so(project: Project) -> None:
    for command in ("logs", "wait", "watch", "stop", "resume"):
        assert "no run `absent`" in project.rlx(command, "absent", code=3).stderr


def test_logs_shows_what_a_seed_wrote(run: Run) -> None:
    root = run.path.parent.parent
    (root / "rlx.toml").touch()
    (run.path / "logs").mkdir()
    (run.path / "logs" / "seed_0.log").write_text("one\ntwo\n")
    project = Project(root)
    assert project.rlx("logs", "some_001", "--tail", "1").stdout == "== seed_0 ==\ntwo\n"
    assert project.rlx("logs", "some_001", "--seed", "0", "-f").stdout == "one\ntwo\n"
    project.rlx("logs", "some_001", "--seed", "9", code=3)


def test_waiting_for_a_run_that_was_never_started_does_not_hang(run: Run) -> None:
    root = run.path.parent.parent
    (root / "rlx.toml").touch()
    Project(root).rlx("wait", "some_001", "--timeout", "5", code=5)
