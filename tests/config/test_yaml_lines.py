"""YAML is read strictly, with the line of every key, and every bad file is one clear line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlx.config import yaml_lines
from rlx.errors import ConfigError, NotFound, RlxError


def parse(text: str) -> yaml_lines.Document:
    return yaml_lines.parse(text, source="a.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-4", 3e-4),
        ("3E4", 3e4),
        ("1e5", 1e5),
        ("-2.5e+3", -2500.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1_000_000", 1_000_000),
        ("0x1f", 31),
        (".inf", float("inf")),
        ("yes", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("010", "010"),
        ("'3'", "3"),
        ("v1.2.3", "v1.2.3"),
        ("e5", "e5"),
        ("[1, two, 3.0]", [1, "two", 3.0]),
        ("{a: {b: 1}}", {"a": {"b": 1}}),
    ],
)
def test_a_value_is_read_as_people_mean_it(text: str, value: object) -> None:
    read = yaml_lines.value(text, source="-s x")
    assert (read, type(read)) == (value, type(value))


def test_every_key_knows_its_line() -> None:
    document = parse("env:\n  id: CartPole-v1\nalgo:\n  # a comment\n  gamma: 0.9\n  list:\n    - a\n    - b: 1\n")
    lines = {path: place.line for path, place in document.places.items()}
    assert lines == {
        ("env",): 1,
        ("env", "id"): 2,
        ("algo",): 3,
        ("algo", "gamma"): 5,
        ("algo", "list"): 6,
        ("algo", "list", 0): 7,
        ("algo", "list", 1): 8,
        ("algo", "list", 1, "b"): 8,
    }


@pytest.mark.parametrize(
    ("path", "place"), [(("env", "id"), "a.yaml:2"), (("env", "nope", "x"), "a.yaml:1"), (("other",), "a.yaml")]
)
def test_a_missing_key_is_placed_at_the_nearest_key_around_it(path: tuple[str, ...], place: str) -> None:
    assert str(parse("env:\n  id: x").place(path)) == place


def test_a_merged_anchor_keeps_the_lines_of_both() -> None:
    document = parse("base: &base\n  a: 1\n  b: 2\nother:\n  <<: *base\n  b: 3\n")
    assert document.data["other"] == {"a": 1, "b": 3}
    assert document.place(("other", "a")).line == 2
    assert document.place(("other", "b")).line == 6


def test_a_key_written_before_the_merge_still_wins() -> None:
    document = parse("base: &base {a: 1, b: 2}\nother:\n  b: 3\n  <<: [*base]\n")
    assert document.data["other"] == {"a": 1, "b": 3}
    assert document.place(("other", "b")).line == 3


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "a.yaml: the config is empty", "env: {id: CartPole-v1}"),
        ("# only a comment\n", "a.yaml: the config is empty", "env"),
        ("---\n", "a.yaml: the config is empty", "env"),
        ("null", "a.yaml: the config is empty", "env"),
        ("- a\n- b\n", "a.yaml:1: a config is a mapping of keys to values; this is a list", "env"),
        ("just words", "a.yaml:1: a config is a mapping of keys to values; this is a single value", "env"),
        ("a: 1\nb: 2\na: 3\n", "a.yaml:3: key `a` appears twice", "line 1"),
        ("env:\n  id: x\n  id: y\n", "a.yaml:3: key `env.id` appears twice", "line 2"),
        ("env:\n\tid: x\n", "a.yaml:2: a tab, but YAML needs spaces", "spaces"),
        ("env:\n  id: x\n\tnum_envs: 1\n", "a.yaml:3: a tab, but YAML needs spaces", "spaces"),
        ("a: [1, 2\n", "a.yaml:2: not valid YAML", "column"),
        ("a: b: c", "a.yaml:1: not valid YAML: mapping values are not allowed here", "column 5"),
        ('a: "open', "a.yaml:1: not valid YAML", "quotes"),
        ("a: 1\n---\nb: 2\n", "a.yaml:2: not valid YAML", "column"),
        ("a: *nowhere", "a.yaml:1: not valid YAML: found undefined alias 'nowhere'", "column"),
        ("a: &x {b: *x}", "a.yaml:1: an alias refers to itself", "write"),
        ("a: !!python/object/apply:os.system [echo]", "a.yaml:1: YAML tag `python/object/apply:os.system`", "numbers"),
        ("a: !!python/name:os.system x", "a.yaml:1: YAML tag `python/name:os.system`", "numbers"),
        ("a: !mine 3", "a.yaml:1: YAML tag `!mine` is not allowed", "numbers"),
        ("a: !!set {b}", "a.yaml:1: YAML tag `set` is not allowed", "numbers"),
        ("a: !!binary aGk=", "a.yaml:1: YAML tag `binary` is not allowed", "numbers"),
        ("a: !!int abc", "a.yaml:1: invalid literal", "value"),
        ("? [1, 2]\n: 3", "a.yaml:1: a key cannot be a list or mapping", "quote"),
        ("a: 1\nb: \x07", "a.yaml:2: character U+0007 is not allowed in YAML", "remove"),
        ('a: "\\ud800"', "a.yaml:1: half a character", "remove"),
        ("<<: 3", "a.yaml:1: `<<` takes a mapping", "anchor"),
        ("a: " + "9" * 5000, "a.yaml:1: Exceeds the limit", "value"),
        ("a: " + "[" * 60 + "]" * 60, "a.yaml:1: too many or too deep values", "aliases"),
        ("a: " + "[" * 1500, "a.yaml: nested too deeply", "levels"),
    ],
)
def test_bad_yaml_is_one_line_with_a_hint(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    assert hint in (caught.value.hint or "")


def test_aliases_cannot_blow_up_the_memory() -> None:
    lines = ["a: &a [1,1,1,1,1,1,1,1,1,1]"]
    lines += [f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    with pytest.raises(ConfigError, match="too many or too deep values"):
        parse("\n".join(lines))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("latin.yaml", b"a: 1\nb: caf\xe9\n", "latin.yaml:2: not UTF-8 text (byte 0xe9)"),
        ("utf16.yaml", "a: 1".encode("utf-16"), "utf16.yaml:1: not UTF-8 text"),
        ("large.yaml", b"#" * 1_000_001, "large.yaml: too large for a config"),
    ],
)
def test_bytes_that_are_not_a_config_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        yaml_lines.read(tmp_path / name)
    assert message in caught.value.message
    assert caught.value.hint


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert yaml_lines.read(tmp_path / "bom.yaml").data == {"a": 1}


def test_a_folder_is_not_a_config(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").touch()
    with pytest.raises(ConfigError, match="this is a folder") as caught:
        yaml_lines.read(tmp_path)
    assert "one.yaml" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("configs/ppoo.yaml", "did you mean `configs/ppo.yaml`?"),
        ("configs/ppo", "did you mean `configs/ppo.yaml`?"),
        ("ppo.yaml", "did you mean `configs/ppo.yaml`?"),
        ("cartpole", "did you mean `catalog:cartpole`?"),
        ("configs/zzz.yaml", "there are: configs/ppo.yaml"),
        ("configs/ppo.yaml/x", "there are: configs/ppo.yaml"),
        ("a\0b", "there are: configs/ppo.yaml"),
    ],
)
def test_a_missing_file_names_the_one_that_was_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "ppo.yaml").touch()
    with pytest.raises(NotFound) as caught:
        yaml_lines.read(Path(asked))
    assert caught.value.hint == hint


def test_without_any_config_the_hint_is_init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound) as caught:
        yaml_lines.read(Path("nope.yaml"))
    assert caught.value.hint == "create one: rlx init --here"


def test_a_file_that_fails_to_be_read_says_so() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        yaml_lines.read(Path("/proc/self/mem"))


def test_a_name_that_is_not_utf_8_can_be_printed(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9\n.yaml")
    path.write_text("- 1")
    with pytest.raises(RlxError) as caught:
        yaml_lines.read(path)
    assert "caf\\xe9\\n.yaml:1:" in caught.value.message
    caught.value.message.encode()
