"""A protocol: how a policy is measured (environment, episodes, seeds, determinism), with a fingerprint over all of it.

Two evaluations are comparable only if they have the same fingerprint. It covers the protocol and everything that
defines the environment: project files by hash, packages by version (see `env_sources`). It never covers the policy or
its training seed.
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

# The reserved episode seeds. Episodes that select a checkpoint never report it, and training uses none of them.
# A run uses `fresh` episodes once: every evaluation with `--fresh` takes the next. A study's episodes (`search`,
# `confirm`) start at a random offset that rlx draws when it needs them: about 5·10⁸ places that cannot be guessed.
EPISODE_SEEDS: dict[Purpose, range] = {
    "parity": range(90_000, 100_000),
    "selection": range(100_000, 200_000),
    "report": range(200_000, 300_000),
    "fresh": range(300_000, 1_000_000),
    "search": range(1_000_000, 500_000_000),
    "confirm": range(500_000_000, 1_000_000_000),
}
DRAWN: tuple[Purpose, ...] = ("search", "confirm")


# Purposes that play the same episodes for every training seed, because nothing is compared across seeds there.
SHARED: tuple[Purpose, ...] = ("parity", "selection")
MOST_TRAINING_SEEDS = 2**20


def draw_first_episode(purpose: Purpose, episodes: int) -> int:
    """Return a random `first` for a study's episodes that leaves room for every training seed.

    Long evaluations leave half of the range: then two training seeds hardly ever share episodes.
    """
    reserved = len(EPISODE_SEEDS[purpose])
    return secrets.randbelow(reserved - min(episodes * MOST_TRAINING_SEEDS, reserved // 2))


def episode_seeds(purpose: Purpose, first: int, episodes: int, *, seed: int = 0) -> range:
    """Return the episodes that a policy of a training seed plays: the same for every policy of that seed.

    Each training seed has its own episodes. On shared ones all seeds of a policy would have the same luck, and a test
    that treats seeds as independent would mistake it for an effect.
    """
    reserved = EPISODE_SEEDS[purpose]
    left = len(reserved) - first
    if episodes > left:
        from rlx.errors import UsageError

        raise UsageError(f"{episodes} episodes are too many", hint=f"{left} are reserved and unused")
    if purpose not in SHARED:
        first += seed % (left // episodes) * episodes
    return reserved[first : first + episodes]


REPORT_EPISODES = 20
# If an environment declares no time limit, rlx cuts an episode after this many steps and marks it as cut.
UNDECLARED_HORIZON = 10_000
_FINGERPRINT_CHARACTERS = 12


@dataclass(frozen=True)
class Protocol:
    """One way to measure. `root` is the project whose files define the environment. `first` skips episode seeds."""

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
        """Return an experiment's protocol. Selection plays scenarios only if the metric is their pass rate."""
        settings = experiment.eval
        metric: Metric = settings.metric or "return"
        scenarios = settings.scenarios or {}
        usual = settings.report_episodes or REPORT_EPISODES
        if purpose == "selection":
            usual = settings.episodes
            if metric != "pass_rate":
                scenarios = {}
        return cls(
            env=_evaluation_env(experiment, root=root),
            episodes=episodes or usual,
            deterministic=settings.deterministic,
            purpose=purpose,
            root=root,
            metric=metric,
            scenarios=scenarios,
            first=first,
        )

    def scenario_env(self, name: str) -> Env:
        """Return the evaluation environment with a scenario's arguments on top."""
        return self.env.model_copy(update={"kwargs": {**self.env.kwargs, **self.scenarios[name].kwargs}})

    def episode_seeds(self, *, seed: int = 0) -> range:
        """Return the seed of every episode that the policy of a training seed plays."""
        return episode_seeds(self.purpose, self.first, self.episodes, seed=seed)

    def fingerprint(self) -> str:
        """Return the name of this protocol. Two evaluations are comparable exactly if it is equal."""
        canonical = json.dumps(self.content, sort_keys=True, default=str)
        return files.sha256(canonical.encode())[:_FINGERPRINT_CHARACTERS]

    @cached_property
    def content(self) -> dict[str, Any]:
        """Everything that the fingerprint covers. It makes the environment once to find the classes that define it."""
        from rlx.envs.make import make_env
        from rlx.evaluate.env_sources import find_sources

        env = make_env(self.env, root=self.root)
        try:
            sources = find_sources(env, [self.env.id, *(wrapper.name for wrapper in self.env.wrappers)], root=self.root)
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
            **self._optional_content(),
            "files": sources.files,
            "packages": sources.packages,
        }

    def _optional_content(self) -> dict[str, Any]:
        """Return the parts that most protocols do not have. Leaving them out keeps old fingerprints valid."""
        content: dict[str, Any] = {}
        if self.metric != "return":
            content["metric"] = self.metric
        if self.scenarios:
            dumped = {name: item.model_dump(mode="json", by_alias=True) for name, item in self.scenarios.items()}
            content["scenarios"] = dumped
        return content


def _evaluation_env(experiment: Experiment, *, root: Path) -> Env:
    """Return the training environment without wrappers that only shape rewards, changed by `eval.env`."""
    from rlx.envs.make import changes_only_reward

    own = experiment.eval.env
    changes: dict[str, Any] = {
        "wrappers": tuple(
            wrapper for wrapper in experiment.env.wrappers if not changes_only_reward(wrapper.name, root=root)
        ),
    }
    if own is not None:
        named = {"id": own.id, "kwargs": own.kwargs, "wrappers": own.wrappers}
        changes |= {key: value for key, value in named.items() if value is not None}
    return experiment.env.model_copy(update=changes)
