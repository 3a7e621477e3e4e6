"""A real study whose trainings are only told: rows of jobs and scores in its ledger, without a process."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

from rlx.hosts.cli.main import call
from rlx.launch import door
from rlx.loop.approving import approve
from rlx.loop.founding import Wishes, new_study
from rlx.loop.proposals import propose
from rlx.study.ledger import Event
from rlx.study.state import State
from rlx.study.study import Study, find
from tests.study.story import Story

CONFIG = "env: {id: CartPole-v1}\nalgo: {name: ppo, total_timesteps: 64}\n"
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


class Told(Story):
    """An approved study with a full pool; what is told after that goes into its ledger."""

    def __init__(self, root: Path, wishes: Wishes = WISHES, *, scores: tuple[float, ...] = ()) -> None:
        """Begin with a pool whose seeds score better and better, or these one after the other, again and again."""
        repository(root)
        new_study(root, "faster", wishes, config=root / "configs" / "pole.yaml")
        self.study: Study = find(root)
        approve(self.study, by="tester")
        pool = tuple(range(door.pool_seeds(self.study.contract())))
        self.job(
            "b",
            "baseline",
            "baseline",
            pool,
            scores=tuple(scores[seed % len(scores)] if scores else 100.0 + seed for seed in pool),
        )

    def tell(self, kind: str, /, **fields: Any) -> Event:
        return self.study.ledger.append(kind, **fields)

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
        door.check(self.study, identity)
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
