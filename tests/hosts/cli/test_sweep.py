"""`rlx sweep`, `rlx advisor` and `rlx research`: bad input is one clear line with a hint, and the plan is printed."""

from __future__ import annotations

import json
import sys

import pytest

from tests.conftest import Project

GAMMA = "algo.gamma=0.9,0.99"


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["-p", "seed=1,2"], "seeds are replicates", "--race"),
        (["-p", "algo.learning_rat=log:1e-5:1e-2"], "unknown key `algo.learning_rat`", "algo.learning_rate"),
        (["-p", "algo.gamma=0.9:0.9"], "is empty", "-s algo.gamma=0.9"),
        (["-p", "algo.learning_rate=log:-1:1"], "cannot start at -1", "log:1e-05:1"),
        (["-p", GAMMA, "--trials", "0"], "--trials 0", "--trials 32"),
        (["-p", GAMMA, "--trials", "4", "--hours", "1"], "one budget", "--trials"),
        (["-p", GAMMA, "--seeds", "10"], "leaves 0 for the search", "--seeds 40"),
        (["-p", "algo.total_timesteps=100,200"], "cannot be a parameter", "base config"),
        (["-p", "eval.episodes=1,2"], "measured in the same way", "base config"),
        (["-p", "algo.gamma=0.9:1.99"], "`algo.gamma` is 1.99; expected a number from 0 to 1", "discount"),
        (["-p", "algo.update_epochs=1:9"], "takes whole numbers only", "-p algo.update_epochs=int:1:9"),
        (["-p", "algo.gamma=2,3"], "expected a number from 0 to 1", "discount"),
        (["-p", "env.kwargs.foo=1,2"], "takes no argument `foo`", ""),
        (["-p", GAMMA, "--sampler", "tpee"], "unknown sampler", "tpe"),
        (["-p", GAMMA, "--confirm", "3"], "at least 10 seeds", "--confirm 10"),
        (["-p", GAMMA, "--race", "6,3"], "growing numbers", "--race 3,6,10"),
        (["-p", GAMMA, "--planner", "gpt"], "not an endpoint", "cmd:PROGRAM"),
        (["-p", "policy.hidden_sizes=[8],[8,big]"], "expected a list (whole number ≥ 1 each)", "hidden layer"),
        (["-p", "algo.name=ppo,sac"], "no trial with algo.name=sac can train: `sac` needs Box actions", "ppo or dqn"),
        (["-p", "env.id=CartPole-v1,Acrobot-v1"], "no trial with env.id=Acrobot-v1 can train", "same observations"),
        (["-p", "policy.type=mlp,cnn"], "policy `cnn` reads uint8 images", "policy.type=mlp"),
        (["-p", "algo.rollout_steps=int:-5:64"], "`algo.rollout_steps` is -5", "steps each copy takes"),
        (["-p", "algo.batch_size=int:129:200"], "more than num_envs × rollout_steps", "batch_size=128"),
        ([], "no parameter is given", "-p algo.learning_rate"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    project: Project, words: list[str], message: str, hint: str
) -> None:
    done = project._call(["sweep", project.config(), *words])  # in this process: nothing is started

    assert done.returncode == 2
    assert message in done.stderr.splitlines()[0]
    assert hint in done.stderr
    assert not (project.root / ".rlx" / "sweeps").exists()
    assert project.runs() == []


def test_a_sweep_leaves_out_combinations_that_are_not_valid(project: Project) -> None:
    words = ["-p", "env.num_envs=1,4,8,16", "-p", "algo.rollout_steps=8,32,100", "-p", "algo.batch_size=32,64,256"]
    plan = json.loads(project.rlx("sweep", project.config(), *words, "--dry-run", "--trials", "40", "--json").stdout)

    assert "does not divide num_envs × rollout_steps" in plan["note"]
    assert plan["planned"] == 17
    for values in plan["first"]:
        rollout = values["env.num_envs"] * values["algo.rollout_steps"]
        assert rollout % values["algo.batch_size"] == 0
    schedule = "algo.learning_rate=1e-4,{linear: [1e-3, 0]}"
    first = json.loads(project.rlx("sweep", "configs/tiny.yaml", "-p", schedule, "--dry-run", "--json").stdout)["first"]
    assert {"linear": [1e-3, 0]} in [values["algo.learning_rate"] for values in first]


