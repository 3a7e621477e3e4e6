"""Every importer reads the values that the format's own library wrote; damaged files give an honest part."""

from __future__ import annotations

import json
import pickle
import sqlite3
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from rlx.adopt.import_runs import detect, importer
from rlx.adopt.importers.foreign_run import ForeignRun, name_and_seed, seed_of
from rlx.errors import UsageError
from rlx.runs.tensorboard_writer import EventWriter


def read(path: Path, name: str) -> list[ForeignRun]:
    assert detect(path) == name
    return list(importer(name).read(path))


def series(run: ForeignRun, name: str) -> list[tuple[int, float]]:
    return [(point.step, point.values[name]) for point in run.points if name in point.values]


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("CartPole-v1__ppo__3__1794990003", ("CartPole-v1__ppo", 3)),
        ("2026-01-31_12-30-00_trot_seed7", ("trot", 7)),
        ("ppo_seed=12", ("ppo", 12)),
        ("walk-s4", ("walk", 4)),
        ("ppo2", ("ppo2", None)),
        ("2026-01-31_12-30-00", ("run", None)),
    ],
)
def test_names_and_seeds_of_folders(folder: str, expected: tuple[str, int | None]) -> None:
    assert name_and_seed(folder) == expected


def test_seeds_of_configs() -> None:
    assert seed_of({"seed": "4"}) == 4
    assert seed_of({"agent": {"seed": 5}}) == 5
    assert seed_of({"seed": True, "lr": 1}) is None


def test_event_files_with_the_config_of_isaac_lab(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "2026-01-31_12-30-00_trot"
    writer = EventWriter(folder)
    for step in range(5):
        writer.write(step, {"Train/mean_reward": step / 2}, wall_time=1.0)
    writer.close()
    (folder / "params").mkdir()
    (folder / "run.json").write_text(json.dumps({"task": "Isaac-Trot-v0", "library": "rsl_rl"}))
    (folder / "params" / "agent.yaml").write_text("seed: 42\nlr: 0.1\n")
    (run,) = read(tmp_path, "tensorboard")
    assert (run.name, run.seed, run.config["task"], run.config["agent"]["lr"]) == ("trot", 42, "Isaac-Trot-v0", 0.1)
    assert series(run, "Train/mean_reward") == [(step, step / 2) for step in range(5)]


def test_a_table_with_repeated_headers_and_new_columns(tmp_path: Path) -> None:
    path = tmp_path / "walk_seed2.csv"
    path.write_text("update,frames,return\n1,10,0.5\nupdate,frames,return\n2,20,0.75\nframes,return,loss\n30,1,0.1\n")
    (run,) = read(path, "csv")
    assert (run.name, run.seed) == ("walk", 2)
    assert series(run, "return") == [(10, 0.5), (20, 0.75), (30, 1.0)]
    assert series(run, "loss") == [(30, 0.1)]


def test_files_of_stable_baselines3(tmp_path: Path) -> None:
    from stable_baselines3.common.monitor import ResultsWriter

    folder = tmp_path / "ppo_seed3"
    folder.mkdir()
    writer = ResultsWriter(str(folder / "0"), header={"t_start": 1.0, "env_id": "CartPole-v1"})
    for episode in range(3):
        writer.write_row({"r": 10.0 * episode, "l": 5, "t": float(episode)})
    writer.close()
    np.savez(
        folder / "evaluations.npz", timesteps=[10, 15], results=[[1.0, 3.0], [5.0, 7.0]], ep_lengths=[[1, 1], [1, 1]]
    )
    (run,) = read(tmp_path, "sb3")
    assert (run.name, run.seed, run.config) == ("ppo", 3, {"env": {"id": "CartPole-v1"}})
    assert series(run, "rollout/ep_rew_mean") == [(5, 0.0), (10, 5.0), (15, 10.0)]
    assert series(run, "eval/mean_reward") == [(10, 2.0), (15, 6.0)]
    assert run.evaluations == [(10, [1.0, 3.0]), (15, [5.0, 7.0])]


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("/nowhere/executed"),)


def test_a_pickled_archive_is_refused_with_a_note(tmp_path: Path) -> None:
    np.savez(tmp_path / "evaluations.npz", timesteps=np.array([1]), results=np.array([_Bomb()], dtype=object))
    (run,) = read(tmp_path, "sb3")
    assert run.points == []
    assert "cannot be read" in run.notes[0]
    assert pickle.HIGHEST_PROTOCOL  # the bomb needs pickle, which the importer never calls


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def item(key: str, value: object) -> bytes:
    return field(1, field(1, key.encode()) + field(16, json.dumps(value).encode()))


