"""Documents: every mistake has a file, a line and a hint; what is dumped reads back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.config.yaml_lines import FileKind
from rlx.errors import ConfigError, NotFound
from rlx.study.candidate.candidate import Candidate
from rlx.study.contract import document
from rlx.study.contract.contract import Contract
from rlx.study.task.task import Task

FILE_KIND = FileKind("contract", "make one: rlx study new")


def contract_error(tmp_path: Path, text: str) -> ConfigError:
    path = tmp_path / "contract.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        document.read(path, Contract, kind=FILE_KIND)
    return caught.value


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("study: a\ntask: b\nmetrik: {name: x}\n", "contract.yaml:3: unknown key `metrik`", "did you mean `metric`?"),
        ("study: a\ntask: b\nbudget:\n  seeds: 3\n  hour: 2\n", ":5: unknown key `budget.hour`", "`budget.hours`?"),
        ("study: a\ntask: b\ntrial_steps: 0.5\n", "unknown key `trial_steps`", "did you mean `budget.trial_steps`?"),
        ("study: a\ntask: b\nbudget: {alpha: 0.5}\n", "unknown key `budget.alpha`", "did you mean `metric.alpha`?"),
        ("study: a\ntask: b\nmetric: {}\n", ":3: `metric.name` is missing", "text"),
        ("study: a\ntask: b\nmetric: {name: x, seeds: ten}\n", '`metric.seeds` is "ten"; expected a whole', None),
        ("study: a\ntask: b\nconfirmed: [task, metrics]\n", '`confirmed.1` is "metrics"; expected', "`metric`?"),
        ("study: a\ntask: b\nevaluation: {level: seald}\n", '`evaluation.level` is "seald"', "`sealed`?"),
        ("study: A B\ntask: b\n", ':1: `study` is "A B"; expected text like', None),
        ("study: a\ntask: b\nscope: {paths: envs}\n", '`scope.paths` is "envs"; expected a list', None),
        ("study: a\ntask: b\nguardrails:\n- {expresion: x}\n", ":4: `guardrails.0.expression` is missing", None),
        ("study: a\ntask: b\nmetric: [\n", "not valid YAML", None),
        (
            "schema: 2\nstudy: a\ntask: b\nother: 1\n",
            "contract.yaml:1: `schema` is 2, but this rlx only reads 1",
            "a newer rlx",
        ),
        ("", "the contract is empty", "rlx study new"),
        ("- a\n", "a contract is a mapping", "rlx study new"),
    ],
)
def test_a_mistake_has_its_line_and_a_hint(tmp_path: Path, text: str, says: str, hint: str | None) -> None:
    error = contract_error(tmp_path, text)
    assert says in error.message
    assert hint is None or hint in (error.hint or "")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    error = contract_error(
        tmp_path, "study: a\ntask: b\nmetrik: 1\nbudget: {seeds: 0, hours: 1, per_seed_minutes: 1}\n"
    )
    assert "unknown key `metrik`" in error.message
    assert "`budget.seeds` is 0" in error.message


def test_an_unknown_surface_is_named(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text("name: a\nadapter: {kind: command}\nsurfaces:\n  rewrd: {keys: [a]}\n")
    with pytest.raises(ConfigError, match=r"task.yaml:4: unknown key `surfaces.rewrd`") as caught:
        document.read(path, Task, kind=FILE_KIND)
    assert caught.value.hint == "did you mean `surfaces.reward`?"


def test_a_launcher_at_the_wrong_level_is_told_where_it_belongs(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text("name: a\nadapter: {kind: command}\nlauncher: {executor: custom}\n")
    with pytest.raises(ConfigError) as caught:
        document.read(path, Task, kind=FILE_KIND)
    assert caught.value.hint == "did you mean `adapter.launcher`?"


def test_a_key_without_a_value_is_as_if_it_was_not_there(tmp_path: Path) -> None:
    path = tmp_path / "contract.yaml"
    budget = "{seeds: 1, hours: 1, per_seed_minutes: 1, until:}"
    path.write_text(f"study: a\ntask: b\nmetric:\nguardrails:\nbudget: {budget}\n")
    read = document.read(path, Contract, kind=FILE_KIND)
    assert read.metric is None
    assert read.guardrails == ()


def test_a_file_that_is_not_there_says_how_one_is_made(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no contract file") as caught:
        document.read(tmp_path / "contract.yaml", Contract, kind=FILE_KIND)
    assert caught.value.hint == "make one: rlx study new"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"kind": "code",\n "kind": "code"}', "key `kind` appears twice"),
        ('{"kind": "code",\n "predicts": NaN}', "`NaN` is not a number"),
        ('{"kind": "code",\n "hypothesis": "x"', ":2: not valid JSON"),
        ("[1]", "a contract is an object"),
        ('{"id": "c001", "kind": "code", "hypothesis": "x",\n\n "change": {}}', ":3: unknown key `change`"),
        ('{"id": "c001", "kind": "cod", "hypothesis": "\\ud83d\\ude00"}', '`kind` is "cod"'),
    ],
)
def test_json_is_strict_and_has_lines(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "candidate.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        document.read(path, Candidate, kind=FILE_KIND)
    assert says in caught.value.message


def test_comments_change_nothing_even_beside_long_text(tmp_path: Path) -> None:
    long = "a sentence that goes on " * 12
    card = {"mission": long, "short": "x: y # z"}
    data = {"schema": 1, "card": card, "rows": [{"a": 1}, {"a": [1, 2]}], "last": long}
    comments = {"card": "About.", "card.mission": "why", "card.short": "what", "rows": "Rows.", "last": "End."}
    text = document.dump(data, comments=comments, head="Some head.")
    path = tmp_path / "some.yaml"
    path.write_text(text, encoding="utf-8")
    assert document.load(path, kind=FILE_KIND).data == data
    assert "# why" in text
    assert "# what" in text
    assert "# End." in text
