"""The configs that ship with rlx: tuned configs with the return that they were measured to reach."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlx.errors import NotFound, hint_for

PREFIX = "catalog:"


@dataclass(frozen=True)
class MeasuredReturn:
    """The measured result of a catalog config: at least `reward` in `reached` of `seeds` training seeds."""

    reward: float
    reached: int
    seeds: int
    steps: int
    cpu_seconds: float


@dataclass(frozen=True)
class CatalogEntry:
    """A catalog config: its environment and its measured return, if there is one."""

    env_id: str
    seen: MeasuredReturn | None = None


ENTRIES: dict[str, CatalogEntry] = {
    "cartpole": CatalogEntry("CartPole-v1", MeasuredReturn(475, 5, 5, 100_000, 16)),
    "acrobot": CatalogEntry("Acrobot-v1", MeasuredReturn(-100, 5, 5, 200_000, 12)),
    "mountain_car": CatalogEntry("MountainCar-v0", MeasuredReturn(-110, 5, 5, 80_000, 24)),
    "mountain_car_continuous": CatalogEntry("MountainCarContinuous-v0", MeasuredReturn(90, 5, 5, 40_000, 2)),
    "pendulum": CatalogEntry("Pendulum-v1", MeasuredReturn(-200, 4, 5, 100_000, 6)),
    "frozen_lake": CatalogEntry("FrozenLake-v1", MeasuredReturn(0.7, 4, 5, 200_000, 9)),
    "taxi": CatalogEntry("Taxi-v4", MeasuredReturn(7, 5, 5, 200_000, 226)),
    "lunar_lander": CatalogEntry("LunarLander-v3", MeasuredReturn(200, 4, 5, 400_000, 40)),
    "bipedal_walker": CatalogEntry("BipedalWalker-v3", MeasuredReturn(240, 5, 5, 800_000, 201)),
    "hopper": CatalogEntry("Hopper-v5", MeasuredReturn(1400, 4, 5, 300_000, 63)),
    "half_cheetah": CatalogEntry("HalfCheetah-v5", MeasuredReturn(1400, 5, 5, 300_000, 41)),
    "cartpole_dqn": CatalogEntry("CartPole-v1", MeasuredReturn(475, 3, 3, 50_000, 43)),
    "pendulum_sac": CatalogEntry("Pendulum-v1", MeasuredReturn(-160, 3, 3, 8_000, 32)),
    "pendulum_td3": CatalogEntry("Pendulum-v1", MeasuredReturn(-160, 3, 3, 10_000, 27)),
}
"""Measured by `bench/catalog.py`, the whole table in `bench/catalog.md`; CPU seconds are the worst seed's."""


def names() -> list[str]:
    """Return the names of all entries."""
    return list(ENTRIES)


def path(name: str) -> Path:
    """Return the file of an entry."""
    if name not in ENTRIES:
        hint = hint_for(PREFIX + name, [PREFIX + entry for entry in ENTRIES], otherwise=f"known: {', '.join(ENTRIES)}")
        raise NotFound(f"no catalog config `{name}`", hint=hint)
    return Path(__file__).parent / "catalog" / f"{name}.yaml"


def for_env(env_id: str) -> str | None:
    """Return the first entry for an environment, if there is one: entries of other algorithms follow it."""
    return next((name for name, entry in ENTRIES.items() if entry.env_id == env_id), None)


def read(name: str) -> str:
    """Return the text of an entry, with its comments."""
    return path(name).read_text(encoding="utf-8")