def wandb_log(records: list[bytes]) -> bytes:
    """Write records as W&B does: a LevelDB log with blocks of 32 KiB, in which long records are split."""
    out = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    for record in records:
        is_first = True
        while True:
            left = 32768 - len(out) % 32768
            if left < 7:
                out += b"\0" * left
                continue
            part, record = record[: left - 7], record[left - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[is_first, not record]
            out += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            is_first = False
            if not record:
                break
    return out


def wandb_file(path: Path, *, seed: int, rows: int) -> None:
    about = field(1, b"ab12") + field(3, b"walks") + field(6, b"trot") + field(8, b"brisk-sun-1")
    records = [field(17, about + field(4, item("seed", seed) + item("lr", 0.5)))]
    for step in range(rows):
        values = item("charts/episodic_return", step * 1.5) + item("text", "x" * 3000) + item("_step", step * 10)
        records.append(field(2, values))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(wandb_log([*records, field(18, field(1, 0))]))


def test_offline_runs_of_wandb_and_a_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "offline-run-1" / "run-ab12.wandb"
    wandb_file(path, seed=4, rows=40)
    (run,) = read(tmp_path, "wandb")
    assert (run.name, run.seed, run.config, run.state) == ("trot", 4, {"seed": 4, "lr": 0.5}, "completed")
    assert series(run, "charts/episodic_return") == [(step * 10, step * 1.5) for step in range(40)]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 1500])
    (torn,) = read(tmp_path, "wandb")
    assert 30 < len(torn.points) < 40
    assert torn.state == "interrupted"
    assert "middle of a record" in torn.notes[0]
    damaged = bytearray(whole)
    damaged[70_000] ^= 1
    path.write_bytes(bytes(damaged))
    (part,) = read(tmp_path, "wandb")
    assert 0 < len(part.points) < 40
    assert "checksum" in part.notes[0]


def test_both_stores_of_mlflow(tmp_path: Path) -> None:
    folder = tmp_path / "mlruns" / "0" / "abc"
    for name in ("metrics/reward", "params"):
        (folder / name).mkdir(parents=True)
    (folder / "meta.yaml").write_text("run_name: walk\nstatus: 3\n")
    (folder / "params" / "seed").write_text("6")
    (folder / "metrics" / "reward" / "mean").write_text("1000 1.5 0\n2000 2.5 10\ntorn")
    (run,) = read(tmp_path / "mlruns", "mlflow")
    assert (run.name, run.seed, run.state) == ("walk", 6, "completed")
    assert series(run, "reward/mean") == [(0, 1.5), (10, 2.5)]
    assert "1 lines" in run.notes[0]
    database = sqlite3.connect(tmp_path / "mlflow.db")
    database.executescript(
        "CREATE TABLE experiments (experiment_id INTEGER); CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT,"
        " experiment_id INTEGER, start_time INTEGER); CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);"
        "CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan BOOLEAN);"
        "INSERT INTO runs VALUES ('r1', 'walk', 'FINISHED', 1, 5); INSERT INTO params VALUES ('seed', '7', 'r1');"
        "INSERT INTO metrics VALUES ('reward', 1.0, 1, 'r1', 0, 0), ('reward', 0.0, 2, 'r1', 1, 1);"
    )
    database.commit()
    database.close()
    (stored,) = read(tmp_path / "mlflow.db", "mlflow")
    assert (stored.name, stored.seed) == ("walk", 7)
    assert series(stored, "reward")[0] == (0, 1.0)
    assert np.isnan(series(stored, "reward")[1][1])


def test_projects_of_trackio(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "walks.db")
    database.executescript(
        "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT);"
        "CREATE TABLE configs (id INTEGER PRIMARY KEY, run_name TEXT, config TEXT);"
        """INSERT INTO metrics (run_name, step, metrics) VALUES ('walk-seed1', 0, '{"reward": 1}');"""
        """INSERT INTO metrics (run_name, step, metrics) VALUES ('walk-seed1', 1, 'torn');"""
        """INSERT INTO configs (run_name, config) VALUES ('walk-seed1', '{"lr": 0.1, "_host": "h"}');"""
    )
    database.commit()
    database.close()
    (run,) = read(tmp_path, "trackio")
    assert (run.name, run.seed, run.config) == ("walk", 1, {"lr": 0.1})
    assert series(run, "reward") == [(0, 1.0)]


