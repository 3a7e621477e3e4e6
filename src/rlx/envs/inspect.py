"""Inspects an environment within a time budget: plays it in many ways and returns the record of what it showed."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rlx.config.schema import Env
from rlx.envs import inspect_twins
from rlx.envs.generators import global_generators_kept
from rlx.envs.inspect_actions import knobs
from rlx.envs.inspect_behaviour import Behaviour, behave
from rlx.envs.inspect_clocks import Moment, clocks, try_clocks
from rlx.envs.inspect_passive import passive_warnings
from rlx.envs.inspect_player import Broken, Notebook, Player
from rlx.envs.inspect_record import AGAIN, ClockTrial, Cost, Inspection, Knob, Seeds, Twin
from rlx.envs.inspect_spaces import Numbers, bounds_of
from rlx.envs.inspect_time import Deadline, OutOfTime
from rlx.envs.make import EnvFacts, facts_of, make_env, quiet, quiet_simulator, source_of
from rlx.envs.spaces import is_image
from rlx.envs.vector import is_batched, make_vector
from rlx.errors import RlxError

SECONDS = 4.0
SHARES = {"seeding": 0.25, "actions": 0.4, "behaviour": 0.75, "reward over time": 0.7, "vector": 1.0}
"""How much of the time that is left a part may take."""
MOMENTS = 4
LEAST_STEPS = 8


@dataclass
class _Bench:
    """One inspection as it goes: what is made, what was found, and what time is left."""

    env: Env
    root: Path
    notebook: Notebook
    facts: EnvFacts
    numbers: Numbers
    action_numbers: Numbers
    players: list[Player] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    twins: list[Twin] = field(default_factory=list)
    seeds: Seeds | None = None
    knobs: list[Knob] = field(default_factory=list)
    clocks: list[ClockTrial] = field(default_factory=list)
    behaviour: Behaviour | None = None
    checked: list[str] = field(default_factory=list)
    unchecked: list[tuple[str, str]] = field(default_factory=list)

    def make(self, notebook: Notebook | None = None) -> Player:
        self.players.append(Player(lambda: make_env(self.env, root=self.root), notebook or self.notebook))
        return self.players[-1]

    def aside(self) -> Player:
        """Make an instance whose oddities do not count: what is done to it is not what people do."""
        return self.make(Notebook(self.notebook.deadline, self.root))

    def affordable(self, steps: int) -> int:
        """Return how many of so many steps an episode can have where a step is slow."""
        book = self.notebook
        cost = max(book.step_seconds, 1e-9) / max(book.steps, 1)
        return max(LEAST_STEPS, min(steps, int(SHARES["seeding"] * book.deadline.left / (8 * cost))))

    def time_share(self, part: str) -> Callable[[], bool]:
        """Return the question whether a part may go on."""
        deadline = self.notebook.deadline
        spared = (1 - SHARES[part]) * deadline.left
        return lambda: deadline.left > spared


def inspect(env: Env, *, root: Path, seconds: float = SECONDS) -> Inspection:
    """Play an environment in many ways for at most `seconds`; what it raises is part of the record.

    Only what keeps it from being made at all is an error. The global random generators are left as they were.
    """
    began = time.monotonic()
    notebook = Notebook(Deadline(seconds), root)
    printed = io.StringIO()
    with global_generators_kept(), notebook.deadline.armed(), contextlib.redirect_stdout(printed), _silence():
        made = Player(lambda: make_env(env, root=root), notebook)
        facts = facts_of(made.env, source=source_of(env.id))
        numbers = Numbers(facts.observation_space, name="observation")
        bench = _Bench(env, root, notebook, facts, numbers, Numbers(facts.action_space, name="action"), [made])
        try:
            with quiet_simulator():
                _run(bench)
        finally:
            for player in bench.players:
                player.close()
    return _record(bench, printed.getvalue(), time.monotonic() - began)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _run(bench: _Bench) -> None:
    parts: list[tuple[str, Callable[[_Bench], None]]] = [
        ("API", _api), ("seeding", _seeding), ("actions", _actions), ("behaviour", _behaviour),
        ("reward over time", _time), ("vector", _vector),
    ]  # fmt: skip
    for name, part in parts:
        try:
            part(bench)
        except OutOfTime:
            bench.unchecked.append((name, "no time was left for the whole of it"))
        except Broken:
            bench.unchecked.append((name, "the environment raised or returned what cannot be used"))
        except RlxError as error:
            bench.unchecked.append((name, error.message))
        except Exception as error:  # noqa: BLE001  people's environments may return anything
            bench.unchecked.append((name, f"what the environment returned led to {type(error).__name__}: {error}"))
        else:
            bench.checked.append(name)


def _api(bench: _Bench) -> None:
    bench.warnings += passive_warnings(bench.aside())
    inspect_twins.play(bench.make(), seed=inspect_twins.SEED, steps=LEAST_STEPS)


def _seeding(bench: _Bench) -> None:
    for twin in inspect_twins.twins(bench.make, bench.aside, steps=bench.affordable(inspect_twins.STEPS)):
        bench.twins.append(twin)
    bench.seeds = inspect_twins.seeds(bench.make())


def _actions(bench: _Bench) -> None:
    if (why := _why_not_again(bench)) is not None:
        raise RlxError(why)
    found, left_out = knobs(bench.make, bench.time_share("actions"))
    bench.knobs += found
    if left_out:
        bench.unchecked.append(("actions", f"{left_out} further values or numbers of the action"))


def _why_not_again(bench: _Bench) -> str | None:
    """Say why a state cannot be reached a second time by its seed and actions; None where it can."""
    again = next((twin for twin in bench.twins if twin.how == AGAIN), None)
    if again is None:
        return "it is not known whether the same seed and actions lead to the same state"
    return None if again.difference is None else "the same seed and actions do not lead to the same state"


def _behaviour(bench: _Bench) -> None:
    share = bench.time_share("behaviour")
    bench.behaviour = Behaviour(bench.make(), bench.numbers, bench.action_numbers, share)
    behave(bench.behaviour)
    if not share():
        steps = bench.behaviour.steps
        bench.unchecked.append(("behaviour", f"only {steps:,} steps of {len(bench.behaviour.episodes)} episodes: slow"))


def _time(bench: _Bench) -> None:
    if (why := _why_not_again(bench)) is not None:
        raise RlxError(why)
    share = bench.time_share("reward over time")
    player = bench.aside()
    for moment in _moments(bench):
        places = clocks(player, moment)
        for trial in try_clocks(player, moment, places):
            bench.clocks.append(trial)
            if not share():
                return


def _moments(bench: _Bench) -> list[Moment]:
    """Choose transitions with rewards that differ in size, reached soon; a reward of 0 says nothing of its sign."""
    assert bench.behaviour is not None
    found: dict[float, tuple[int, Moment]] = {}
    for episode, actions in zip(bench.behaviour.episodes, bench.behaviour.actions, strict=True):
        for step, reward in enumerate(episode.rewards.tolist(), start=1):
            key = float(f"{reward:.1g}")
            if reward and step > 2 and (key not in found or step < found[key][0]):
                found[key] = (step, Moment(episode.seed, actions[:step]))
    ordered = sorted(found.values(), key=lambda pair: pair[0])
    return [moment for _, moment in ordered[:MOMENTS]]


def _vector(bench: _Bench) -> None:
    steps = bench.affordable(inspect_twins.STEPS)
    alike = bench.env.model_copy(update={"vectorization": "sync"})
    vector = bench.notebook.deadline.call(lambda: make_vector(alike, root=bench.root, num_envs=2))
    try:
        bench.twins.append(
            bench.notebook.deadline.call(lambda: inspect_twins.vector_twin(bench.make, vector, steps=steps))
        )
    finally:
        vector.close()
    if is_batched(bench.env, root=bench.root):
        worlds = make_vector(bench.env, root=bench.root, num_envs=3)
        bench.twins.append(bench.notebook.deadline.call(lambda: inspect_twins.worlds_twin(worlds, steps=steps)))
        worlds.close()


def _record(bench: _Bench, printed: str, total: float) -> Inspection:
    book, facts = bench.notebook, bench.facts
    cost = Cost(
        make=book.make_seconds,
        reset=book.reset_seconds / max(book.resets, 1),
        step=book.step_seconds / max(book.steps, 1),
        steps=book.steps,
        total=total,
    )
    return Inspection(
        observation=str(facts.observation_space),
        action=str(facts.action_space),
        horizon=facts.horizon,
        threshold=facts.reward_threshold,
        is_image=is_image(facts.observation_space),
        columns=bench.numbers.columns,
        action_columns=bench.action_numbers.columns,
        bounds=bounds_of(facts.action_space),
        oddities=book.oddities(),
        warnings=tuple(bench.warnings),
        printed=tuple(line for line in printed.splitlines() if line.strip()),
        twins=tuple(bench.twins),
        seeds=bench.seeds,
        knobs=tuple(bench.knobs),
        clocks=tuple(bench.clocks),
        episodes=tuple(bench.behaviour.episodes) if bench.behaviour else (),
        cost=cost,
        checked=tuple(bench.checked),
        unchecked=tuple(bench.unchecked),
    )
