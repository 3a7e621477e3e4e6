from __future__ import annotations

from rlx.train.backends.command.argv import arguments, fill, override_arguments


def test_names_in_braces_are_filled_and_other_braces_stay() -> None:
    assert fill('{out}/a {"x": 1} {unknown}', {"out": "/o"}) == '/o/a {"x": 1} {unknown}'


def test_overrides_become_arguments_where_they_stand() -> None:
    words = ["python", "train.py", "{overrides}", "--seed", "{seed}"]
    found = arguments(words, {"seed": "3"}, override="--{key}={value}", overrides={"lr": 0.1, "net": {"size": [8, 8]}})
    assert found == ["python", "train.py", "--lr=0.1", "--net.size=[8, 8]", "--seed", "3"]


def test_a_template_with_a_space_gives_two_arguments_and_values_are_never_split() -> None:
    given = {"name": "a b {value}", "flag": True, "none": None}
    assert override_arguments("--{key} {value}", given) == ["--name", "a b {value}", "--flag", "true", "--none", "null"]
