"""Episodes as evaluation plays them: one environment, one seed per episode, figures in raw reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlx.envs.make import horizon
from rlx.errors import RlxError
from rlx.evaluate.foreign_code import ForeignCode, env_failure
from rlx.evaluate.protocol import UNDECLARED_HORIZON, Protocol
from rlx.evaluate.trajectory import Trajectory, TrajectoryRecorder

if TYPE_CHECKING:
    import gymnasium


@dataclass(frozen=True)
class Episode:
    """One episode in raw reward. `terms` are the summed reward terms.

    `success` is None if the environment does not report it, `has_passed` is None if the scenario has no `pass` rule.
    """

    seed: int
    episode_return: float
    length: int
    success: bool | None = None
    terms: Mapping[str, float] = field(default_factory=dict)
    is_cut: bool = False
    terminated: bool = True
    scenario: str | None = None
    has_passed: bool | None = None

    def figures(self) -> dict[str, float | bool]:
        """Return the figures that a `pass` rule can name."""
        figures = {**self.terms, "return": self.episode_return, "length": self.length}
        figures |= {"terminated": self.terminated, "truncated": not self.terminated}
        if self.success is not None:
            figures["success"] = self.success
        return figures

    def document(self) -> dict[str, Any]:
        """Return the episode as JSON-able data, without the fields that it does not have."""
        optional = {
            "success": self.success,
            "terms": dict(self.terms) or None,
            "truncated": not self.terminated or None,
            "scenario": self.scenario,
            "passed": self.has_passed,
            "is_cut": self.is_cut or None,
        }
        row = {"seed": self.seed, "return": self.episode_return, "length": self.length}
        return row | {key: value for key, value in optional.items() if value is not None}


class EpisodeRunner:
    """One environment and the seeds of the episodes that it plays one after the other. It can keep trajectories."""

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        seeds: Sequence[int],
        *,
        protocol: Protocol,
        keeps_trajectories: bool = False,
    ) -> None:
        self.env = env
        self.name = protocol.env.id
        self.horizon = horizon(env) or UNDECLARED_HORIZON
        self._protocol = protocol
        self._keeps_trajectories = keeps_trajectories
        self._mask_method = None
        if env.has_wrapper_attr("action_masks"):
            self._mask_method = env.get_wrapper_attr("action_masks")
        self._activity = "reset"
        self._guard = ForeignCode(self._failure)
        self.rewind(seeds)

    def rewind(self, seeds: Sequence[int] | None = None) -> None:
        """Go back to the first episode, or to the first of other seeds."""
        if seeds is not None:
            self.seeds = seeds
        self.episodes: list[Episode] = []
        self.trajectories: list[Trajectory] = []

    @property
    def is_active(self) -> bool:
        """Whether an episode is being played or left to play."""
        return len(self.episodes) < len(self.seeds)

    def begin(self) -> None:
        """Reset the environment with the next episode's seed."""
        self.seed = self.seeds[len(self.episodes)]
        self.length = 0
        self.reward = 0.0
        self.total = 0.0
        self.terms: dict[str, float] = {}
        self.last_terms: dict[str, float] = {}
        self._activity = "reset"
        with self._guard:
            self.observation, _ = self.env.reset(seed=self.seed)
        self._recorder = None
        if self._keeps_trajectories:
            self._recorder = TrajectoryRecorder(self.observation)

    def step(self, action: Any) -> bool:
        """Advance by one action and return whether that ended the episode."""
        self._activity = "step"
        with self._guard:
            self.observation, reward, terminated, truncated, info = self.env.step(action)
            self._count(float(reward), info)
            if self._recorder is not None:
                self._recorder.add(action, self.reward, self.observation, info)
        has_ended = terminated or truncated
        if not has_ended and self.length < self.horizon:
            return False
        self.episodes.append(
            Episode(
                self.seed,
                self.total,
                self.length,
                success_of(info),
                self.terms,
                not has_ended,
                terminated=bool(terminated),
            )
        )
        if self._recorder is not None:
            self.trajectories.append(self._recorder.trajectory(self.episodes[-1]))
        return True

    def _count(self, reward: float, info: Mapping[str, Any]) -> None:
        self.length += 1
        self.reward = reward
        self.total += reward
        self.last_terms = {term: float(value) for term, value in (info.get("reward_terms") or {}).items()}
        for term, value in self.last_terms.items():
            self.terms[term] = self.terms.get(term, 0.0) + value

    def mask(self) -> NDArray[np.bool_] | None:
        """Return which actions are allowed: all if no episode is left, None if the environment has no masks."""
        if self._mask_method is None:
            return None
        allowed = np.asarray(self._mask_method(), dtype=np.bool_)
        if self.is_active:
            return allowed
        return np.ones_like(allowed)

    def render(self) -> Any:
        """Return the environment's current picture."""
        self._activity = "render"
        picture = None
        with self._guard:
            picture = self.env.render()
        return picture

    def _failure(self, error: Exception) -> RlxError:
        moments = {"step": f"step {self.length + 1}", "render": f"render after step {self.length}"}
        moment = moments.get(self._activity, self._activity)
        return env_failure(error, self._protocol, f"{moment} of the episode with seed {self.seed}")


def success_of(info: Mapping[str, Any]) -> bool | None:
    """Return whether an episode succeeded, or None if its last info does not say it."""
    value = info.get("is_success", info.get("success"))
    return None if value is None else bool(value)
