"""Every sampler: it stays in the space, repeats nothing, repeats itself, and learns where failures are."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from rlx.errors import UsageError
from rlx.search.observation import Observation, ranks
from rlx.search.parse_space import parse_space
from rlx.search.samplers import SAMPLERS, sampler_named
from rlx.search.samplers.sobol import sobol
from rlx.search.space import Space, Values

SPACE = parse_space(
    ["lr=log:0.00001:0.1", "layers=int:1:3", "kind=a,b,c", "extra=0:1 if kind=b", "sizes=[64,64],[32]"],
    read=yaml.safe_load,
)
EXTRAS = {"tpe": "optuna", "cmaes": "cmaes"}


def is_out_of_memory(values: Values) -> bool:
    return bool(values["lr"] > 1e-3)


def observed(values: Values) -> Observation:
    if is_out_of_memory(values):
        return Observation(values, has_failed=True)
    return Observation(values, float(-abs(np.log10(values["lr"]) + 4)))


def asked(name: str, count: int, *, batch: int, space: Space = SPACE) -> list[Observation]:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    history: list[Observation] = []
    while len(history) < count:
        proposed = sampler_named(name).propose(space, history, batch, seed=3)
        history += [observed(values) for values in proposed]
    return history


@pytest.mark.parametrize("name", SAMPLERS)
def test_proposals_are_new_configs_of_the_space(name: str) -> None:
    history = asked(name, 24, batch=8)
    assert all(SPACE.point(seen.values) is not None for seen in history)
    assert len({SPACE.identity(seen.values) for seen in history}) == len(history)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_same_history_gives_the_same_proposals(name: str) -> None:
    history = asked(name, 16, batch=8)
    again = [sampler_named(name).propose(SPACE, history, 4, seed=3) for _ in range(2)]
    assert again[0] == again[1]


@pytest.mark.parametrize("name", ["model", "tpe"])
def test_the_share_of_trials_in_a_failing_region_falls(name: str) -> None:
    history = asked(name, 48, batch=8)
    failed = [is_out_of_memory(seen.values) for seen in history]
    assert sum(failed[:16]) >= 4
    assert sum(failed[-16:]) <= sum(failed[:16]) // 2


@pytest.mark.parametrize("name", ["model", "random", "grid", "sobol", "tpe"])
def test_a_small_space_is_used_up_without_a_duplicate(name: str) -> None:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    small = parse_space(["a=1,2,3", "b=x,y"], read=yaml.safe_load)
    first = sampler_named(name).propose(small, [], 4, seed=0)
    history = [Observation(values, float(values["a"])) for values in first]
    rest = sampler_named(name).propose(small, history, 4, seed=0)
    assert len(first) == 4
    assert {small.identity(values) for values in (*first, *rest)} == {small.identity(values) for values in small.grid()}


def test_sobol_points_fill_the_space_evenly() -> None:
    points = sobol(256, 21, seed=5)
    for column in points.T:
        assert np.bincount((column * 16).astype(int), minlength=16).tolist() == [16] * 16
    pairs = (points[:, 0] * 16).astype(int) * 16 + (points[:, 1] * 16).astype(int)
    assert len(set(pairs.tolist())) == 256


def test_ranks_put_failures_last_and_longer_trainings_first() -> None:
    history = [
        Observation({}, 5.0, share=0.2),
        Observation({}, has_failed=True),
        Observation({}, 1.0, share=1.0),
        Observation({}, 2.0, share=1.0),
    ]
    assert np.argsort(ranks(history)).tolist() == [1, 0, 2, 3]


def test_an_unknown_sampler_is_named_with_its_neighbour() -> None:
    with pytest.raises(UsageError, match="unknown sampler `sobel`") as caught:
        sampler_named("sobel")
    assert caught.value.hint == "did you mean `sobol`?"
