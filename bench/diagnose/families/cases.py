"""The cases: families of environments, healthy trainings (long, short, cautious) and faults, three seeds each.

A family belongs wholly to `dev`, `unseen` or `fresh`. No limit of a rule may be chosen on an unseen family. The `fresh`
families were written later: rlx judged them once before anything was changed because of them (`unseen.md` has both
figures). They also train DQN, SAC and TD3, with the faults that only off-policy training has.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

from rlx import files

DEV = ("Reaching", "SparseLine", "Tank")
UNSEEN = ("Docking", "Navigation", "KeyDoor", "Runner", "Tracking", "Landing", "Sorting")
STEPS = {"Reaching": 40_000, "SparseLine": 12_000, "Tank": 30_000, "Docking": 60_000, "Navigation": 40_000,
         "KeyDoor": 50_000, "Runner": 40_000, "Tracking": 40_000, "Landing": 30_000, "Sorting": 12_000}  # fmt: skip
FRESH = {  # family → world, algorithm, steps
    "Harbor": ("Harbor", "ppo", 60_000), "Catch": ("Catch", "ppo", 40_000), "Pole": ("Pole", "ppo", 40_000),
    "Forage": ("Forage", "ppo", 40_000), "CatchDqn": ("Catch", "dqn", 10_000), "CoolingSac": ("Cooling", "sac", 4_000),
    "ParkingTd3": ("Parking", "td3", 5_000),
}  # fmt: skip
SEEDS = (0, 1, 2)
ROWS = 30

HEALTHY: dict[str, dict[str, Any]] = {
    "tuned": {},
    "short": {"algo.total_timesteps": 0.4},
    "slower": {"algo.learning_rate": 1e-3},
}
FAULTS: dict[str, dict[str, Any]] = {
    "rate_high": {"algo.learning_rate": 0.1},
    "rate_low": {"algo.learning_rate": 1e-7},
    "entropy_high": {"algo.entropy_coef": 1.0},
    "short_sighted": {"algo.gamma": 0.05},
    "deaf": {"env.kwargs": {"fault": "deaf"}},
    "blind": {"env.kwargs": {"fault": "blind"}},
    "noisy": {"env.kwargs": {"fault": "noisy"}},
    "nan": {"env.kwargs": {"fault": "nan"}},
    "sign": {"env.kwargs": {"fault": "sign"}},
    "bribe": {"env.kwargs": {"fault": "bribe"}},
}
OFF_POLICY_FAULTS: dict[str, dict[str, Any]] = {
    "starts_late": {"algo.learning_starts": 0.95},
    "few_updates": {"algo.train_every": 256},
}
DQN_FAULTS: dict[str, dict[str, Any]] = {
    "replay_tiny": {"algo.buffer_size": 64},
    "target_never": {"algo.target_update_every": 1_000_000},
    "explores_forever": {"algo.exploration_fraction": 1.0, "algo.exploration_final": 1.0},
}
COSTLY_FAULTS = ("rate_high", "deaf", "blind", "sign")
"""The general faults of algorithms whose training takes a minute."""
VARIANTS = {**HEALTHY, **FAULTS, **OFF_POLICY_FAULTS, **DQN_FAULTS}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {"rollout_steps": 128, "batch_size": 256, "update_epochs": 6, "learning_rate": 2e-3, "gamma": 0.97,
            "gae_lambda": 0.95, "entropy_coef": 0.002},
    "dqn": {"learning_rate": 1e-3, "batch_size": 64, "gamma": 0.95, "buffer_size": 20_000, "learning_starts": 500,
            "train_every": 4, "gradient_steps": 1, "target_update_every": 250, "exploration_fraction": 0.4,
            "exploration_final": 0.05},
    "sac": {"learning_rate": 1e-3, "batch_size": 128, "gamma": 0.97, "buffer_size": 20_000, "learning_starts": 200,
            "train_every": 1, "gradient_steps": 1, "tau": 0.01},
    "td3": {"learning_rate": 1e-3, "batch_size": 128, "gamma": 0.97, "buffer_size": 20_000, "learning_starts": 400,
            "train_every": 1, "gradient_steps": 1, "tau": 0.01},
}  # fmt: skip
OF_SHARE = ("algo.total_timesteps", "algo.learning_starts")
"""Keys whose changes are shares of the steps."""


@dataclass(frozen=True)
class FamilyCase:
    """One seed of a healthy training, or of one with a fault, in one family."""

    family: str
    variant: str
    seed: int

    @property
    def is_healthy(self) -> bool:
        return self.variant in HEALTHY

    @property
    def split(self) -> str:
        if self.family in FRESH:
            return "fresh"
        return "dev" if self.family in DEV else "unseen"

    @property
    def run_name(self) -> str:
        return f"{self.family}/{self.variant}"

    @property
    def name(self) -> str:
        return f"{self.run_name}/{self.seed}"

    @property
    def config(self) -> dict[str, Any]:
        config = _tuned(self.family)
        steps = config["algo"]["total_timesteps"]
        for key, value in VARIANTS[self.variant].items():
            section, _, name = key.rpartition(".")
            if key in OF_SHARE:
                value = int(value * steps)
            config[section][name] = value
        if self.variant == "slower":
            config["algo"]["learning_rate"] = _tuned(self.family)["algo"]["learning_rate"] / 2
        total = config["algo"]["total_timesteps"]
        config["log"] = {"every": total // ROWS}
        config["eval"] = {"every": total // 4, "episodes": 5, "report_episodes": 20}
        config["checkpoint"] = {"save_every": total, "keep": 0}
        return config

    @property
    def plan(self) -> str:
        """A hash of the config: a stored line of another plan does not count."""
        return files.sha256(files.encode(self.config))[:12]


def _tuned(family: str) -> dict[str, Any]:
    if family in FRESH:
        world, algorithm, steps = FRESH[family]
        return deepcopy({
            "backend": "fast" if algorithm == "ppo" else "sb3",
            "env": {"id": f"families.fresh_worlds:{world}", "num_envs": 8 if algorithm == "ppo" else 1, "kwargs": {}},
            "algo": {"name": algorithm, "total_timesteps": steps, **ALGORITHMS[algorithm]},
            "policy": {"hidden_sizes": [32, 32] if algorithm == "ppo" else [64, 64]},
        })  # fmt: skip
    return deepcopy(
        {
            "backend": "fast",
            "env": {"id": f"families.worlds:{family}", "num_envs": 8, "kwargs": {}},
            "algo": {"name": "ppo", "total_timesteps": STEPS[family], **ALGORITHMS["ppo"]},
            "policy": {"hidden_sizes": [32, 32]},
        }
    )


@cache
def cases() -> tuple[FamilyCase, ...]:
    """Return every case, healthy ones first."""
    return tuple(
        FamilyCase(family, variant, seed)
        for variant in VARIANTS
        for family in (*DEV, *UNSEEN, *FRESH)
        if variant in _variants(family)
        for seed in SEEDS
    )


def _variants(family: str) -> tuple[str, ...]:
    """Return the healthy trainings and the faults of a family, which depend on its algorithm."""
    algorithm = FRESH[family][1] if family in FRESH else "ppo"
    if algorithm == "ppo":
        return (*HEALTHY, *FAULTS)
    if algorithm == "dqn":
        return (*HEALTHY, *COSTLY_FAULTS, *OFF_POLICY_FAULTS, *DQN_FAULTS)
    return (*HEALTHY, *COSTLY_FAULTS, *OFF_POLICY_FAULTS)