def test_runs_of_one_name_in_newer_trackio_projects(tmp_path: Path) -> None:
    """trackio 0.43 tells runs apart by an id, and stores its JSON as bytes."""
    database = sqlite3.connect(tmp_path / "walks.db")
    database.executescript(
        "CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_id TEXT, run_name TEXT, step INTEGER, metrics TEXT);"
        "CREATE TABLE configs (id INTEGER PRIMARY KEY, run_id TEXT, run_name TEXT, config TEXT);"
    )
    for number in (1, 2):
        identity = f"id{number}"
        row = (identity, "trot", 10, json.dumps({"reward": number / 2}).encode())
        database.execute("INSERT INTO metrics (run_id, run_name, step, metrics) VALUES (?, ?, ?, ?)", row)
        config = (identity, "trot", json.dumps({"seed": number, "lr": 0.5}).encode())
        database.execute("INSERT INTO configs (run_id, run_name, config) VALUES (?, ?, ?)", config)
    database.commit()
    database.close()
    found = read(tmp_path, "trackio")
    assert [(run.name, run.seed, run.config["lr"]) for run in found] == [("trot", 1, 0.5), ("trot", 2, 0.5)]
    assert [series(run, "reward") for run in found] == [[(10, 0.5)], [(10, 1.0)]]


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_trials_equal_those_of_optuna(tmp_path: Path, kind: str) -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    if kind == "journal":
        from optuna.storages.journal import JournalFileBackend

        storage = optuna.storages.JournalStorage(JournalFileBackend(str(tmp_path / "study.log")))

    def objective(trial: object) -> float:
        rate = trial.suggest_float("lr", 1e-4, 0.1, log=True)  # type: ignore[attr-defined]
        layers = trial.suggest_int("layers", 1, 3)  # type: ignore[attr-defined]
        trial.suggest_categorical("act", ["relu", "tanh"])  # type: ignore[attr-defined]
        for step in range(3):
            trial.report(rate * step, step)  # type: ignore[attr-defined]
        if layers == 2:
            raise optuna.TrialPruned
        return rate * layers

    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(study_name="tune", storage=storage, sampler=sampler)
    study.optimize(objective, n_trials=5)
    runs = read(tmp_path, "optuna")
    assert [run.config for run in runs] == [trial.params for trial in study.trials]
    for run, trial in zip(runs, study.trials, strict=True):
        assert series(run, "objective") == sorted(trial.intermediate_values.items())
        assert [value for _, value in series(run, "value")] == (trial.values or [])


def test_runs_of_rlx_workbench_with_evaluations_and_lineage(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "cart_001"
    (folder / "eval").mkdir(parents=True)
    (folder / "config_snapshot.yaml").write_text("run_name: cart\nseed: 9\nenv: {id: CartPole-v1, num_envs: 1}\n")
    metadata = {"id": "cart_001", "status": "completed", "resumed_from_run": "cart_000", "sweep_id": None}
    (folder / "metadata.json").write_text(json.dumps(metadata))
    (folder / "metrics.jsonl").write_text('{"step": 10, "rollout/ep_rew_mean": 2.0}\n{"step": 20, "rollout/ep_rew_me')
    episodes = [{"index": 0, "reward": 4.0, "length": 3}, {"index": 1, "reward": 6.0, "length": 3}]
    (folder / "eval" / "manual_eval_001.json").write_text(json.dumps({"episodes": episodes}))
    (run,) = read(tmp_path, "workbench")
    assert (run.name, run.seed, run.lineage["resumed_from_run"]) == ("cart", 9, "cart_000")
    assert series(run, "rollout/ep_rew_mean") == [(10, 2.0)]
    assert run.evaluations == [(10, [4.0, 6.0])]


def test_results_tables(tmp_path: Path) -> None:
    rows = ["commit\tscore\tstatus\tdescription", "a1\t0.5\tkeep\tstart", "b2\t0\tcrash\tbad", "c3\t0.7\tkeep\tlr"]
    (tmp_path / "results.tsv").write_text("\n".join(rows))
    (run,) = read(tmp_path, "results")
    assert series(run, "score") == [(0, 0.5), (2, 0.7)]
    assert [row["status"] for row in run.config["tried"]] == ["keep", "crash", "keep"]


def test_unknown_data_is_an_error_that_lists_the_formats(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(UsageError, match="no data of a known format"):
        detect(tmp_path)
