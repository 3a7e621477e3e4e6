from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.runs import store
from rlx.runs.run import Run

Cli = Callable[..., Any]
MakeRun = Callable[..., Run]


def attempt(
    commit: str = "a" * 40, *, torch: str = "2.13", threads: str = "1", diff: str | None = None
) -> dict[str, Any]:
    return {
        "schema": 1, "time": 1000.0, "git": {"commit": commit, "diff_sha256": diff, "untracked_total": 2},
        "versions": {"python": "3.11", "torch": torch}, "host": "h", "platform": "Linux", "cores": 2,
        "environment": {"OMP_NUM_THREADS": threads},
    }  # fmt: skip


def add_attempt(run: Run, seed: int, document: dict[str, Any]) -> None:
    files.append_line(run.path / f"seed_{seed}" / "attempts.jsonl", files.encode(document))


def add_checkpoint(run: Run, seed: int, name: str, step: int, *, label: str = "exact") -> None:
    folder = run.path / f"seed_{seed}" / "checkpoints" / name
    folder.mkdir(parents=True)
    files.write_json(folder / "manifest.json", {"schema": 1, "step": step, "resume": {"label": label, "missing": ""}})


def test_shows_identity_seeds_checkpoints_evaluations_provenance_and_what_to_do(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0, 10.0], 1: [1.0, 30.0]})
    store.note(store.tag(run, "baseline"), "looks fine")
    add_attempt(run, 0, attempt())
    add_checkpoint(run, 0, "latest", 200)
    add_checkpoint(run, 0, "best", 100)
    for seed, mean in ((0, 9.0), (1, 31.0)):
        document = {"purpose": "report", "mean": mean, "seed": seed, "step": 200, "episodes": [{}] * 20}
        store.save_evaluation(run.path, "f1", f"seed_{seed}_latest", document)

    text = cli("info", run.name).out

    assert "run: cartpole_001" in text
    assert "status: completed (2 completed)" in text
    assert "return: 20 ± 16 (report evaluation, n = 2 seeds)" in text
    assert "tags: baseline\nnote: looks fine" in text
    assert "algo: name ppo, total_timesteps 200" in text
    assert ["0", "completed", "200", "9", "1m", "00s"] in [line.split() for line in text.splitlines()]
    assert next(line.split()[:4] for line in text.splitlines() if "exact" in line) == ["0", "100", "200", "exact"]
    assert ["report", "latest", "2", "40", "20", "±", "16", "f1"] in [line.split() for line in text.splitlines()]
    assert "code: aaaaaaaaaaaa\n" in text
    assert text.splitlines()[-1] == "next: rlx plot cartpole_001"


def test_the_untrained_policies_of_several_seeds_are_one_row_and_scenarios_are_not_counted(
    cli: Cli, make_run: MakeRun
) -> None:
    run = make_run(seeds={0: [1.0], 1: [1.0]})
    episodes = [{"return": 9.0}, {"return": 9.0}, {"return": 1.0, "scenario": "windy"}]
    for seed in (0, 1):
        document = {"purpose": "report", "mean": 9.0, "episodes": episodes}
        store.save_evaluation(run.path, "f1", f"seed_{seed}_untrained", document)

    lines = [line.split() for line in cli("info", run.name).out.splitlines()]

    assert ["report", "untrained", "2", "4", "9", "±", "0", "f1"] in lines


def test_json_holds_everything(cli: Cli, make_run: MakeRun) -> None:
    run = make_run()
    add_attempt(run, 0, attempt())
    data = cli("info", run.name, "--json").data

    assert data["schema"] == 1
    assert data["config"]["env"]["id"] == "CartPole-v1"
    assert data["per_seed"][0]["status"] == "completed"
    assert data["provenance"]["versions"]["torch"] == "2.13"
    assert data["differences"] == []


@pytest.mark.parametrize(
    ("state", "following"),
    [
        ("running", "rlx watch cartpole_001"),
        ("completed", "rlx eval cartpole_001"),
        ("interrupted", "rlx resume cartpole_001"),
        ("lost", "rlx resume cartpole_001"),
        ("failed", "rlx resume cartpole_001"),
        ("prepared", "rlx resume cartpole_001"),
    ],
)
def test_the_next_command_fits_the_state(cli: Cli, make_run: MakeRun, state: str, following: str) -> None:
    make_run(state=state)

    assert cli("info", "cartpole_001", "--json").data["next"] == following


def test_a_failed_seed_shows_its_reason_and_its_traceback_on_request(cli: Cli, make_run: MakeRun) -> None:
    make_run(state="failed", reason="ValueError: reward is NaN", traceback=["  File x.py, line 3", "ValueError: …"])

    plain = cli("info", "cartpole_001").out
    assert "ValueError: reward is NaN" in plain
    assert "File x.py" not in plain
    assert "the traceback: rlx info cartpole_001 --traceback" in plain

    full = cli("info", "cartpole_001", "--traceback").out
    assert "File x.py, line 3" in full
    assert "the traceback:" not in full


def test_resumes_are_shown_with_their_label(cli: Cli, make_run: MakeRun) -> None:
    run = make_run()
    event = {"event": "resumed", "time": 1.0, "step": 1024, "label": "exact"}
    files.append_line(run.path / "seed_0" / "events.jsonl", files.encode(event))

    assert "resumed exact from step 1,024" in cli("info", run.name).out


def test_attempts_that_differ_are_said_plainly(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0], 1: [1.0]})
    add_attempt(run, 0, attempt())
    add_attempt(run, 1, attempt("b" * 40, torch="2.14", threads="2"))
    add_attempt(run, 1, attempt("b" * 40, torch="2.14", threads="2", diff="c" * 64))

    assert "DIFFERS between attempts: torch" in cli("info", run.name).out


@pytest.mark.parametrize("name", ["metadata.json", "labels.json"])
def test_a_run_that_cannot_be_read_is_one_line_with_a_hint(cli: Cli, make_run: MakeRun, name: str) -> None:
    (make_run().path / name).write_bytes(b"{\n")

    answer = cli("info", "cartpole_001")

    assert answer.code == 6
    assert "cartpole_001 cannot be read: " in answer.err
    assert Path(name).name in answer.err


@pytest.mark.parametrize(
    "name", ["events.jsonl", "attempts.jsonl", "metrics.jsonl", "checkpoints/latest/manifest.json"]
)
def test_a_damaged_file_of_a_seed_is_named_and_the_rest_is_told(cli: Cli, make_run: MakeRun, name: str) -> None:
    path = make_run(seeds={0: [1.0], 1: [3.0]}).path / "seed_0" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"5\n")

    answer = cli("info", "cartpole_001")

    assert answer.code == 0
    assert Path(name).name in answer.out
    assert "1  completed  100/200       3" in answer.out


def test_a_script_run_with_its_own_file_as_checkpoint_is_shown(cli: Cli, tmp_path: Path) -> None:
    run = store.create(tmp_path, name="mine", snapshot="env: my env\nalgo: own\n", metadata={"env": None}, seeds=[0])
    folder = run.path / "seed_0" / "checkpoints" / "latest_foreign"
    folder.mkdir(parents=True)
    files.write_json(folder / "manifest.json", {"schema": 1, "step": 5, "file": "model.pt", "sha256": "0"})

    text = cli("info", "mine_001").out

    assert "env: my env" in text
    assert "latest_foreign" in text
