"""Roll out a policy under a protocol: play every episode to its end, on its own seed.

Episode i is reset with seed i of the protocol and belongs to one environment from the start. So neither the number of
environments nor short episodes change the average. The environments advance in lockstep, and the policy always sees a
batch of the same size.

Not covered: an environment that keeps state across `reset`, or draws from a global random generator, can let one
episode influence another.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlx.config.expression import Expression
from rlx.envs import vector_acrobot
from rlx.envs.global_rng import GlobalGenerators, global_generators_kept
from rlx.envs.make import make_env
from rlx.envs.native_vector import AnyVector
from rlx.envs.remote.remote_env import RemoteEnv, step_together
from rlx.envs.vector import is_batched, make_vector
from rlx.errors import EvidenceInvalid
from rlx.evaluate.batched_rollout import BatchedRollout
from rlx.evaluate.episode import Episode, EpisodeRunner
from rlx.evaluate.policy import Policy, RandomPolicy, batcher, splitter, stack
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.trajectory import Trajectory

if TYPE_CHECKING:
    import gymnasium

    from rlx.config.schema import Env

MOST_PARALLEL = 10
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Evaluation:
    """The episodes of one policy under one protocol. `made` is the time in seconds since the epoch.

    `varied` are the episodes of the scenarios. `trajectories` belong to the other episodes, if they were requested.
    """

    protocol: Protocol
    fingerprint: str
    episodes: tuple[Episode, ...]
    made: float
    varied: tuple[Episode, ...] = ()
    trajectories: tuple[Trajectory, ...] = ()

    @cached_property
    def returns(self) -> NDArray[np.float64]:
        return np.array([episode.episode_return for episode in self.episodes], dtype=np.float64)

    @property
    def score(self) -> float:
        """The figure that the protocol's metric names."""
        metric = self.protocol.metric
        value = {"return": self.mean, "success_rate": self.success_rate, "pass_rate": self.pass_rate}[metric]
        if value is None:
            raise EvidenceInvalid(
                f"{self.protocol.env.id} reports no success, which `eval.metric: {metric}` needs",
                hint='set `info["is_success"]` in the last step of an episode',
            )
        return value

    @property
    def mean(self) -> float:
        return _statistic(np.mean, self.returns)

    @property
    def std(self) -> float:
        """The spread of these episodes. It is not an error of the mean, and not the spread over training seeds."""
        return _statistic(np.std, self.returns)

    @property
    def median(self) -> float:
        return _statistic(np.median, self.returns)

    @property
    def success_rate(self) -> float | None:
        return _rate([episode.success for episode in self.episodes])

    @property
    def pass_rate(self) -> float | None:
        return _rate([episode.has_passed for episode in self.varied])

    @property
    def cut(self) -> int:
        """How many episodes did not end by themselves."""
        return sum(episode.is_cut for episode in self.episodes)

    def summary(self) -> dict[str, Any]:
        """Return the figures of this evaluation, without its episodes."""
        summary = self.figures()
        if self.protocol.metric != "return":
            summary |= {"metric": self.protocol.metric, "score": self.score}
        scenarios: dict[str | None, list[Episode]] = {}
        for episode in self.varied:
            scenarios.setdefault(episode.scenario, []).append(episode)
        if scenarios:
            summary["scenarios"] = {
                name: replace(self, episodes=tuple(episodes), varied=tuple(episodes)).figures()
                for name, episodes in scenarios.items()
            }
        return summary

    def figures(self) -> dict[str, Any]:
        """Return the figures of the episodes."""
        figures = {
            "n": len(self.episodes),
            "mean": self.mean,
            "std": self.std,
            "median": self.median,
            "min": float(self.returns.min()),
            "max": float(self.returns.max()),
            "length_mean": float(np.mean([episode.length for episode in self.episodes])),
            "success_rate": self.success_rate,
            "pass_rate": self.pass_rate,
            "cut": self.cut or None,
        }
        return {name: value for name, value in figures.items() if value is not None}

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


def _statistic(function: Callable[[NDArray[np.float64]], Any], returns: NDArray[np.float64]) -> float:
    with np.errstate(invalid="ignore"):  # NaN and ∞ give NaN or ∞, which is a signal and not a mistake
        return float(function(returns))


def _rate(outcomes: Sequence[bool | None]) -> float | None:
    """Return the share of successes among the known outcomes, or None if none is known."""
    known = [outcome for outcome in outcomes if outcome is not None]
    return sum(known) / len(known) if known else None


