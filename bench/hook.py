"""Measure the agents' hook: the time it adds to every tool call, in other repositories and inside an approved study.

python bench/hook.py [--rounds 30]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from rig import measure

import rlx.hosts

GATE = Path(rlx.hosts.__file__).parent / "plugin" / "hooks" / "gate.sh"
MOST_MILLISECONDS = 50
VIEW = {"approved": True, "worktrees": ".rlx/w", "train": ["train.py"], "surface": ["reward.py"], "protected": []}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        other, study = Path(place) / "other", Path(place) / "study"
        _make(other, study)
        took = measure.best({"sh -c :": ["sh", "-c", ":"], **_calls(Path(place), other, study)}, rounds=args.rounds)
    rows = [_row(name, 1000 * seconds) for name, seconds in took.items()]
    measure.show(f"the hook, best of {args.rounds}", ["call", "milliseconds", "promise"], rows)


def _row(name: str, took: float) -> list[str]:
    promise = MOST_MILLISECONDS if name.startswith("other repository") else None
    return [name, f"{took:.1f}", measure.verdict(took, promise)]


def _make(other: Path, study: Path) -> None:
    other.mkdir()
    folder = study / ".rlx/tasks/t/studies/s"
    folder.mkdir(parents=True)
    (study / ".rlx/active.json").write_text('{"task": "t", "study": "s"}')
    (folder / "hook.json").write_text(json.dumps(VIEW))


def _calls(place: Path, other: Path, study: Path) -> dict[str, list[str]]:
    bash, write = "Bash", "Write"
    asked = {
        "other repository, a command": (other, bash, {"command": "cd src && ls -la | head"}),
        "other repository, an edit": (other, write, {"file_path": f"{other}/a.py", "content": "x" * 20_000}),
        "other repository, a training": (other, bash, {"command": "python train.py | tee log"}),
        "other repository, a training and a path": (other, bash, {"command": "cd src/a && python train.py"}),
        "approved study, allowed": (study, bash, {"command": "rlx next --json"}),
        "approved study, denied": (study, bash, {"command": "python train.py"}),
    }
    commands = {}
    for number, (name, (cwd, tool, given)) in enumerate(asked.items()):
        path = place / f"{number}.json"
        path.write_text(json.dumps({"cwd": str(cwd), "tool_name": tool, "tool_input": given}))
        commands[name] = ["sh", "-c", f"cd '{cwd}' && sh '{GATE}' < '{path}'"]
    return commands


if __name__ == "__main__":
    main()
