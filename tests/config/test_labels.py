"""What differs between configs, in a few characters."""

from __future__ import annotations

from typing import Any

from rlx.config.labels import differing_keys, labels, spell

BASE: dict[str, Any] = {"run_name": "a", "seeds": 3, "env": {"id": "X"}, "algo": {"name": "ppo", "learning_rate": 3e-4}}


def changed(**algo: Any) -> dict[str, Any]:
    return {**BASE, "run_name": "b", "seeds": 5, "algo": {**BASE["algo"], **algo}}


def test_a_label_names_only_what_differs() -> None:
    assert labels([BASE, changed(learning_rate=1e-3)]) == ["lr 3e-4", "lr 1e-3"]
    assert labels([BASE, changed()]) == ["", ""]


def test_absent_keys_lists_and_schedules_are_spelled() -> None:
    found = labels([BASE, changed(gamma=0.9)])
    assert found == ["gamma –", "gamma 0.9"]
    assert spell([64, 64]) == "64×64"
    assert spell({"linear": [3e-4, 0.0]}) == "linear 3e-4→0"
    assert spell(True) == "true"
    assert spell(100_000) == "100,000"


def test_many_differences_are_counted() -> None:
    other = changed(gamma=0.9, batch_size=64, clip_range=0.1, gae_lambda=0.9)
    assert len(differing_keys([BASE, other])) == 4
    assert labels([BASE, other])[1].endswith("and 1 more")


def test_among_many_configs_a_label_names_what_is_unusual() -> None:
    others = [changed(gamma=0.9), changed(batch_size=64), changed(clip_range=0.1), changed(gae_lambda=0.9, gamma=0.9)]
    assert labels([BASE, changed(), *others]) == ["", "", "gamma 0.9", "batch 64", "clip 0.1", "gamma 0.9, lambda 0.9"]
