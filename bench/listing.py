"""Measure listing runs: `rlx ls` over 1,000 and 10,000 runs, cold and warm, and the peers' own lists.

    python bench/listing.py [--peers VENV] [--rounds 10] [--peer-runs 100]

The first `rlx ls` of a project reads every run folder (cold); later ones only stat them (warm). Every run has 10
metrics of 100 points. Peers list runs that were made through their own API, with their own command. TensorBoard has no
such command, so its reader reads the last values.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from rig import measure, peers
from rig.synthetic import make_runs

LIMITS = {1_000: 8.0, 10_000: 30.0}
ROWS = 100

MAKE_MLFLOW = """
import sys, time, mlflow
from mlflow.entities import Metric
client = mlflow.MlflowClient()
for number in range(int(sys.argv[1])):
    run = client.create_run("0", run_name=f"run_{number}")
    now = int(time.time() * 1000)
    client.log_batch(run.info.run_id, [Metric(f"m{m}", step / 7, now, step) for m in range(10) for step in range(100)])
    client.set_terminated(run.info.run_id)
"""
MAKE_TRACKIO = """
import sys, trackio
for number in range(int(sys.argv[1])):
    run = trackio.init(project="bench", name=f"run_{number}", embed=False)
    for step in range(100):
        trackio.log({f"m{m}": step / 7 for m in range(10)}, step=step)
    trackio.finish()
"""
READ_TENSORBOARD = """
import pathlib, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    events = EventAccumulator(str(folder), size_guidance={"scalars": 1}).Reload()
    print(folder.name, *(events.Scalars(tag)[-1].value for tag in events.Tags()["scalars"]))
"""


def main() -> None:
    parser = peers.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--peer-runs", type=int, default=100, metavar="N")
    args = parser.parse_args()
    header = ["list", "runs", "seconds", "× python", "promise"]
    with tempfile.TemporaryDirectory() as place:
        rows = [
            row
            for count in (args.peer_runs, 1_000, 10_000)
            for row in _ours(Path(place) / str(count), count, args.rounds)
        ]
        rows += _theirs(Path(place), peers.Peers(args.peers), args.peer_runs)
    measure.show("listing runs, process start included", header, rows)


def _ours(root: Path, count: int, rounds: int) -> list[list[str]]:
    make_runs(root, count, rows=ROWS)
    rlx = Path(sys.executable).with_name("rlx")
    cold = measure.seconds([rlx, "ls"], cwd=root)
    commands = {"bare": [sys.executable, "-c", "pass"], "warm": [rlx, "ls"], "sorted": [rlx, "ls", "--sort", "return"]}
    took = measure.best(commands, rounds=rounds, cwd=root)
    return [
        _row("rlx ls, cold", count, cold, took["bare"]),
        _row("rlx ls, warm", count, took["warm"], took["bare"], LIMITS.get(count)),
        _row("rlx ls --sort return, warm", count, took["sorted"], took["bare"], LIMITS.get(count)),
    ]


def _row(name: str, count: int, took: float, bare: float, limit: float | None = None) -> list[str]:
    ratio = took / bare
    return [name, f"{count:,}", f"{took:.3f}", f"{ratio:.1f}", measure.verdict(ratio, limit)]


def _theirs(place: Path, installed: peers.Peers, count: int) -> list[list[str]]:
    rows = []
    for name, prepare in {"trackio": _trackio, "mlflow": mlflow_list, "tensorboard": tensorboard_list}.items():
        if not installed.has(name):
            rows.append([name, f"{count:,}", "not installed", "", ""])
            continue
        folder = place / name
        folder.mkdir()
        label, argv, env = prepare(installed, folder, count)
        bare = measure.best({"bare": [installed.python, "-c", "pass"]}, rounds=5)["bare"]
        took = min(measure.seconds(argv, cwd=folder, env={**peers.QUIET, **env}) for _ in range(2))
        rows.append(_row(label, count, took, bare))
        shutil.rmtree(folder)
    return [*rows, ["wandb offline: has no local list of runs", "", "", "", ""]]


Prepared = tuple[str, measure.Command, dict[str, str]]


def mlflow_list(installed: peers.Peers, folder: Path, count: int) -> Prepared:
    """Make runs in MLflow, and return how it lists them."""
    env = {"MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}
    measure.seconds([installed.python, "-c", MAKE_MLFLOW, str(count)], cwd=folder, env={**peers.QUIET, **env})
    return "mlflow runs list", [installed.program("mlflow"), "runs", "list", "--experiment-id", "0"], env


def _trackio(installed: peers.Peers, folder: Path, count: int) -> Prepared:
    env = {"TRACKIO_DIR": str(folder)}
    measure.seconds([installed.python, "-c", MAKE_TRACKIO, str(count)], cwd=folder, env={**peers.QUIET, **env})
    return "trackio list runs (names only)", [installed.program("trackio"), "list", "runs", "--project", "bench"], env


def tensorboard_list(installed: peers.Peers, folder: Path, count: int) -> Prepared:
    """Make logs of TensorBoard, and return how its reader reads the last values."""
    from rlx.runs.tensorboard_writer import EventWriter

    for number in range(count):
        writer = EventWriter(folder / "logs" / f"run_{number}")
        for step in range(ROWS):
            writer.write(step, {f"m{metric}": step / 7 for metric in range(10)})
        writer.close()
    return "tensorboard's EventAccumulator", [installed.python, "-c", READ_TENSORBOARD, str(folder / "logs")], {}


if __name__ == "__main__":
    main()
