"""Cheats between a training's end and its decision: what measures, what was learnt, and what was written about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.loop.mill import Mill

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cheats on evidence")]
GUARD = 'guardrails=[{"expression": "0 - heat", "margin": 0.1, "mode": "harm"}]'


class Miller(Mill):
    """An agent in the mill that edits the project's files between two commands."""

    def rows(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        lines = (self.study.folder / "ledger.jsonl").read_text().splitlines()
        bodies = [json.loads(json.loads(line)["body"]) for line in lines]
        return [one for one in bodies if one["event"] == event and fields.items() <= one.items()]

    def is_refused(self, *words: str, says: str) -> set[str]:
        """Type a command that must be refused; return the codes, which are one new row of the ledger."""
        before = len(self.rows("refused"))
        told = self.types(*words, code=4)
        *_, row = self.rows("refused")
        assert len(self.rows("refused")) == before + 1
        assert [one["code"] for one in told["reasons"]] == [one["code"] for one in row["reasons"]]
        assert says in told["error"]
        return {one["code"] for one in row["reasons"]}

    def policy(self, run: str, seed: int) -> Path:
        (found,) = (self.root / "runs" / run / f"seed_{seed}").rglob("policy")
        return found


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Miller:
    found = Miller.built(tmp_path_factory.mktemp("cheats") / "mill", GUARD, "budget.seeds=200")
    found.types("study", "baseline")
    return found


@contextmanager
def edited(path: Path, before: str, after: str) -> Iterator[None]:
    """Have other words in a file for a while."""
    honest = path.read_text()
    assert before in honest
    path.write_text(honest.replace(before, after))
    try:
        yield
    finally:
        path.write_text(honest)


def test_a_task_that_is_edited_while_it_is_measured_measures_nothing(agent: Miller) -> None:
    identity = agent.proposes(gain=0.01)
    agent.trains(identity)
    with edited(agent.study.task_path, "success: success", "success: heat"):
        for word in ("verdict", "decide"):
            assert agent.is_refused(word, identity, says="the task says something else") == {"BLOCKED"}
    assert agent.rows("evaluated", candidate=identity) == []
    assert agent.types("verdict", identity)["effect"] is not None


@pytest.mark.parametrize("change", ["metric.min_effect=0.7", "guardrails=[]"])
def test_a_contract_that_is_amended_before_the_decision_decides_nothing(agent: Miller, change: str) -> None:
    identity = agent.proposes(gain=0.02 if "metric" in change else 0.03, heat=1)
    agent.trains(identity)
    honest = agent.study.contract_path.read_text()
    agent.types("study", "amend", "-s", change)
    assert agent.is_refused("decide", identity, says="the contract changed") == {"APPROVAL_VOID"}
    assert agent.types("next")["action"] in ("rehearse", "approve")
    agent.study.contract_path.write_text(honest)
    agent.types("study", "amend")
    assert agent.types("decide", identity)["decision"]