def test_a_misspelled_verb_is_named(project: Project) -> None:
    done = project._call(["sweep", "shwo", "tiny_sweep_001"])

    assert done.returncode == 2
    assert done.stderr.splitlines() == ["error: unknown verb `shwo`", "", "hint: rlx sweep show tiny_sweep_001"]


def test_advisor_and_research_print_what_they_would_do_and_refuse_bad_budgets(project: Project) -> None:
    project.rlx("train", project.config(algo={"total_timesteps": 512, "learning_rate": 1e-7}))
    plan = project.rlx("advisor", "run", "tiny_001", "--budget", "40")
    again = json.loads(project.rlx("advisor", "tiny_001", "--json").stdout)

    assert "nothing is trained yet" in plan.stdout
    assert plan.stdout.rstrip().endswith("rlx advisor tiny_001 --budget 40 --execute")
    assert all({"changes", "signal", "reason", "rule", "expected"} <= set(row) for row in again["variants"])
    assert any(row["changes"].get("algo.learning_rate", 0) > 1e-7 for row in again["variants"][:3])
    assert all("seed" not in row["changes"] for row in again["variants"])
    sampled = json.loads(project.rlx("advisor", "tiny_001", "--planner", "sampler", "--json").stdout)
    assert {row["source"] for row in sampled["variants"]} >= {"sampler"}
    assert project.runs() == ["tiny_001"]
    assert "too small" in project.rlx("advisor", "tiny_001", "--budget", "10seeds", code=2).stderr
    refused = project.rlx("research", "tiny_001", "--budget", "10", code=2).stderr
    assert "38 can" in refused
    assert "--budget 38" in refused
    assert "no run" in project.rlx("research", "nothing_001", code=3).stderr
    assert "no campaign yet" in project.rlx("research", "ls").stdout


def test_a_program_as_planner_is_audited_and_its_proposal_is_in_the_plan(project: Project) -> None:
    project.rlx("train", project.config(algo={"total_timesteps": 512}))
    answer = {
        "proposals": [
            {"changes": [{"key": "seed", "value": 7}], "rationale": "a lucky seed"},
            {"changes": [{"key": "algo.gamma", "value": 0.98}], "signal": "flat", "rationale": "look further"},
        ]
    }
    program = project.write("planner.py", f"import sys\nsys.stdin.read()\nprint({json.dumps(answer)!r})\n")
    words = ("--planner", "llm", "--llm", f"cmd:{sys.executable} '{program}'", "--budget", "60")
    data = json.loads(project.rlx("advisor", "tiny_001", *words, "--json").stdout)

    assert data["variants"][0]["changes"] == {"algo.gamma": 0.98}
    assert data["variants"][0]["source"] == "llm"
    assert "not a key of the space" in data["audit"][0]["rejected"][0]["reason"]
    failing = ("--planner", "llm", "--llm", "cmd:false")
    assert json.loads(project.rlx("advisor", "tiny_001", *failing, "--json").stdout)["variants"]
    project.rlx("advisor", "tiny_001", *failing, "--strict", code=1)


@pytest.mark.slow
def test_research_runs_to_its_claim_and_writes_a_report(project: Project) -> None:
    config = project.config(
        algo={"total_timesteps": 512, "learning_rate": 1e-6, "rollout_steps": 32}, eval={"every": 512, "episodes": 2}
    )
    project.rlx("train", config)
    done = project.rlx("research", "tiny_001", "--rounds", "1", "--budget", "50")
    data = json.loads(project.rlx("research", "show", "research_tiny_001_001", "--json").stdout)
    folder = project.root / ".rlx" / "research" / "research_tiny_001_001"

    assert data["state"] == "completed"
    assert data["spent"] <= 50
    assert data["line"] in done.stdout
    is_confirmed = data["claim"] is not None and data["claim"]["answer"] == "confirmed"
    assert ("next: rlx train" in done.stdout) == is_confirmed
    assert "## Negative results" in (folder / "report.md").read_text()
    assert "data:image/png;base64" in (folder / "report.html").read_text()
    assert all(row["scores"] for row in data["configs"] if row["step"])
    resumed = project.rlx("research", "resume", "research_tiny_001_001")
    assert data["line"] in resumed.stdout