class Evaluator:
    """Evaluates policies under one protocol. It keeps its environments between calls.

    After every episode, `progress` gets the number of episodes that have been played, and of all.
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
        self._most_parallel = most_parallel
        self._progress = progress
        self._keeps_trajectories = keeps_trajectories
        self._runners: dict[str | None, list[EpisodeRunner]] = {}
        self._batches: dict[str | None, AnyVector] = {}

    def evaluate(self, policy: Policy, *, seed: int = 0) -> Evaluation:
        """Play every episode of a training seed. The process's random generators are restored afterwards."""
        seeds = self.protocol.episode_seeds(seed=seed)
        report = self._reporter()
        with isolated_randomness(seeds.start):
            episodes, trajectories = self._play(policy, None, seeds, report)
            fingerprint = self.protocol.fingerprint()
        varied: list[Episode] = []
        for name in self.protocol.scenarios:
            with isolated_randomness(seeds.start):
                played, _ = self._play(policy, name, seeds, report)
            varied += [self._judge(episode, name) for episode in played]
        ordered = sorted(trajectories, key=lambda trajectory: trajectory.seed)
        return Evaluation(self.protocol, fingerprint, tuple(episodes), time.time(), tuple(varied), tuple(ordered))

    def _reporter(self) -> Callable[[int], None]:
        """Return a function that adds up finished episodes and reports the progress over all scenarios."""
        total = self.protocol.episodes * (1 + len(self.protocol.scenarios))
        done = 0

        def report(finished: int) -> None:
            nonlocal done
            done += finished
            if self._progress is not None:
                self._progress(done, total)

        return report

    def _play(
        self, policy: Policy, scenario: str | None, seeds: range, report: Callable[[int], None]
    ) -> tuple[list[Episode], list[Trajectory]]:
        if self._is_batched:
            worlds = self._batch(scenario)
            rollout = BatchedRollout(
                worlds, self.protocol, keeps_trajectories=self._keeps_trajectories and scenario is None
            )
            return rollout.play(policy, seeds, report)
        runners = self._open(scenario)
        for index, runner in enumerate(runners):
            runner.rewind(seeds[index :: len(runners)])
        _play_in_lockstep(runners, policy, self.protocol, report)
        episodes = [episode for runner in runners for episode in runner.episodes]
        trajectories = [trajectory for runner in runners for trajectory in runner.trajectories]
        return sorted(episodes, key=lambda episode: episode.seed), trajectories

    def _judge(self, episode: Episode, scenario: str) -> Episode:
        """Return an episode with its scenario, and whether it passed."""
        rule = self.protocol.scenarios[scenario].passes
        if rule is None:
            return replace(episode, scenario=scenario)
        figures = episode.figures()
        try:
            return replace(episode, scenario=scenario, has_passed=Expression(rule).holds(figures))
        except KeyError as error:
            raise EvidenceInvalid(
                f"`eval.scenarios.{scenario}.pass` names {error}, "
                f"which an episode of {self.protocol.env.id} does not have",
                hint=f"it has: {', '.join(figures)}",
            ) from None

    def evaluate_random(self) -> Evaluation:
        """Evaluate the random policy: the score without any training."""
        return self.evaluate(RandomPolicy(self.env.action_space, seed=self.protocol.episode_seeds().start))

    @property
    def env(self) -> gymnasium.Env[Any, Any]:
        """One of the environments."""
        with isolated_randomness(0):
            return self._open()[0].env

    def refuse_misfit(self, policy: Policy) -> None:
        """Raise if a policy cannot act on this environment's observations, because it was trained on others."""
        with isolated_randomness(0):
            runner = self._open()[0]
            runner.rewind()
            runner.begin()
            policy.reset()
            masks = runner.mask()
            if masks is not None:
                masks = masks[None]
            try:
                policy.predict(stack(runner.env.observation_space, [runner.observation]), masks=masks)
            except (ValueError, TypeError, RuntimeError, LookupError, AssertionError) as error:
                raise EvidenceInvalid(
                    f"the policy does not fit {runner.name}: {' '.join(str(error).split())}",
                    hint="check whether the environment or its wrappers have changed since the training",
                ) from error

    def close(self) -> None:
        """Close the environments."""
        for runners in self._runners.values():
            for runner in runners:
                runner.env.close()
        for batch in self._batches.values():
            batch.close()
        self._runners.clear()
        self._batches.clear()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _is_batched(self) -> bool:
        return is_batched(self.protocol.env, root=self.protocol.root)

    def _env(self, scenario: str | None) -> Env:
        if scenario is None:
            return self.protocol.env
        return self.protocol.scenario_env(scenario)

    def _batch(self, scenario: str | None) -> AnyVector:
        if scenario not in self._batches:
            self._batches[scenario] = make_vector(
                self._env(scenario), root=self.protocol.root, num_envs=self.protocol.episodes
            )
        return self._batches[scenario]

    def _open(self, scenario: str | None = None) -> list[EpisodeRunner]:
        count = min(self.protocol.episodes, self._most_parallel)
        seeds = self.protocol.episode_seeds()
        runners = self._runners.setdefault(scenario, [])
        keeps = self._keeps_trajectories and scenario is None
        while len(runners) < count:
            env = make_env(self._env(scenario), root=self.protocol.root)
            own_seeds = seeds[len(runners) :: count]
            runners.append(EpisodeRunner(env, own_seeds, protocol=self.protocol, keeps_trajectories=keeps))
        return runners


def _play_in_lockstep(
    runners: list[EpisodeRunner], policy: Policy, protocol: Protocol, report: Callable[[int], None]
) -> None:
    env = runners[0].env
    gather = batcher(env.observation_space, len(runners))
    split = splitter(env.action_space, len(runners))
    for runner in runners:
        runner.begin()
    policy.reset()
    acrobots = vector_acrobot.places([runner.env for runner in runners])
    remote = [runner.env for runner in runners if isinstance(runner.env, RemoteEnv)]
    playing = dict(enumerate(runners))
    while playing:
        masks: Any = [runner.mask() for runner in runners]
        masks = None if masks[0] is None else np.stack(masks)
        observations = gather([runner.observation for runner in runners])
        actions = split(policy.predict(observations, deterministic=protocol.deterministic, masks=masks))
        if acrobots:
            vector_acrobot.prepare(acrobots, actions)
        if remote:
            step_together([remote[index] for index in playing], [actions[index] for index in playing])
        finished = []
        for index, runner in playing.items():
            if runner.step(actions[index]):
                finished.append(index)
                if runner.is_active:
                    runner.begin()
        if finished:
            report(len(finished))
            policy.reset(np.isin(np.arange(len(runners)), finished))
            playing = {index: runner for index, runner in playing.items() if runner.is_active}


@contextlib.contextmanager
def isolated_randomness(seed: int) -> Iterator[None]:
    """Seed the process's random generators for the block, and restore them afterwards."""
    with global_generators_kept():
        GlobalGenerators.seed(seed)
        yield
