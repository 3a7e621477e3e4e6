from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.cli import format
from rlx.runs import store
from rlx.runs.run import Run

Cli = Callable[..., Any]
MakeRun = Callable[..., Run]


def test_an_empty_project_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rlx.toml").touch()
    answer = cli("ls")

    assert (answer.code, answer.out) == (0, "no runs\n\nnext: rlx train CONFIG\n")
    assert cli("ls", "--json").data == {"schema": 1, "runs": [], "total": 0, "next": None, "filter": "", "columns": []}


def test_a_pattern_that_matches_nothing_is_named(cli: Cli, make_run: MakeRun) -> None:
    make_run()

    assert cli("ls", "walker", "--status", "completed").out == (
        "no run matches walker --status completed\n\nnext: rlx ls\n"
    )


def test_outside_a_project_says_so(cli: Cli) -> None:
    assert "no project here" in cli("ls").out


def test_shows_every_run_with_its_figures(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0, 10.0], 1: [1.0, 30.0]})
    store.tag(run, "baseline", "paper")

    header, line, mark = cli("ls").out.splitlines()

    assert header.split()[:4] == ["name", "status", "env", "algo"]
    assert line.split() == [
        "cartpole_001", "completed", "CartPole-v1", "ppo", "2", "200", "20", "±", "14*", "30", "1m", "00s",
        *format.when(run.metadata["created"]).split(), "baseline", "paper",
    ]  # fmt: skip
    assert mark.startswith("* training return")


def test_an_evaluated_run_has_no_mark(cli: Cli, make_run: MakeRun) -> None:
    store.save_evaluation(make_run().path, "f", "seed_0_latest", {"purpose": "report", "mean": 77.0})

    text = cli("ls").out

    assert " 77 " in text
    assert "*" not in text


@pytest.mark.parametrize("state", ["prepared", "running", "completed", "failed", "interrupted", "lost"])
def test_every_state_is_shown_and_can_be_filtered(cli: Cli, make_run: MakeRun, state: str) -> None:
    make_run("it", state=state)
    make_run("other", state="completed" if state == "lost" else "lost")

    assert [row["name"] for row in cli("ls", "--status", state, "--json").data["runs"]] == ["it_001"]
    assert state in cli("ls", "--status", state).out


def test_long_names_are_never_cut(cli: Cli, make_run: MakeRun) -> None:
    name = "a_rather_long_name_" * 8
    make_run(name)

    assert f"{name}_001" in cli("ls").out


def test_a_broken_run_is_listed_with_its_reason_and_the_others_stand(cli: Cli, make_run: MakeRun) -> None:
    make_run()
    (make_run().path / "metadata.json").write_bytes(b"{")

    answer = cli("ls")

    assert answer.code == 0
    assert "cartpole_001  completed" in answer.out
    assert "cartpole_002  broken" in answer.out
    assert "cartpole_002 cannot be read: cartpole_002/metadata.json is not valid JSON" in answer.out


def test_shows_fifty_and_says_how_to_see_the_rest(cli: Cli, make_run: MakeRun) -> None:
    for _ in range(53):
        make_run(seeds={})

    answer = cli("ls", "cart", "--json")
    assert (len(answer.data["runs"]), answer.data["total"]) == (50, 53)
    assert answer.data["next"] == "rlx ls cart --offset 50"
    assert [row["name"] for row in cli(*answer.data["next"].split()[1:], "--json").data["runs"]] == [
        "cartpole_003",
        "cartpole_002",
        "cartpole_001",
    ]
    assert "50 of 53 shown; the rest: rlx ls --offset 50" in cli("ls").out
    assert len(cli("ls", "--all", "--json").data["runs"]) == 53
    assert len(cli("ls", "--limit", "3", "--json").data["runs"]) == 3


