"""Inspects an environment within a time budget: plays it in many ways and returns a record."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rlx.config.schema import Env
from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.global_rng import global_generators_kept
from rlx.envs.inspect import determinism
from rlx.envs.inspect.action_effects import knobs
from rlx.envs.inspect.behaviour import Behaviour, behave
from rlx.envs.inspect.deadline import Deadline, OutOfTime
from rlx.envs.inspect.gymnasium_checker import passive_warnings
from rlx.envs.inspect.player import Broken, Notebook, Player
from rlx.envs.inspect.record import AGAIN, Cost, Inspection
from rlx.envs.inspect.space_leaves import Numbers, bounds_of
from rlx.envs.inspect.time_shift import Moment, clocks, try_clocks
from rlx.envs.make import facts_of, make_env, quiet, quiet_simulator, source_of
from rlx.envs.vector import is_batched, make_vector
from rlx.errors import RlxError

SECONDS = 4.0
SHARES = {"seeding": 0.25, "actions": 0.4, "behaviour": 0.75, "reward over time": 0.7, "vector": 1.0}
"""The share of the remaining time that a part may take."""
MOMENTS = 4
LEAST_STEPS = 8


@dataclass
class _Bench:
    """One inspection in progress: its instances, its notes and its results so far."""

    env: Env
    root: Path
    notebook: Notebook
    inspection: Inspection
    numbers: Numbers
    action_numbers: Numbers
    players: list[Player]
    behaviour: Behaviour | None = None

    def make(self, notebook: Notebook | None = None) -> Player:
        self.players.append(Player(lambda: make_env(self.env, root=self.root), notebook or self.notebook))
        return self.players[-1]

    def make_uncounted(self) -> Player:
        """Make an instance whose oddities do not count, because it is treated in unusual ways."""
        return self.make(Notebook(self.notebook.deadline, self.root))

    def affordable(self, steps: int) -> int:
        """Return how many steps an episode can have: fewer than `steps` if a step is slow."""
        book = self.notebook
        cost = max(book.step_seconds, 1e-9) / max(book.steps, 1)
        return max(LEAST_STEPS, min(steps, int(SHARES["seeding"] * book.deadline.left / (8 * cost))))

    def time_share(self, part: str) -> Callable[[], bool]:
        """Return a function that says whether a part may go on."""
        deadline = self.notebook.deadline
        reserved = (1 - SHARES[part]) * deadline.left
        return lambda: deadline.left > reserved


def inspect(env: Env, *, root: Path, seconds: float = SECONDS) -> Inspection:
    """Play an environment in many ways for at most `seconds`; the errors that it raises are part of the record.

    This raises only if the environment cannot be made. The global random generators stay unchanged.
    """
    began = time.monotonic()
    notebook = Notebook(Deadline(seconds), root)
    printed = io.StringIO()
    with global_generators_kept(), notebook.deadline.armed(), contextlib.redirect_stdout(printed), _silence():
        player = Player(lambda: make_env(env, root=root), notebook)
        facts = facts_of(player.env, source=source_of(env.id))
        numbers = Numbers(facts.observation_space, name="observation")
        action_numbers = Numbers(facts.action_space, name="action")
        inspection = Inspection(facts, numbers.columns, action_numbers.columns, bounds_of(facts.action_space))
        bench = _Bench(env, root, notebook, inspection, numbers, action_numbers, [player])
        try:
            with quiet_simulator():
                _run(bench)
        finally:
            for player in bench.players:
                player.close()
    inspection.oddities = notebook.oddities()
    inspection.printed = tuple(line for line in printed.getvalue().splitlines() if line.strip())
    inspection.cost = Cost(
        make=notebook.make_seconds,
        reset=notebook.reset_seconds / max(notebook.resets, 1),
        step=notebook.step_seconds / max(notebook.steps, 1),
        steps=notebook.steps,
        total=time.monotonic() - began,
    )
    return inspection


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _run(bench: _Bench) -> None:
    unchecked = bench.inspection.unchecked
    for name, part in PARTS.items():
        try:
            call_foreign(lambda: part(bench), passes=(OutOfTime, Broken))  # noqa: B023  called at once
        except OutOfTime:
            unchecked.append((name, "the time ran out before all of it was tried"))
        except Broken:
            unchecked.append((name, "the environment raised or returned something unusable"))
        except RlxError as error:
            unchecked.append((name, error.message))
        except ForeignError as error:
            unchecked.append((name, f"a value that the environment returned led to {error}"))
        else:
            bench.inspection.checked.append(name)


def _api(bench: _Bench) -> None:
    first = bench.make_uncounted()
    try:
        bench.inspection.warnings += passive_warnings(first)
    except OutOfTime:  # nothing unusual was done to it yet, and no time is left to see it again
        bench.notebook.adopt_hangs(first.notebook)
        raise
    determinism.play(bench.make(), steps=LEAST_STEPS)


def _seeding(bench: _Bench) -> None:
    steps = bench.affordable(determinism.STEPS)
    for twin in determinism.twins(bench.make, bench.make_uncounted, steps=steps):  # keeps those before a failure
        bench.inspection.twins.append(twin)
    bench.inspection.seeds = determinism.seeds(bench.make())


def _actions(bench: _Bench) -> None:
    _require_determinism(bench.inspection)
    tried, left_out = knobs(bench.make, bench.time_share("actions"))
    bench.inspection.knobs += tried
    if left_out:
        bench.inspection.unchecked.append(("actions", f"{left_out} further values or numbers of the action"))


def _require_determinism(inspection: Inspection) -> None:
    """Raise if a state cannot be reached a second time by its seed and actions."""
    again = next((twin for twin in inspection.twins if twin.how == AGAIN), None)
    if again is None:
        raise RlxError("it is not known whether the same seed and actions lead to the same state")
    if again.difference is not None:
        raise RlxError("the same seed and actions do not lead to the same state")


def _behaviour(bench: _Bench) -> None:
    has_time = bench.time_share("behaviour")
    bench.behaviour = Behaviour(bench.make(), bench.numbers, bench.action_numbers, has_time)
    bench.inspection.episodes = bench.behaviour.episodes
    behave(bench.behaviour)
    if not has_time():
        played = f"only {bench.behaviour.steps:,} steps of {len(bench.behaviour.episodes)} episodes: slow"
        bench.inspection.unchecked.append(("behaviour", played))


def _time(bench: _Bench) -> None:
    _require_determinism(bench.inspection)
    has_time = bench.time_share("reward over time")
    player = bench.make_uncounted()
    for moment in _moments(bench):
        for trial in try_clocks(player, moment, clocks(player, moment)):
            bench.inspection.clocks.append(trial)
            if not has_time():
                return


def _moments(bench: _Bench) -> list[Moment]:
    """Choose early transitions with rewards of different sizes; a reward of 0 says nothing about its sign."""
    assert bench.behaviour is not None
    earliest: dict[float, tuple[int, Moment]] = {}
    for episode, actions in zip(bench.behaviour.episodes, bench.behaviour.actions, strict=True):
        for step, reward in enumerate(episode.rewards.tolist(), start=1):
            key = float(f"{reward:.1g}")
            if reward and step > 2 and (key not in earliest or step < earliest[key][0]):
                earliest[key] = (step, Moment(episode.seed, actions[:step]))
    ordered = sorted(earliest.values(), key=lambda pair: pair[0])
    return [moment for _, moment in ordered[:MOMENTS]]


def _vector(bench: _Bench) -> None:
    steps = bench.affordable(determinism.STEPS)
    call = bench.notebook.deadline.call
    sync = bench.env.model_copy(update={"vectorization": "sync"})
    with contextlib.closing(call(lambda: make_vector(sync, root=bench.root, num_envs=2))) as vector:
        bench.inspection.twins.append(call(lambda: determinism.vector_twin(bench.make, vector, steps=steps)))
    if is_batched(bench.env, root=bench.root):
        with contextlib.closing(make_vector(bench.env, root=bench.root, num_envs=3)) as worlds:
            bench.inspection.twins.append(call(lambda: determinism.worlds_twin(worlds, steps=steps)))


PARTS: dict[str, Callable[[_Bench], None]] = {
    "API": _api,
    "seeding": _seeding,
    "actions": _actions,
    "behaviour": _behaviour,
    "reward over time": _time,
    "vector": _vector,
}
