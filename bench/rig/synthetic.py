"""Make many finished run folders without training, as a load for `rlx ls`."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path

from rlx import files

LONG_AGO = 1_700_000_000
ENVS = ("CartPole-v1", "Acrobot-v1", "Pendulum-v1", "HalfCheetah-v5")
ALGORITHMS = ("ppo", "dqn", "sac")
METRICS = tuple(f"train/metric_{number}" for number in range(9))


def make_runs(root: Path, count: int, *, rows: int = 100) -> None:
    """Write `count` completed runs of one seed, 10 metrics and `rows` rows each, a report evaluation, some tagged."""
    runs = root / "runs"
    runs.mkdir(parents=True)
    (root / "rlx.toml").touch()
    lines = b"".join(_row(step * 1000) + b"\n" for step in range(1, rows + 1))
    for number in range(count):
        _make_run(runs / f"synthetic_{number + 1:03d}", number, lines)


def _row(step: int) -> bytes:
    values = dict.fromkeys(METRICS, step / 7)
    return files.encode({"step": step, "time": LONG_AGO + step / 100, "rollout/return_mean": step / 300, **values})


def _make_run(path: Path, number: int, lines: bytes) -> None:
    seed = path / "seed_0"
    report = path / "eval" / "0123456789ab"
    seed.mkdir(parents=True)
    report.mkdir(parents=True)
    identity = {
        "schema": 1, "name": path.name, "id": uuid.uuid4().hex, "created": LONG_AGO + number, "rlx": "0.1.0",
        "env": ENVS[number % len(ENVS)], "algorithm": ALGORITHMS[number % len(ALGORITHMS)], "backend": "sb3",
        "total_timesteps": 100_000, "group_hash": f"group{number // 5}",
    }  # fmt: skip
    (path / "metadata.json").write_bytes(files.encode_pretty(identity))
    (path / "config_snapshot.yaml").write_text(f"run_name: synthetic\nenv: {{id: {identity['env']}}}\n")
    if number % 10 == 0:
        (path / "labels.json").write_bytes(files.encode({"schema": 1, "tags": ["baseline"], "note": ""}))
    (seed / "metrics.jsonl").write_bytes(lines)
    start = LONG_AGO + number
    events = [{"event": "started", "time": start}, {"event": "completed", "time": start + 900, "step": 100_000}]
    (seed / "events.jsonl").write_bytes(b"".join(files.encode(event) + b"\n" for event in events))
    (report / "seed_0_latest.json").write_bytes(files.encode({"purpose": "report", "mean": number % 500, "seed": 0}))
    os.utime(path, (start, start))


if __name__ == "__main__":
    make_runs(Path(sys.argv[1]), int(sys.argv[2]))
