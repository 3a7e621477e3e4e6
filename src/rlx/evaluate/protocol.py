"""How a policy is measured: environment, episodes, their seeds, determinism; with a fingerprint over all of it.

Two evaluations compare only under the same fingerprint. It is taken over the protocol and over what defines the
environment (project files by hash, packages by version; see `sources`), never over the policy or its training seed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlx import files

if TYPE_CHECKING:
    from rlx.config.schema import Env, Experiment, Scenario

Metric = Literal["return", "success_rate", "pass_rate"]
Purpose = Literal["parity", "selection", "report", "fresh", "search", "confirm"]

EPISODE_SEEDS: dict[Purpose, range] = {
    "parity": range(90_000, 100_000),
    "selection": range(100_000, 200_000),
    "report": range(200_000, 300_000),
    "fresh": range(300_000, 1_000_000),
    "search": range(1_000_000, 500_000_000),
    "confirm": range(500_000_000, 1_000_000_000),
}
"""The reserved episode seeds: what chooses the best checkpoint never also reports it. Training stays out of all.

`fresh` ones are used once a run: every evaluation with `--fresh` takes the next. A study's (`search`, `confirm`) begin
at an offset that is drawn when they are needed and recorded: some 5·10⁸ places that nobody can guess.
"""
DRAWN: tuple[Purpose, ...] = ("search", "confirm")


SHARED: tuple[Purpose, ...] = ("parity", "selection")
"""What is played on the same episodes whatever the training seed: there nothing is compared across seeds."""
MOST_TRAINING_SEEDS = 2000


def draw(purpose: Purpose, episodes: int) -> int:
    """Return an unpredictable `first` for the episodes of a study's purpose, with room for every training seed's."""
    return secrets.randbelow(max(1, len(EPISODE_SEEDS[purpose]) - episodes * MOST_TRAINING_SEEDS))


def episode_seeds(purpose: Purpose, first: int, episodes: int, *, seed: int = 0) -> range:
    """Return the episodes that a training seed's policy plays: the same for every policy of that seed.

    Each training seed has its own. On shared ones all seeds of a policy have the same luck, and a test that takes seeds
    for independent would find it to be an effect.
    """
    reserved = EPISODE_SEEDS[purpose]
    left = len(reserved) - first
    if episodes > left:
        from rlx.errors import UsageError

        raise UsageError(f"{episodes} episodes asked for", hint=f"{left} are reserved and unused")
    start = first + seed % (left // episodes) * episodes if purpose not in SHARED else first
    return reserved[start : start + episodes]


REPORT_EPISODES = 20
UNDECLARED_HORIZON = 10_000
"""Where an environment declares no time limit, an episode is cut, and marked as cut, after this many steps."""
_FINGERPRINT_CHARACTERS = 12


@dataclass(frozen=True)
class Protocol:
    """One way of measuring. `root` is the project whose files define the environment; `first` skips episode seeds."""

    env: Env
    episodes: int
    deterministic: bool
    purpose: Purpose
    root: Path
    metric: Metric = "return"
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)
    first: int = 0

    @classmethod
    def of(
        cls, experiment: Experiment, *, root: Path, purpose: Purpose, episodes: int | None = None, first: int = 0
    ) -> Protocol:
        """Return the protocol an experiment is measured by; selection plays scenarios only where they count."""
        settings = experiment.eval
        usual = settings.episodes if purpose == "selection" else settings.report_episodes or REPORT_EPISODES
        metric: Metric = settings.metric or "return"
        has_scenarios = purpose != "selection" or metric == "pass_rate"
        return cls(
            env=_evaluation_env(experiment, root=root),
            episodes=episodes or usual,
            deterministic=settings.deterministic,
            purpose=purpose,
            root=root,
            metric=metric,
            scenarios=settings.scenarios or {} if has_scenarios else {},
            first=first,
        )

    def scenario_env(self, name: str) -> Env:
        """Return the evaluation environment with a scenario's arguments on top."""
        return self.env.model_copy(update={"kwargs": {**self.env.kwargs, **self.scenarios[name].kwargs}})

    def episode_seeds(self, *, seed: int = 0) -> range:
        """Return the seed of every episode that the policy of a training seed plays."""
        return episode_seeds(self.purpose, self.first, self.episodes, seed=seed)

    def fingerprint(self) -> str:
        """Return the name of this protocol: equal exactly where two evaluations may be compared."""
        canonical = json.dumps(self.content, sort_keys=True, default=str)
        return files.sha256(canonical.encode())[:_FINGERPRINT_CHARACTERS]

    @cached_property
    def content(self) -> dict[str, Any]:
        """Everything the fingerprint is taken over. Makes the environment once to see which classes define it."""
        from rlx.envs.make import make_env
        from rlx.evaluate.sources import sources_of

        env = make_env(self.env, root=self.root)
        try:
            sources = sources_of(env, [self.env.id, *(wrapper.name for wrapper in self.env.wrappers)], root=self.root)
        finally:
            env.close()
        seeds = self.episode_seeds()
        return {
            "env": self.env.model_dump(mode="json", include={"id", "kwargs", "wrappers"}),
            "episodes": self.episodes,
            "seeds": [seeds.start, seeds.stop - 1],
            "own_episodes": self.purpose not in SHARED,
            "deterministic": self.deterministic,
            "purpose": self.purpose,
            "undeclared_horizon": UNDECLARED_HORIZON,
            **self._beyond_the_return(),
            "files": sources.files,
            "packages": sources.packages,
        }

    def _beyond_the_return(self) -> dict[str, Any]:
        """Leave out what most protocols do not have, so that their names do not change when there is more to say."""
        scenarios = {name: one.model_dump(mode="json", by_alias=True) for name, one in self.scenarios.items()}
        return {
            **({} if self.metric == "return" else {"metric": self.metric}),
            **({"scenarios": scenarios} if scenarios else {}),
        }


def _evaluation_env(experiment: Experiment, *, root: Path) -> Env:
    """Return `eval.env` where it says something, else the training environment without what only shapes rewards."""
    own = experiment.eval.env
    changes: dict[str, Any] = {
        "wrappers": tuple(one for one in experiment.env.wrappers if not _only_shapes_reward(one.name, root)),
    }
    if own is not None:
        named = {"id": own.id, "kwargs": own.kwargs, "wrappers": own.wrappers}
        changes |= {key: value for key, value in named.items() if value is not None}
    return experiment.env.model_copy(update=changes)


def _only_shapes_reward(name: str, root: Path) -> bool:
    """Say whether a wrapper can change nothing but the reward: a policy is measured in the environment's own."""
    from rlx.envs.make import changes_only_reward

    return changes_only_reward(name, root=root)
