"""A real study whose trainings are only told: rows of jobs and scores in its ledger, without a process."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from rlx import files
from rlx.hosts.cli.main import call
from rlx.launch.study_jobs import launch_candidate
from rlx.loop.study.approve import approve
from rlx.loop.study.new_study import Wishes, new_study
from rlx.loop.study.propose import propose
from rlx.study.ledger.ledger import Event
from rlx.study.ledger.state import State
from rlx.study.situation import pool_size
from rlx.study.study_folder import Study, find_study
from tests.faults.lab import copy_project
from tests.study.story import Story

CONFIG = "env: {id: CartPole-v1}\nalgo: {name: ppo, total_timesteps: 64}\n"
_KEPT = tempfile.TemporaryDirectory(prefix="told-")
WISHES = Wishes(seeds=60, hours=2.0, keys=("algo.*",), settings=("budget.per_seed_minutes=1", "metric.seeds=2"))


def repository(root: Path) -> Path:
    """Return a project in git with one config."""
    (root / "configs").mkdir(parents=True)
    (root / "configs" / "pole.yaml").write_text(CONFIG)
    (root / "rlx.toml").write_text("schema = 1\n")
    (root / ".gitignore").write_text("/runs/\n/.rlx/\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "as it is")):
        git(root, *words)
    return root


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


def typed(root: Path, command: str, *more: str, code: int = 0) -> dict[str, Any]:
    """Type a command of rlx in a folder; return what it answers."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.chdir(root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        found = call([*shlex.split(command)[1:], *more, "--json"])
    assert found == code, out.getvalue() + errors.getvalue()
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


@functools.cache
def _approved(wishes: Wishes) -> Path:
    """Return a repository with an approved study, which this process makes once."""
    root = repository(Path(_KEPT.name) / str(_approved.cache_info().currsize))
    new_study(root, "faster", wishes, config=root / "configs" / "pole.yaml")
    approve(find_study(root), by="tester")
    return root


class Told(Story):
    """An approved study with a full pool; what is told after that goes into its ledger."""

    def __init__(
        self, root: Path, wishes: Wishes = WISHES, *, scores: tuple[float, ...] = (), copied: Path | None = None
    ) -> None:
        """Begin with a pool whose seeds score better and better, or these one after the other, again and again.

        `copied` is the repository of another such study to begin with.
        """
        copy_project(copied or _approved(wishes), root)
        self.study: Study = find_study(root)
        if copied is not None:
            return
        pool = tuple(range(pool_size(self.study.contract())))
        self.job(
            "b",
            "baseline",
            "baseline",
            pool,
            scores=tuple(scores[seed % len(scores)] if scores else 100.0 + seed for seed in pool),
        )

    def tell(self, kind: str, /, **fields: Any) -> Event:
        return self.study.ledger.append(kind, **fields)

    def evaluate(self, name: str, phase: str, seed: int, score: float, **fields: Any) -> None:
        """Tell a score, with the evaluator's document that it comes from, unless the caller wrote one."""
        if "sha256" in fields:
            super().evaluate(name, phase, seed, score, **fields)
            return
        metric = self.study.contract().metric
        assert metric is not None
        document: dict[str, Any] = {"level": fields.get("level", "sealed"), "figures": {metric.name: score}}
        if math.isnan(score):
            document["failure"] = {"says": "it failed"}
        if "parameters" in fields:
            document["parameters"] = fields["parameters"]
        path = self.study.folder / fields.get("file", f"evidence/{name}-{phase}-{seed}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files.encode(document))
        super().evaluate(name, phase, seed, score, sha256=files.sha256(path.read_bytes()), **fields)

    @property
    def state(self) -> State:
        return self.study.state()

    def proposed(self, rate: float) -> str:
        """Propose another step size; return the candidate's id."""
        hypothesis = f"a step of {rate:g} learns faster"
        document = {"kind": "hyperparameter", "hypothesis": hypothesis, "changes": {"algo.learning_rate": rate}}
        return str(propose(self.study, document)["candidate"])

    def checked(self, rate: float) -> str:
        """Propose another step size and check it."""
        identity = self.proposed(rate)
        launch_candidate.check(self.study, identity)
        return identity

    def trained(self, identity: str, scores: tuple[float, ...], *, seeds: tuple[int, ...] = (0, 1, 2)) -> None:
        """Tell a trial of a checked candidate and what its seeds scored."""
        plan = self.state.candidates[identity].plan
        job = f"{identity}-{seeds[0]}"
        self.intend(job, identity, "trial", seeds, plan=plan)
        self.start(job)
        self.end(job, seeds)
        for seed, score in zip(seeds, scores, strict=True):
            self.evaluate(identity, "trial", seed, score)
