"""One episode, and the environment that plays a fixed list of them, each on its own seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlx.envs.make import horizon
from rlx.envs.source import where
from rlx.errors import JobFailed, RlxError
from rlx.evaluate.protocol import UNDECLARED_HORIZON, Protocol
from rlx.evaluate.trajectory import Trail, Trajectory

if TYPE_CHECKING:
    import gymnasium


@dataclass(frozen=True)
class Episode:
    """One episode in raw reward; `success` where the environment reports it, `terms` the summed reward terms.

    `has_passed` is told where the episode's scenario says what passes.
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
        """Return what a pass predicate can name."""
        known = {"return": self.episode_return, "length": self.length}
        ending = {"terminated": self.terminated, "truncated": not self.terminated}
        success = {} if self.success is None else {"success": self.success}
        return {**self.terms, **known, **ending, **success}

    def document(self) -> dict[str, Any]:
        """Return the episode as JSON-able data; what it does not have is left out."""
        row: dict[str, Any] = {"seed": self.seed, "return": self.episode_return, "length": self.length}
        if self.success is not None:
            row["success"] = self.success
        if self.terms:
            row["terms"] = dict(self.terms)
        if not self.terminated:
            row["truncated"] = True
        if self.scenario is not None:
            row["scenario"] = self.scenario
        if self.has_passed is not None:
            row["passed"] = self.has_passed
        return {**row, "is_cut": True} if self.is_cut else row


class Lane:
    """One environment and the seeds of the episodes it plays, one after the other; it keeps their course if asked."""

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        seeds: Sequence[int],
        *,
        protocol: Protocol,
        keeps_trajectories: bool = False,
    ) -> None:
        self.env, self.seeds, self._keeps = env, seeds, keeps_trajectories
        self.name, self._protocol = protocol.env.id, protocol
        self.horizon = horizon(env) or UNDECLARED_HORIZON
        self.mask_of = env.get_wrapper_attr("action_masks") if env.has_wrapper_attr("action_masks") else None
        self.rewind()

    def rewind(self, seeds: Sequence[int] | None = None) -> None:
        """Stand before the first episode; of others, where their seeds are given."""
        self.seeds = self.seeds if seeds is None else seeds
        self.played: list[Episode] = []
        self.trajectories: list[Trajectory] = []

    @property
    def is_active(self) -> bool:
        """Whether an episode is being played or still to play."""
        return len(self.played) < len(self.seeds)

    def begin(self) -> None:
        """Reset the environment with the next episode's seed."""
        self.seed = self.seeds[len(self.played)]
        self.length, self.reward, self.total = 0, 0.0, 0.0
        self.terms: dict[str, float] = {}
        self.last_terms: dict[str, float] = {}
        try:
            self.observation, _ = self.env.reset(seed=self.seed)
        except Exception as error:  # the environment is other people's code, as a plug-in is
            raise self._failure(error, "reset") from error
        self._trail = Trail(self.observation) if self._keeps else None

    def step(self, action: Any) -> bool:
        """Advance by one action and say whether that ended the episode."""
        try:
            self.observation, reward, terminated, truncated, info = self.env.step(action)
            self._count(float(reward), info)
            if self._trail is not None:
                self._trail.add(action, self.reward, self.observation, info)
        except Exception as error:  # as above
            raise self._failure(error, f"step {self.length + 1}") from error
        is_cut = not (terminated or truncated) and self.length >= self.horizon
        if not (terminated or truncated or is_cut):
            return False
        self.played.append(
            Episode(self.seed, self.total, self.length, success_of(info), self.terms, is_cut, bool(terminated))
        )
        if self._trail is not None:
            self.trajectories.append(self._trail.trajectory(self.played[-1]))
        return True

    def _count(self, reward: float, info: Mapping[str, Any]) -> None:
        self.length += 1
        self.reward = reward
        self.total += reward
        self.last_terms = {term: float(value) for term, value in (info.get("reward_terms") or {}).items()}
        for term, value in self.last_terms.items():
            self.terms[term] = self.terms.get(term, 0.0) + value

    def mask(self) -> NDArray[np.bool_]:
        """Return the allowed actions; all of them once there is nothing left to play."""
        assert self.mask_of is not None
        allowed = np.asarray(self.mask_of(), dtype=np.bool_)
        return allowed if self.is_active else np.ones_like(allowed)

    def render(self) -> Any:
        """Return what the environment draws."""
        try:
            return self.env.render()
        except Exception as error:  # as above
            raise self._failure(error, f"render after step {self.length}") from error

    def _failure(self, error: Exception, moment: str) -> RlxError:
        return env_failure(error, self._protocol, f"{moment} of the episode with seed {self.seed}")


def env_failure(error: Exception, protocol: Protocol, moment: str) -> RlxError:
    """Say what an environment raised, where in the project, and when."""
    if isinstance(error, RlxError):
        return error
    place = where(error, root=protocol.root)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    raised = f"{protocol.env.id} raised {what}" + (f" ({place})" if place else "")
    return JobFailed(f"{raised} at {moment}", hint="the error is the environment's: fix it there, then evaluate again")


def success_of(info: Mapping[str, Any]) -> bool | None:
    """Return whether an episode succeeded, where its last info tells."""
    value = info.get("is_success", info.get("success"))
    return None if value is None else bool(value)
