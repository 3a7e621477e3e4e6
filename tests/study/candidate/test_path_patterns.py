"""Patterns: what a glob, a region and a key pattern cover, and what is no place in a repository."""

from __future__ import annotations

import pytest

from rlx.study.candidate import path_patterns


@pytest.mark.parametrize(
    ("pattern", "path", "covers"),
    [
        ("envs/lift.py", "envs/lift.py", True),
        ("envs/lift.py", "envs/lift.pyc", False),
        ("envs/lift.py", "src/envs/lift.py", False),
        ("envs", "envs/deep/lift.py", True),
        ("envs/", "envs/lift.py", True),
        ("./envs/lift.py", "envs/lift.py", True),
        ("envs/*.py", "envs/lift.py", True),
        ("envs/*.py", "envs/deep/lift.py", False),
        ("envs/**", "envs/deep/lift.py", True),
        ("**/lift.py", "envs/deep/lift.py", True),
        ("**/lift.py", "lift.py", True),
        ("**", "anything/at/all", True),
        ("envs/l?ft.py", "envs/lift.py", True),
        ("envs/li[f]t.py", "envs/lift.py", False),
        ("envs/lift.py::Lift", "envs/lift.py", True),
        ("Envs/lift.py", "envs/lift.py", False),
        ("envs/lift.py", "envs/lift.py\n", False),
    ],
)
def test_a_path_pattern_covers(pattern: str, path: str, covers: bool) -> None:
    assert path_patterns.covers_path(pattern, path) is covers


@pytest.mark.parametrize(
    ("pattern", "key", "covers"),
    [
        ("algo.*", "algo.gamma", True),
        ("algo.*", "algo.kwargs.deep", True),
        ("algo.*", "algo", False),
        ("algo", "algo.gamma", True),
        ("algo.gamma", "algo.gamma_", False),
        ("env.kwargs", "env.kwargs.mass", True),
        ("*", "seed", True),
    ],
)
def test_a_key_pattern_covers(pattern: str, key: str, covers: bool) -> None:
    assert path_patterns.covers_key(pattern, key) is covers


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("env.*", "env.id", True),
        ("env", "env.id", True),
        ("*", "eval.*", True),
        ("eval.episodes", "eval.*", True),
        ("algo.*", "eval.*", False),
        ("env.kwargs.*", "env.id", False),
    ],
)
def test_key_patterns_overlap(one: str, other: str, overlap: bool) -> None:
    assert path_patterns.keys_overlap(one, other) is overlap
    assert path_patterns.keys_overlap(other, one) is overlap


@pytest.mark.parametrize("key", ["seed", "seeds", "train.seed", "--seed", "randomSeed", "RNG_SEED", "env.kwargs.seed"])
def test_a_seed_is_a_seed_by_any_name(key: str) -> None:
    assert path_patterns.is_seed_key(key)


@pytest.mark.parametrize("key", ["algo.speed", "max_speed", "feed_forward", "exceeds"])
def test_other_words_are_no_seeds(key: str) -> None:
    assert not path_patterns.is_seed_key(key)


@pytest.mark.parametrize(
    "pattern",
    ["/etc/passwd", "../other/x.py", "a/../b.py", "a//b.py", "~/x.py", "a\\b.py", "", "e\u0301.py", "a\u200b.py",
     "envs/*.py::Lift", "envs/lift.txt::Lift", "envs/lift.py::", "envs/lift.py::a-b", "envs/lift.py::Lift."],
)  # fmt: skip
def test_what_is_no_place_in_a_repository(pattern: str) -> None:
    assert path_patterns.path_problem(pattern)


@pytest.mark.parametrize("pattern", ["envs/lift.py", "envs/**", "a.py::B.c", "./a.py", "folder/", "é.py"])
def test_what_is_a_place(pattern: str) -> None:
    assert path_patterns.path_problem(pattern) is None
