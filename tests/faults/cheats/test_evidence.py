"""Cheats between a training's end and its decision: what measures, what was learnt, and what was written about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rlx.launch.study_jobs.checkpoint_hashes import final_checkpoint
from rlx.runs.checkpoints import foreign_checkpoint
from rlx.runs.run import Run
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
        return final_checkpoint(Run(self.root / "runs" / run).seed(seed))

    def exchanges(self, run: str, seed: int, policy: str) -> None:
        """Put another policy in the place of a trained one, with the hash that is kept beside it."""
        folder = self.root / "runs" / run / f"seed_{seed}" / "checkpoints"
        (folder.parent / "policy").write_text(policy)
        foreign_checkpoint.keep(folder, folder.parent / "policy", step=10)


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
            assert agent.is_refused(word, identity, says="the task changed after the contract") == {"BLOCKED"}
    assert agent.rows("evaluated", candidate=identity) == []
    assert agent.types("verdict", identity)["effect"] is not None


@pytest.mark.parametrize("change", ["metric.min_effect=0.7", "guardrails=[]"])
def test_a_contract_that_is_amended_before_the_decision_decides_nothing(agent: Miller, change: str) -> None:
    identity = agent.proposes(gain=0.02 if "metric" in change else 0.03, heat=1)
    agent.trains(identity)
    honest = agent.study.contract_path.read_text()
    agent.types("study", "amend", "-s", change)
    assert agent.is_refused("decide", identity, says="the contract changed") == {"APPROVAL_VOID"}
    assert agent.types("next", "--full")["action"] in ("rehearse", "approve")
    agent.study.contract_path.write_text(honest)
    agent.types("study", "amend")
    assert agent.types("decide", identity)["decision"]


def test_weights_that_are_exchanged_before_they_are_measured_have_no_score(agent: Miller) -> None:
    identity = agent.proposes(gain=0.04)
    run = agent.trains(identity)
    agent.exchanges(run, 1, "99.0,well,1,0.0")
    agent.types("verdict", identity)
    known = {one["seed"]: one for one in agent.rows("evaluated", candidate=identity)}
    assert known[1]["score"] == "NaN"
    assert "recorded is" in known[1]["failure"]
    assert [known[seed]["score"] for seed in (0, 2)] == pytest.approx([0.04, 0.84])


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_good_seed_of_the_baseline_is_not_dropped_by_spoiling_its_weights(tmp_path: Path, is_gone: bool) -> None:
    agent = Miller.built(tmp_path / "mill")
    run = str(agent.types("launch", "baseline", "--phase", "baseline")["run"])
    agent.types("wait", run, "--timeout", "120")
    good = agent.policy(run, 2)
    honest = good.read_text()
    good.unlink() if is_gone else agent.exchanges(run, 2, "nothing that reads")
    told = agent.types("study", "baseline", code=6)
    assert "it was changed after it was recorded" in told["hint"]
    assert agent.rows("evaluated", candidate="baseline", seed=2) == []
    agent.exchanges(run, 2, honest)
    assert agent.types("study", "baseline")["seeds"]["2"] == 0.8


def test_figures_that_are_edited_after_they_were_measured_pass_no_guard(agent: Miller) -> None:
    identity = agent.proposes(gain=2, heat=3)
    agent.trains(identity)
    assert agent.types("verdict", identity)["guardrails"]["0 - heat"]["answer"] == "harm"
    paths = sorted((agent.study.evidence / "trial").glob(f"{identity}_*.json"))
    honest = {path: path.read_bytes() for path in paths}
    for path in paths:
        path.write_bytes(honest[path].replace(b'"heat": 3.0', b'"heat": 0.0'))
        assert path.read_bytes() != honest[path]
    told = agent.types("decide", identity, code=6)
    assert told["error"] == f"evidence/trial/{identity}_0.json is not the file that was recorded"
    paths[0].unlink()
    assert agent.types("decide", identity, code=6)["error"] == f"evidence/trial/{identity}_0.json is gone"
    assert agent.rows("decided", candidate=identity) == []
    for path in paths:
        path.write_bytes(honest[path])
    assert agent.types("decide", identity)["decision"] == "inconclusive"


def test_what_is_measured_stays_what_the_scores_were_made_by(agent: Miller) -> None:
    """Else the heat of a candidate would be compared with the success of the baseline."""
    says = "were made with metric.name `success`: it cannot become `heat`"
    assert says in agent.types("study", "amend", "-s", "metric.name=heat", code=4)["error"]
    before = len(agent.rows("refused", action="approve"))
    with edited(agent.study.contract_path, "name: success", "name: heat"):
        assert says in agent.types("study", "approve", "--yes", "--by", "tester", code=4)["error"]
    (row,) = agent.rows("refused", action="approve")[before:]
    assert [one["code"] for one in row["reasons"]] == ["MEASURED"]
    agent.types("study", "amend", "-s", "budget.hours=1.5")
    agent.types("study", "approve", "--yes", "--by", "tester")


def test_a_ledger_that_is_cut_off_at_a_row_is_told_by_the_runs_it_no_longer_names(agent: Miller) -> None:
    identity = agent.proposes(gain=0.05)
    ledger = agent.study.folder / "ledger.jsonl"
    before = ledger.read_bytes()
    run = agent.trains(identity)
    whole = ledger.read_bytes()
    assert whole.startswith(before)
    ledger.write_bytes(before)
    try:
        told = agent.types("study", "audit", code=6)
        assert told["problems"] == [f"{run} was trained for more, and no row names it: rows are gone from the ledger, "
                                    "or an earlier study had this name"]  # fmt: skip
        assert f"ledger: {told['problems'][0]}" in agent.types("study", "verify", code=6)["problems"]
    finally:
        ledger.write_bytes(whole)
    assert agent.types("study", "audit")["problems"] == []


def test_a_policy_that_keeps_its_measuring_from_ending_is_the_candidates_own_failure(tmp_path: Path) -> None:
    """Else it would be measured for ever, and nothing else be decided."""
    agent = Miller.built(tmp_path / "mill", "evaluation.minutes=0.2")
    agent.types("study", "baseline")
    identity = agent.proposes(how="endless")
    plan = str(agent.study.state().candidates[identity].plan)
    run = str(agent.types("launch", identity, "--plan", plan, "--seeds", "1")["run"])
    agent.types("wait", run, "--timeout", "120")
    told = agent.types("decide", identity)
    assert (told["decision"], told["objections"]) == ("debug", ["it took longer than 12 s"])
    assert agent.types("next", "--full")["command"] != f"rlx decide {identity}"
