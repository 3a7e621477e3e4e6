"""Layers merge as data, each key keeps the place it came from, and circles are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rlx.config import layers
from rlx.errors import ConfigError, NotFound, RlxError, UsageError

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


BASE = (
    "env:\n  id: A\n  kwargs: {x: 1, y: {z: 2}}\nalgo:\n  gamma: 0.9\n  learning_rate: {linear: [1, 0]}\nlist: [1, 2]\n"
)


def test_a_config_extends_a_file_beside_it(write: Write) -> None:
    write("configs/base.yaml", BASE)
    path = write("configs/child.yaml", "extends: base.yaml\nenv:\n  kwargs: {y: {w: 3}}\nlist: [9]\n")
    document = layers.stack(path).document
    assert document.data == {
        "env": {"id": "A", "kwargs": {"x": 1, "y": {"z": 2, "w": 3}}},
        "algo": {"gamma": 0.9, "learning_rate": {"linear": [1, 0]}},
        "list": [9],
    }
    assert document.source == "configs/child.yaml"
    assert str(document.place(("env", "id"))) == "configs/base.yaml:2"
    assert str(document.place(("env", "kwargs", "y", "w"))) == "configs/child.yaml:3"
    assert str(document.place(("list",))) == "configs/child.yaml:4"
    assert str(document.place(("list", 1))) == "configs/child.yaml:4"


def test_the_base_is_found_from_the_file_that_names_it(write: Write) -> None:
    write("base.yaml", "a: 1\nb: 1\nc: 1\n")
    write("configs/deep/middle.yaml", "extends: ../../base.yaml\nb: 2\nc: 2\n")
    path = write("configs/child.yaml", "extends: deep/middle.yaml\nc: 3\n")
    document = layers.stack(path).document
    assert document.data == {"a": 1, "b": 2, "c": 3}
    assert str(document.place(("a",))) == "base.yaml:1"
    assert str(document.place(("b",))) == "configs/deep/middle.yaml:2"


def test_of_several_bases_the_later_wins(write: Write) -> None:
    write("one.yaml", "a: 1\nb: 1\n")
    write("two.yaml", "b: 2\n")
    assert layers.stack(write("c.yaml", "extends: [one.yaml, two.yaml]")).document.data == {"a": 1, "b": 2}


def test_two_bases_may_share_one(write: Write) -> None:
    write("root.yaml", "a: 1\n")
    write("one.yaml", "extends: root.yaml\nb: 1\n")
    write("two.yaml", "extends: root.yaml\nc: 2\n")
    data = layers.stack(write("c.yaml", "extends: [one.yaml, two.yaml]")).document.data
    assert data == {"a": 1, "b": 1, "c": 2}


def test_a_catalog_config_can_be_extended_and_opened(write: Write) -> None:
    path = write("c.yaml", "extends: catalog:cartpole\nseed: 4\n")
    document = layers.stack(path).document
    assert document.data["env"]["id"] == "CartPole-v1"
    assert str(document.place(("env", "id"))).startswith("catalog:cartpole:")
    assert layers.stack(Path("catalog:cartpole")).document.source == "catalog:cartpole"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "x: 1\nextends: nope.yaml",
            "c.yaml:2: extends `nope.yaml`, but the file `nope.yaml` does not exist",
            "there are: c.yaml",
        ),
        ("extends: cc.yaml", "c.yaml:1: extends `cc.yaml`", "did you mean `c.yaml`?"),
        ("extends: catalog:cartpol", "c.yaml:1: no catalog config `cartpol`", "did you mean `catalog:cartpole`?"),
        ("extends: 3", "c.yaml:1: `extends` is 3; expected a config file or `catalog:NAME`", "base.yaml"),
        ("extends: [{a: 1}]", "c.yaml:1: `extends` is {'a': 1}", "base.yaml"),
        ("extends: c.yaml", "c.yaml:1: configs extend each other in a circle: c.yaml → c.yaml", "remove"),
    ],
)
def test_a_bad_extends_is_one_line_with_a_hint(write: Write, text: str, message: str, hint: str) -> None:
    path = write("c.yaml", text)
    with pytest.raises(ConfigError) as caught:
        layers.stack(path)
    assert caught.value.message.startswith(message)
    assert hint in (caught.value.hint or "")


def test_a_circle_over_several_files_is_shown(write: Write) -> None:
    write("b.yaml", "extends: sub/c.yaml")
    write("sub/c.yaml", "extends: ../a.yaml")
    path = write("a.yaml", "extends: b.yaml")
    with pytest.raises(ConfigError, match=r"sub/c.yaml:1: .*a.yaml → b.yaml → sub/c.yaml → a.yaml"):
        layers.stack(path)


def test_a_mistake_in_the_base_points_into_the_base(write: Write) -> None:
    write("base.yaml", "a: 1\na: 2\n")
    path = write("c.yaml", "extends: base.yaml")
    with pytest.raises(ConfigError, match=r"^base.yaml:2: key `a` appears twice"):
        layers.stack(path)


def test_an_unknown_catalog_config_is_not_found() -> None:
    with pytest.raises(NotFound, match="no catalog config `nope`") as caught:
        layers.stack(Path("catalog:nope"))
    assert caught.value.hint == "did you mean `catalog:hopper`?"


@pytest.mark.parametrize(
    ("overrides", "key", "value"),
    [
        (["algo.gamma=0.5"], ("algo", "gamma"), 0.5),
        (["algo.gamma=1e-1"], ("algo", "gamma"), 0.1),
        (["list=[3]"], ("list",), [3]),
        (["env.kwargs.x=hello world"], ("env", "kwargs", "x"), "hello world"),
        (["env.kwargs.x=a=b"], ("env", "kwargs", "x"), "a=b"),
        (["env.kwargs.x="], ("env", "kwargs", "x"), None),
        (["env.kwargs={n: 1}"], ("env", "kwargs"), {"x": 1, "y": {"z": 2}, "n": 1}),
        (["new.deep.key=1"], ("new", "deep", "key"), 1),
        (["algo.gamma=0.5", "algo.gamma=0.6"], ("algo", "gamma"), 0.6),
        (["algo.learning_rate={cosine: [2, 0]}"], ("algo", "learning_rate"), {"cosine": [2, 0]}),
    ],
)
def test_an_override_wins_over_the_file(
    write: Write, overrides: list[str], key: tuple[str, ...], value: object
) -> None:
    document = layers.stack(write("base.yaml", BASE), overrides).document
    found: object = document.data
    for part in key:
        assert isinstance(found, dict)
        found = found[part]
    assert found == value
    assert str(document.place(key)) == f"-s {overrides[-1]}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("algo.gamma", "-s algo.gamma: an override is `key=value`"),
        ("=3", "-s =3: an override is `key=value`"),
        ("algo..gamma=3", "-s algo..gamma=3: an override is `key=value`"),
        (".gamma=3", "-s .gamma=3: an override is `key=value`"),
        ("extends=x.yaml", "-s extends=x.yaml: `extends` cannot be overridden"),
        ("caf\udce9=1", "-s caf\\xe9=1: an override is `key=value`"),
        ("a=caf\udce9", "-s a=caf\\xe9:1: character U+DCE9 is not allowed"),
        ("a=[1", "-s a=[1:1: not valid YAML"),
        ("a={b: 1, b: 2}", "-s a={b: 1, b: 2}:1: key `b` appears twice"),
    ],
)
def test_a_bad_override_is_named(text: str, message: str) -> None:
    with pytest.raises(RlxError) as caught:
        layers.override(text)
    assert isinstance(caught.value, UsageError)
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_another_algorithm_starts_its_section_afresh_and_says_so(write: Write) -> None:
    path = write("a.yaml", "algo: {name: ppo, total_timesteps: 5, gamma: 0.9, clip_range: 0.1, batch_size: 64}")
    stacked = layers.stack(path, ["algo.batch_size=32", "algo.name=DQN"])
    assert stacked.document.data["algo"] == {"total_timesteps": 5, "gamma": 0.9, "batch_size": 32, "name": "DQN"}
    (note,) = stacked.notes
    assert not note.is_error
    assert "`clip_range`" in note.message


def test_the_same_algorithm_under_another_spelling_keeps_its_keys(write: Write) -> None:
    path = write("a.yaml", "algo: {name: qrdqn, batch_size: 64}")
    stacked = layers.stack(path, ["algo.name=QR-DQN"])
    assert stacked.document.data["algo"] == {"name": "QR-DQN", "batch_size": 64}
    assert stacked.notes == ()


def test_the_default_algorithm_counts_as_ppo(write: Write) -> None:
    path = write("a.yaml", "algo: {clip_range: 0.1}")
    assert layers.stack(path, ["algo.name=ppo"]).document.data["algo"] == {"clip_range": 0.1, "name": "ppo"}


def test_an_override_reaches_into_a_wrappers_arguments_by_its_index(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("env: {id: CartPole-v1, wrappers: [{time_limit: {max_steps: 9}}, flatten]}\n")
    data = layers.stack(path, ["env.wrappers.0.kwargs.max_steps=7"]).document.data
    assert data["env"]["wrappers"] == [{"name": "time_limit", "kwargs": {"max_steps": 7}}, "flatten"]
    with pytest.raises(ConfigError, match=r"`env\.wrappers\.2`: there is no such item"):
        layers.stack(path, ["env.wrappers.2.kwargs.max_steps=7"])


def test_an_index_into_wrappers_that_a_config_does_not_have_is_no_such_item(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("env: {id: CartPole-v1}\n")
    with pytest.raises(ConfigError, match=r"`env\.wrappers\.0`: there is no such item") as caught:
        layers.stack(path, ["env.wrappers.0.kwargs.alive=0"])
    assert "env.wrappers has 0" in (caught.value.hint or "")
