"""Rolling out a policy under a protocol: every episode played to its end on its own seed.

Episode i is reset with seed i of the protocol and belongs to one environment from the start, so neither the number of
environments nor short episodes change what is averaged. The environments advance in lockstep and the policy always
sees a batch of the same size.

What is not covered: an environment that keeps something across `reset`, or draws from a global random generator, can
let one episode influence another.
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlx.config.expression import Expression
from rlx.envs import acrobot
from rlx.envs.make import make_env
from rlx.envs.vector import is_batched, make_vector
from rlx.envs.worlds import AnyVector
from rlx.errors import EvidenceInvalid
from rlx.evaluate import worlds
from rlx.evaluate.episode import Episode, Lane
from rlx.evaluate.policy import Policy, RandomPolicy, batcher, splitter, stack
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.trajectory import Trajectory

if TYPE_CHECKING:
    import gymnasium

MOST_PARALLEL = 10
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Evaluation:
    """The episodes of one policy under one protocol; `made` is when, in seconds since the epoch."""

    protocol: Protocol
    fingerprint: str
    episodes: tuple[Episode, ...]
    made: float
    varied: tuple[Episode, ...] = ()
    """The episodes of the scenarios."""
    trajectories: tuple[Trajectory, ...] = ()
    """The course of every episode (not of the scenarios'), where it was asked for."""

    @cached_property
    def returns(self) -> NDArray[np.float64]:
        return np.array([episode.episode_return for episode in self.episodes], dtype=np.float64)

    @property
    def score(self) -> float:
        """The figure the protocol's metric names."""
        metric = self.protocol.metric
        value = {"return": self.mean, "success_rate": self.success_rate, "pass_rate": self.pass_rate}[metric]
        if value is None:
            reason = f"{self.protocol.env.id} reports no success, which `eval.metric: {metric}` needs"
            raise EvidenceInvalid(reason, hint='give `info["is_success"]` with the last step of an episode')
        return value

    @property
    def pass_rate(self) -> float | None:
        known = [episode.has_passed for episode in self.varied if episode.has_passed is not None]
        return sum(known) / len(known) if known else None

    @property
    def mean(self) -> float:
        return _figure(np.mean, self.returns)

    @property
    def std(self) -> float:
        """The spread of these episodes (not an error of the mean, and not the spread over training seeds)."""
        return _figure(np.std, self.returns)

    @property
    def median(self) -> float:
        return _figure(np.median, self.returns)

    @property
    def success_rate(self) -> float | None:
        known = [episode.success for episode in self.episodes if episode.success is not None]
        return sum(known) / len(known) if known else None

    @property
    def cut(self) -> int:
        """How many episodes did not end by themselves."""
        return sum(episode.is_cut for episode in self.episodes)

    def summary(self) -> dict[str, Any]:
        """Return the figures of this evaluation without its episodes."""
        return {**self.figures(), **self._beyond_the_return()}

    def _beyond_the_return(self) -> dict[str, Any]:
        metric = self.protocol.metric
        names = dict.fromkeys(episode.scenario for episode in self.varied)
        by_name = {name: tuple(one for one in self.varied if one.scenario == name) for name in names}
        parts = {name: replace(self, episodes=episodes, varied=episodes) for name, episodes in by_name.items()}
        return {
            **({} if metric == "return" else {"metric": metric, "score": self.score}),
            **({"scenarios": {name: part.figures() for name, part in parts.items()}} if parts else {}),
        }

    def figures(self) -> dict[str, Any]:
        """Return the figures of the episodes."""
        return {
            "n": len(self.episodes),
            "mean": self.mean,
            "std": self.std,
            "median": self.median,
            "min": float(self.returns.min()),
            "max": float(self.returns.max()),
            "length_mean": float(np.mean([episode.length for episode in self.episodes])),
            **({} if self.success_rate is None else {"success_rate": self.success_rate}),
            **({} if self.pass_rate is None else {"pass_rate": self.pass_rate}),
            **({"cut": self.cut} if self.cut else {}),
        }

    def document(self) -> dict[str, Any]:
        """Return everything as JSON-able data: figures, protocol and each episode."""
        return {
            "fingerprint": self.fingerprint,
            "purpose": self.protocol.purpose,
            "time": self.made,
            **self.summary(),
            "protocol": self.protocol.content,
            "episodes": [episode.document() for episode in (*self.episodes, *self.varied)],
        }


def _figure(statistic: Callable[[NDArray[np.float64]], Any], returns: NDArray[np.float64]) -> float:
    with np.errstate(invalid="ignore"):  # NaN and ∞ in, NaN or ∞ out: a signal, not a mistake here
        return float(statistic(returns))


class Evaluator:
    """Evaluates policies under one protocol; keeps its environments between calls.

    `progress` is told, after every episode, how many have been played of how many. With `keeps_trajectories` an
    evaluation also has the course of its episodes.
    """

    def __init__(
        self,
        protocol: Protocol,
        *,
        most_parallel: int = MOST_PARALLEL,
        progress: Progress | None = None,
        keeps_trajectories: bool = False,
    ) -> None:
        self.protocol = protocol
        self._keeps_trajectories = keeps_trajectories
        self._trajectories: list[Trajectory] = []
        self._most_parallel = most_parallel
        self._progress = progress
        self._lanes: dict[str | None, list[Lane]] = {}
        self._batches: dict[str | None, AnyVector] = {}

    def evaluate(self, policy: Policy, *, seed: int = 0) -> Evaluation:
        """Play every episode of a training seed; the process's random generators are left as they were."""
        seeds = self.protocol.episode_seeds(seed=seed)
        with own_randomness(seeds.start):
            episodes = self._played(policy, None, seeds, done=0)
            fingerprint = self.protocol.fingerprint()
            kept = tuple(sorted(self._trajectories, key=lambda one: one.seed))
        varied: list[Episode] = []
        for name in self.protocol.scenarios:
            with own_randomness(seeds.start):
                varied += self._played(policy, name, seeds, done=len(episodes) + len(varied))
        return Evaluation(self.protocol, fingerprint, tuple(episodes), time.time(), tuple(varied), kept)

    def _played(self, policy: Policy, scenario: str | None, seeds: range, *, done: int) -> list[Episode]:
        total = self.protocol.episodes * (1 + len(self.protocol.scenarios))
        count = 0

        def tell(finished: int) -> None:
            nonlocal count
            count += finished
            if self._progress is not None:
                self._progress(done + count, total)

        if self._is_batched:
            keep: list[Trajectory] | None = [] if self._keeps_trajectories else None
            episodes = worlds.play(self._worlds(scenario), policy, self.protocol, seeds, tell, keep)
            self._trajectories = keep or []
        else:
            lanes = self._open(scenario)
            for index, lane in enumerate(lanes):
                lane.rewind(seeds[index :: len(lanes)])
            played = _play(lanes, policy, self.protocol, tell)
            self._trajectories = [one for lane in lanes for one in lane.trajectories]
            episodes = sorted(played, key=lambda episode: episode.seed)
        return episodes if scenario is None else [self._judged(episode, scenario) for episode in episodes]

    def _judged(self, episode: Episode, scenario: str) -> Episode:
        predicate = self.protocol.scenarios[scenario].passes
        if predicate is None:
            return replace(episode, scenario=scenario)
        figures = episode.figures()
        try:
            return replace(episode, scenario=scenario, has_passed=Expression(predicate).holds(figures))
        except KeyError as error:
            key = f"eval.scenarios.{scenario}.pass"
            raise EvidenceInvalid(
                f"`{key}` names {error}, which an episode of {self.protocol.env.id} does not have",
                hint=f"it has: {', '.join(figures)}",
            ) from None

    def evaluate_random(self) -> Evaluation:
        """Evaluate the random policy: what no training at all scores."""
        return self.evaluate(RandomPolicy(self.env.action_space, seed=self.protocol.episode_seeds().start))

    @property
    def env(self) -> gymnasium.Env[Any, Any]:
        """One of the environments."""
        with own_randomness(0):
            return self._open()[0].env

    def refuse_misfit(self, policy: Policy) -> None:
        """Raise where a policy cannot act on this environment's observations: it was trained on other ones."""
        with own_randomness(0):
            lane = self._open()[0]
            lane.rewind()
            lane.begin()
            policy.reset()
            masks = lane.mask()[None] if lane.mask_of else None
            try:
                policy.predict(stack(lane.env.observation_space, [lane.observation]), masks=masks)
            except (ValueError, TypeError, RuntimeError, LookupError, AssertionError) as error:
                raise EvidenceInvalid(
                    f"the policy does not fit {lane.name}: {' '.join(str(error).split())}",
                    hint="was the environment or its wrappers changed since the policy was trained?",
                ) from error

    def close(self) -> None:
        """Close the environments."""
        for lanes in self._lanes.values():
            for lane in lanes:
                lane.env.close()
        for batch in self._batches.values():
            batch.close()
        self._lanes, self._batches = {}, {}

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _is_batched(self) -> bool:
        return is_batched(self.protocol.env, root=self.protocol.root)

    def _worlds(self, scenario: str | None) -> AnyVector:
        if scenario not in self._batches:
            wanted = self.protocol.env if scenario is None else self.protocol.scenario_env(scenario)
            made = make_vector(wanted, root=self.protocol.root, num_envs=self.protocol.episodes)
            self._batches[scenario] = made
        return self._batches[scenario]

    def _open(self, scenario: str | None = None) -> list[Lane]:
        count = min(self.protocol.episodes, self._most_parallel)
        seeds = self.protocol.episode_seeds()
        lanes = self._lanes.setdefault(scenario, [])
        wanted = self.protocol.env if scenario is None else self.protocol.scenario_env(scenario)
        while len(lanes) < count:
            env = make_env(wanted, root=self.protocol.root)
            own, keeps = seeds[len(lanes) :: count], self._keeps_trajectories and scenario is None
            lanes.append(Lane(env, own, protocol=self.protocol, keeps_trajectories=keeps))
        return lanes


def _play(lanes: list[Lane], policy: Policy, protocol: Protocol, tell: Callable[[int], None]) -> list[Episode]:
    env = lanes[0].env
    gather, rows = batcher(env.observation_space, len(lanes)), splitter(env.action_space, len(lanes))
    for lane in lanes:
        lane.begin()
    policy.reset()
    foreseen = acrobot.places([lane.env for lane in lanes])
    playing = dict(enumerate(lanes))
    while playing:
        masks = np.stack([lane.mask() for lane in lanes]) if lanes[0].mask_of else None
        observations = gather([lane.observation for lane in lanes])
        actions = rows(policy.predict(observations, deterministic=protocol.deterministic, masks=masks))
        if foreseen:
            acrobot.prepare(foreseen, actions)
        finished = [index for index, lane in playing.items() if _ends(lane, actions[index])]
        if finished:
            tell(len(finished))
            policy.reset(np.isin(np.arange(len(lanes)), finished))
            playing = {index: lane for index, lane in playing.items() if lane.is_active}
    return [episode for lane in lanes for episode in lane.played]


def _ends(lane: Lane, action: Any) -> bool:
    """Step, and begin the lane's next episode where that ended one."""
    is_over = lane.step(action)
    if is_over and lane.is_active:
        lane.begin()
    return is_over


@contextlib.contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seed the process's generators for what happens inside, and put them back afterwards."""
    torch: Any = sys.modules.get("torch")  # not loaded: no generator of its to disturb
    python, legacy = random.getstate(), np.random.get_state()
    on_cpu = torch.get_rng_state() if torch else None
    on_cuda = torch.cuda.get_rng_state_all() if torch and torch.cuda.is_initialized() else None
    random.seed(seed)
    np.random.seed(seed)
    if torch:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
        if torch:
            torch.set_rng_state(on_cpu)
        if on_cuda is not None:
            torch.cuda.set_rng_state_all(on_cuda)
