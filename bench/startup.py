"""Measure start-up: the cost of one command as a multiple of the bare interpreter's start, next to the peers.

python bench/startup.py [--peers VENV] [--rounds 20]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rig import measure, peers
from rig.synthetic import make_runs

LIMITS = {"rlx --help": 6.0}
PEER_ROUNDS = 3


def main() -> None:
    parser = peers.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    rlx = Path(sys.executable).with_name("rlx")
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "project"
        make_runs(root, 10)
        ours = measure.best(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "rlx --help": [rlx, "--help"],
                "rlx ls (10 runs)": [rlx, "ls"],
                "rlx info RUN": [rlx, "info", "synthetic_001"],
                "rlx tag RUN x": [rlx, "tag", "synthetic_002", "x"],
                "import rlx": [sys.executable, "-c", "import rlx"],
            },
            rounds=args.rounds,
            cwd=root,
        )
    rows = [_row(name, took, ours["python -c pass"]) for name, took in ours.items()]
    measure.show(
        f"start-up, best of {args.rounds}", ["command", "seconds", "× python", "promise"], rows + _peer_rows(args.peers)
    )


def _row(name: str, took: float, bare: float) -> list[str]:
    ratio = took / bare
    return [name, f"{took:.3f}", f"{ratio:.1f}", measure.verdict(ratio, LIMITS.get(name))]


def _peer_rows(folder: Path) -> list[list[str]]:
    installed = peers.Peers(folder)
    commands = {
        "tensorboard --version": ["tensorboard", "--version"],
        "trackio --help": ["trackio", "--help"],
        "wandb --version": ["wandb", "--version"],
        "mlflow --version": ["mlflow", "--version"],
    }
    rows = []
    for name, (program, option) in commands.items():
        if not installed.has(program):
            rows.append([name, "not installed", "", ""])
            continue
        argv = [installed.program(program), option]
        both = {"bare": [installed.python, "-c", "pass"], name: argv}
        took = measure.best(both, rounds=PEER_ROUNDS)
        rows.append(_row(name, took[name], took["bare"]))
    return rows


if __name__ == "__main__":
    main()