def test_the_rest_keeps_the_filters(cli: Cli, make_run: MakeRun) -> None:
    for _ in range(3):
        store.tag(make_run(), "two words")
    argv = [
        "ls",
        "--env",
        "cart",
        "--algo",
        "ppo",
        "--tag",
        "two words",
        "--sort",
        "return",
        "--reverse",
        "--limit",
        "1",
    ]

    following = cli(*argv, "--json").data["next"]

    assert following == ("rlx ls --env cart --algo ppo --tag 'two words' --sort return --reverse --limit 1 --offset 1")


@pytest.mark.parametrize("argv", [["--limit", "0"], ["--offset", "-1"], ["--sort", "beauty"], ["--status", "done"]])
def test_bad_values_are_refused(cli: Cli, argv: list[str]) -> None:
    answer = cli("ls", *argv)

    assert answer.code == 2
    assert "hint: " in answer.err


def test_groups_pool_the_seeds_of_runs_with_one_config(cli: Cli, make_run: MakeRun) -> None:
    make_run(seeds={0: [1.0]}, group="same")
    make_run(seeds={1: [3.0]}, group="same")
    make_run("other", seeds={0: [5.0]}, group="different")

    groups = cli("ls", "--group", "--json").data["groups"]

    assert [(group["runs"], group["seeds"], group["return"]["mean"]) for group in groups] == [
        (["other_001"], 1, 5.0),
        (["cartpole_002", "cartpole_001"], 2, 2.0),
    ]
    assert "cartpole_002 cartpole_001" in cli("ls", "--group").out


def test_groups_do_not_mix_evaluations_with_training_returns(cli: Cli, make_run: MakeRun) -> None:
    make_run(group="same")
    store.save_evaluation(make_run(group="same").path, "f", "seed_0_latest", {"purpose": "report", "mean": 7.0})

    assert len(cli("ls", "--group", "--json").data["groups"]) == 2


def test_non_finite_returns_are_shown(cli: Cli, make_run: MakeRun) -> None:
    make_run(seeds={0: [float("nan")], 1: [1.0]})

    assert " nan " in cli("ls").out.replace("*", " ")
    assert cli("ls", "--group").code == 0


def test_lists_the_project_around_from_a_folder_inside(
    cli: Cli, make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run()
    (tmp_path / "rlx.toml").touch()
    (tmp_path / "envs" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "envs" / "deep")

    assert "cartpole_001" in cli("ls").out


@pytest.mark.parametrize(
    ("backends", "ending"),
    [
        (("command",), "* training return"),
        (("command", "script"), "in the script with run.evaluate(policy)"),
        (("command", "sb3"), "with rlx eval RUN"),
    ],
)
def test_how_final_policies_are_measured_is_only_told_of_runs_that_can_be(
    cli: Cli, make_run: MakeRun, backends: tuple[str, ...], ending: str
) -> None:
    for backend in backends:
        path = make_run(backend).path / "metadata.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "backend": backend}))

    assert cli("ls").out.splitlines()[-1].endswith(ending)
    assert cli("ls", "--group").out.splitlines()[-1].endswith(ending)


def test_what_differs_between_runs_is_shown(cli: Any, make_run: Any) -> None:
    for name, rate in (("slow", 3e-4), ("fast", 1e-3)):
        run = make_run(name, group=name)
        snapshot = run.path / "config_snapshot.yaml"
        snapshot.write_text(snapshot.read_text().replace("total_timesteps: 200", f"learning_rate: {rate}"))
    assert "lr 1e-3" in cli("ls").out
    chosen = cli("ls", "--columns", "algo.learning_rate,algo.name")
    assert "3e-4" in chosen.out
    assert cli("ls", "--columns", "algo.learning_rate", "--json").data["runs"][0]["settings"] == {
        "algo.learning_rate": 1e-3
    }
    unknown = cli("ls", "--columns", "algo.nothing")
    assert unknown.code == 2
    assert "rlx config show" in unknown.err
    assert "lr 3e-4" in cli("summarize").out
    assert "fast_001: lr 1e-3" in cli("plot", "slow_001", "fast_001").out
