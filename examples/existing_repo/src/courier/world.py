"""The square: many couriers at once, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HORIZON = 80
POND = 0.35
DOOR = 0.12
STANDING = 0.25
DRAG = 0.85
THRUST = 0.12
WIND = 0.02
OBSERVATION_SIZE = 7
ACTION_SIZE = 2


@dataclass(frozen=True)
class Step:
    """What one step did to each courier; `alive` were on their way before it."""

    progress: np.ndarray
    effort: np.ndarray
    drowned: np.ndarray
    arrived: np.ndarray
    alive: np.ndarray


class Square:
    """Couriers that start at one edge and have to stop at a door at the opposite one."""

    def __init__(self, count: int, rng: np.random.Generator) -> None:
        self.rng = rng
        angle = rng.uniform(0, 2 * np.pi, count)
        start = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        turn = angle + np.pi + rng.uniform(-0.5, 0.5, count)
        self.position = start
        self.velocity = np.zeros((count, 2))
        self.door = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        self.breeze = rng.normal(0.0, WIND, (count, 2))
        self.alive = np.ones(count, dtype=bool)
        self.success = np.zeros(count, dtype=bool)
        self.time = 0

    def observe(self) -> np.ndarray:
        """Return what couriers see: the way to the door, their speed, where the pond is and how near."""
        near = np.linalg.norm(self.position, axis=1, keepdims=True) - POND
        return np.concatenate([self.door - self.position, 4 * self.velocity, self.position, near], axis=1)

    def step(self, actions: np.ndarray) -> Step:
        """Push every courier (each axis from -1 to 1); who drowned or arrived stays where it is."""
        alive = self.alive.copy()
        push = np.clip(actions, -1.0, 1.0)
        before = np.linalg.norm(self.door - self.position, axis=1)
        gust = self.breeze + self.rng.normal(0.0, WIND / 2, self.breeze.shape)
        self.velocity = np.where(alive[:, None], DRAG * self.velocity + THRUST * push * 0.2 + 0.1 * gust, 0.0)
        self.position = self.position + self.velocity
        left = np.linalg.norm(self.door - self.position, axis=1)
        drowned = alive & (np.linalg.norm(self.position, axis=1) < POND)
        arrived = alive & ~drowned & (left < DOOR) & (np.linalg.norm(self.velocity, axis=1) < STANDING * THRUST)
        self.success |= arrived
        self.alive &= ~(drowned | arrived)
        self.time += 1
        effort = (push**2).mean(axis=1)
        return Step((before - left) * alive, effort * alive, drowned, arrived, alive)

    @property
    def is_over(self) -> bool:
        """Say whether nobody is on the way any more, or time is up."""
        return self.time >= HORIZON or not self.alive.any()
