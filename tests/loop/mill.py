"""A repository with a training and an evaluation of a few lines, which end in every way there is, and its study."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from tests.faults.lab import Lab, commit

TRAIN = '''\
"""Leaves a number as its policy; the key `how` says how it ends."""
import json, pathlib, sys, time

seed, out = int(sys.argv[1]), pathlib.Path(sys.argv[2])
told = dict(one.split("=", 1) for one in sys.argv[3:])
how, gain, heat = told.get("how", "HOW"), float(told.get("gain", "0")), float(told.get("heat", "0"))
if how == "crash" or (how == "some" and seed == 0):
    raise KeyError("nothing works")
if how == "hog":
    raise MemoryError("cannot have so much")
if how in ("stay", "slow"):
    time.sleep({"stay": 600, "slow": 5}[how])
with open(out / "log.jsonl", "a") as log:
    log.write(json.dumps({"step": 10, "loss": 1.0}) + "\\n")
(out / "policy").write_text(f"{gain + seed * 37 % 11 / 10},{how},{seed},{heat}")
'''
EVAL = '''\
"""Reads the number back; of some policies it cannot, of others it is none."""
import json, pathlib, sys, time

checkpoint, result, _ = sys.argv[1:]
score, how, seed, heat = pathlib.Path(checkpoint).read_text().split(",")
if how == "endless":
    time.sleep(600)
if how == "mute" or (how == "some mute" and seed == "0"):
    raise ValueError("there is nothing to measure")
figures = {"success": float("nan") if how == "nan" else float(score), "heat": float(heat)}
pathlib.Path(result).write_text(json.dumps(figures))
'''

_READY: dict[tuple[str, ...], Mill] = {}


@dataclass(frozen=True)
class Mill(Lab):
    """An approved study of the mill, and whoever types commands there."""

    task: str = "mill"
    name: str = "more"

    @classmethod
    def built(
        cls, root: Path, *settings: str, how: str = "well", programs: tuple[str, str] | None = None,
        describes: tuple[str, ...] = (),
    ) -> Self:  # fmt: skip
        """Build a mill whose training ends so, unless a candidate says otherwise; its contract has these settings.

        `programs` are others that train and measure; `describes` are settings of its task.
        """
        mill = cls(root)
        train, measure = programs or (TRAIN, EVAL)
        root.mkdir(parents=True)
        for name, text in {
            "train.py": train.replace("HOW", how), "eval.py": measure, "rlx.toml": "",
            ".gitignore": "/runs/\n/.rlx/\n",
        }.items():  # fmt: skip
            (root / name).write_text(text)
        commit(root)
        python = shlex.quote(sys.executable)
        mill.types(
            "task", "new", "mill", "--mission", "Grind more.", "--steps", "10", "--metrics", "jsonl:{out}/log.jsonl",
            "--train", f"{python} train.py {{seed}} {{out}} {{overrides}}", "--override", "{key}={value}",
            "--eval", f"{python} eval.py {{checkpoint}} {{result}} {{episode_seed}}", "--checkpoint", "{out}/policy",
            "--result", "jsonl:{result}", "--result-name", "success", "--result-name", "heat",
            "--surface", "evaluator=eval.py",
        )  # fmt: skip
        for one in describes:
            mill.types("task", "refresh", "mill", "-s", one)
        usual = ("metric.seeds=2", "budget.per_seed_minutes=1", "automation.unattended=true", *settings)
        mill.types(
            "study", "new", "more", "--metric", "success:max", "--key", "how", "--key", "gain", "--key", "heat",
            "--seeds", "60", "--hours", "1", *(word for one in usual for word in ("-s", one)),
        )  # fmt: skip
        mill.types("study", "approve", "--yes", "--by", "tester")
        return mill

    @classmethod
    def ready(cls, root: Path, factory: pytest.TempPathFactory, *settings: str) -> Self:
        """Return a mill whose pool is full: a copy of one that this process builds once for these settings."""
        if settings not in _READY:
            _READY[settings] = cls.built(factory.mktemp("ready") / "mill", *settings)
            _READY[settings].types("study", "baseline")
        return cls(_READY[settings].copied(root))

    def proposes(self, **changes: object) -> str:
        """Propose other values of the keys and check them; return the candidate's id."""
        words = [word for key, value in changes.items() for word in ("-s", f"{key}={value}")]
        made = self.types("propose", "--kind", "hyperparameter", "--hypothesis", f"it gains by {changes}", *words)
        self.types("check", "candidate", made["candidate"])
        return str(made["candidate"])

    def trains(self, identity: str, *, code: int = 0) -> str:
        """Launch the trial of a checked candidate and wait for its end; return its run."""
        plan = self.study.state().candidates[identity].plan
        run = str(self.types("launch", identity, "--plan", str(plan))["run"])
        self.types("wait", run, "--timeout", "120", code=code)
        return run
