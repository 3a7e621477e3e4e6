"""How a policy is measured: environment, episodes, their seeds, determinism; with a fingerprint over all of it.

Two evaluations compare only under the same fingerprint. It is taken over the protocol and over what defines the
environment (project files by hash, packages by version; see `sources`), never over the policy or its training seed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlx import files

if TYPE_CHECKING:
    from rlx.config.schema import Env, Experiment

Purpose = Literal["parity", "selection", "report"]

EPISODE_SEEDS: dict[Purpose, range] = {
    "parity": range(90_000, 100_000),
    "selection": range(100_000, 200_000),
    "report": range(200_000, 300_000),
}
"""The reserved episode seeds: what chooses the best checkpoint never also reports it. Training stays out of all."""

REWARD_SCALING = ("clip_reward", "scale_reward")
"""Wrappers that only help the optimiser: a policy is measured in the reward the environment gives."""
REPORT_EPISODES = 20
UNDECLARED_HORIZON = 10_000
"""Where an environment declares no time limit, an episode is cut, and marked as cut, after this many steps."""
_FINGERPRINT_CHARACTERS = 12


@dataclass(frozen=True)
class Protocol:
    """One way of measuring. `root` is the project whose files define the environment."""

    env: Env
    episodes: int
    deterministic: bool
    purpose: Purpose
    root: Path

    @classmethod
    def of(cls, experiment: Experiment, *, root: Path, purpose: Purpose, episodes: int | None = None) -> Protocol:
        """Return the protocol an experiment is measured by; `report` always has 20 episodes unless told otherwise."""
        usual = experiment.eval.episodes if purpose == "selection" else REPORT_EPISODES
        return cls(
            env=_in_raw_reward(experiment.env),
            episodes=episodes or usual,
            deterministic=experiment.eval.deterministic,
            purpose=purpose,
            root=root,
        )

    def episode_seeds(self) -> range:
        """Return the seed of every episode; the same for every policy and every training seed."""
        reserved = EPISODE_SEEDS[self.purpose]
        if self.episodes > len(reserved):
            from rlx.errors import UsageError

            raise UsageError(f"{self.episodes} episodes asked for", hint=f"at most {len(reserved)} are reserved")
        return reserved[: self.episodes]

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
            "deterministic": self.deterministic,
            "purpose": self.purpose,
            "undeclared_horizon": UNDECLARED_HORIZON,
            "files": sources.files,
            "packages": sources.packages,
        }


def _in_raw_reward(env: Env) -> Env:
    kept = tuple(wrapper for wrapper in env.wrappers if wrapper.name not in REWARD_SCALING)
    return env.model_copy(update={"wrappers": kept})
