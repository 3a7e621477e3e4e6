"""The configs that ship with rlx: one per environment, tuned, with the return each was seen to reach."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlx.errors import NotFound, did_you_mean

PREFIX = "catalog:"


@dataclass(frozen=True)
class Seen:
    """What a catalog config was measured to reach: at least `reward` in `reached` of `seeds` training seeds."""

    reward: float
    reached: int
    seeds: int
    steps: int
    cpu_seconds: float


@dataclass(frozen=True)
class Entry:
    """A catalog config: its environment, and what was measured, once it was."""

    env_id: str
    seen: Seen | None = None


ENTRIES: dict[str, Entry] = {
    "cartpole": Entry("CartPole-v1", Seen(475, 5, 5, 100_000, 16)),
    "acrobot": Entry("Acrobot-v1", Seen(-100, 5, 5, 200_000, 12)),
    "mountain_car": Entry("MountainCar-v0", Seen(-110, 5, 5, 80_000, 24)),
    "mountain_car_continuous": Entry("MountainCarContinuous-v0", Seen(90, 5, 5, 40_000, 2)),
    "pendulum": Entry("Pendulum-v1", Seen(-200, 4, 5, 100_000, 6)),
    "frozen_lake": Entry("FrozenLake-v1", Seen(0.7, 4, 5, 200_000, 9)),
    "taxi": Entry("Taxi-v4", Seen(7, 5, 5, 200_000, 226)),
    "lunar_lander": Entry("LunarLander-v3", Seen(200, 4, 5, 400_000, 40)),
    "bipedal_walker": Entry("BipedalWalker-v3", Seen(240, 5, 5, 800_000, 201)),
    "hopper": Entry("Hopper-v5", Seen(1400, 4, 5, 300_000, 63)),
    "half_cheetah": Entry("HalfCheetah-v5", Seen(1400, 5, 5, 300_000, 41)),
}
"""Measured by `bench/catalog.py`, the whole table in `bench/catalog.md`; CPU seconds are the worst seed's."""


def names() -> list[str]:
    """Return the names of all entries."""
    return list(ENTRIES)


def path(name: str) -> Path:
    """Return the file of an entry."""
    if name not in ENTRIES:
        near = did_you_mean(name, names())
        raise NotFound(
            f"no catalog config `{name}`",
            hint=f"did you mean `{PREFIX}{near}`?" if near else f"known: {', '.join(names())}",
        )
    return Path(__file__).parent / "catalog" / f"{name}.yaml"


def for_env(env_id: str) -> str | None:
    """Return the entry for an environment, if there is one."""
    return next((name for name, entry in ENTRIES.items() if entry.env_id == env_id), None)


def read(name: str) -> str:
    """Return the text of an entry, comments and all."""
    return path(name).read_text(encoding="utf-8")
