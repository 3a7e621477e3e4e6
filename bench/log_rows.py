"""Measure logging: microseconds for one row of 20 scalars that survives kill -9, next to the peers.

python bench/log_rows.py [--peers VENV] [--rows 20000]
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson
from rig import measure, peers

from rlx.runs.live import LiveSeed
from rlx.runs.metrics import MetricsWriter

LIMIT_MICROSECONDS = 15.0
VALUES = {f"train/metric_{number}": 0.1234567 * (number + 1) for number in range(20)}

PEER_CODE = """
import sys, time, json
rows, values = int(sys.argv[1]), json.loads(sys.argv[2])
{start}
begin = time.perf_counter()
for step in range(rows):
    {log}
{finish}
print((time.perf_counter() - begin) / rows * 1e6)
"""
PEERS = {
    "trackio": (
        "trackio",
        3000,
        "import trackio; trackio.init(project='bench', embed=False)",
        "trackio.log(values, step=step)",
        "trackio.finish()",
    ),
    "wandb offline": (
        "wandb",
        3000,
        "import wandb; run = wandb.init(mode='offline', dir='.')",
        "run.log(values, step=step)",
        "run.finish()",
    ),
    "tensorboardX": (
        "tensorboardX",
        300,
        "from tensorboardX import SummaryWriter; writer = SummaryWriter('tb')",
        "[writer.add_scalar(name, value, step) for name, value in values.items()]",
        "writer.close()",
    ),
    "mlflow (sqlite)": (
        "mlflow",
        60,
        "import mlflow; mlflow.set_tracking_uri('sqlite:///mlflow.db'); mlflow.start_run()",
        "mlflow.log_metrics(values, step=step)",
        "mlflow.end_run()",
    ),
}


def main() -> None:
    parser = peers.parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        ours = {name: _best(make(Path(place)), args.rows) for name, make in OURS.items()}
        base = ours["orjson and one write()"]
        rows = [_row(name, took, base) for name, took in ours.items()]
        for name, (package, count, *code) in PEERS.items():
            took = _peer(peers.Peers(args.peers), package, count, code, Path(place))
            rows.append([name, "not installed", "", ""] if took is None else _row(name, took, base))
    measure.show("logging 20 scalars a row", ["logger", "µs a row", "× orjson + write", "promise"], rows)


def _row(name: str, took: float, base: float) -> list[str]:
    limit = LIMIT_MICROSECONDS if name.startswith("rlx") else None
    return [name, f"{took:.1f}", f"{took / base:.1f}", measure.verdict(took, limit)]


def _best(log: Callable[[int], None], rows: int, *, rounds: int = 50) -> float:
    """Return the best round's microseconds per row."""
    each = max(1, rows // rounds)
    times = []
    for number in range(rounds):
        begin = time.perf_counter()
        for step in range(number * each, (number + 1) * each):
            log(step)
        times.append((time.perf_counter() - begin) / each * 1e6)
    return min(times)


def _live(place: Path) -> Callable[[int], None]:
    folder = place / "run" / "seed_0"
    folder.mkdir(parents=True)
    live = LiveSeed(folder, root=place)
    return lambda step: live.log(step, VALUES)


def _writer(place: Path) -> Callable[[int], None]:
    writer = MetricsWriter(place / "metrics.jsonl")
    return lambda step: writer.write(step, VALUES)


def _orjson(place: Path) -> Callable[[int], None]:
    descriptor = os.open(place / "orjson.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return lambda step: _write(descriptor, orjson.dumps({"step": step, "time": time.time(), **VALUES}) + b"\n")


def _stdlib(place: Path) -> Callable[[int], None]:
    descriptor = os.open(place / "json.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return lambda step: _write(descriptor, (json.dumps({"step": step, "time": time.time(), **VALUES}) + "\n").encode())


def _write(descriptor: int, row: bytes) -> None:
    os.write(descriptor, row)


OURS: dict[str, Callable[[Path], Callable[[int], None]]] = {
    "rlx: LiveSeed.log": _live,
    "rlx: MetricsWriter.write": _writer,
    "orjson and one write()": _orjson,
    "stdlib json and one write()": _stdlib,
}


def _peer(installed: peers.Peers, package: str, rows: int, code: list[str], place: Path) -> float | None:
    if not installed.has(package):
        return None
    script = PEER_CODE.format(start=code[0], log=code[1], finish=code[2])
    folder = place / package
    folder.mkdir()
    environment = {**os.environ, **peers.QUIET, "TRACKIO_DIR": str(folder)}
    argv = [installed.python, "-c", script, str(rows), json.dumps(VALUES)]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    main()
