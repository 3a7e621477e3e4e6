"""One idea in one call: real processes, a small repository, every answer within 1 kB."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.launch import resources
from rlx.loop.study.agent.try_candidate import short_answer, try_proposal
from tests.loop.mill import Mill

pytestmark = pytest.mark.slow
MOST_BYTES = 1024


class Agent(Mill):
    """Tries ideas, and notes the size of every answer."""

    def tries(self, *words: str, code: int = 0) -> dict[str, Any]:
        found, told, errors = self._started(("try", *words, "--json"))
        assert found == code, told + errors
        assert len(told.encode()) <= MOST_BYTES
        answer: dict[str, Any] = json.loads(told)
        return answer

    def idea(self, **changes: object) -> str:
        document = {"kind": "hyperparameter", "hypothesis": f"it gains by {changes}", "changes": changes}
        (self.root / "candidate.json").write_text(json.dumps(document))
        return "candidate.json"


@pytest.fixture
def mill(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Agent:
    return Agent.ready(tmp_path / "mill", tmp_path_factory)


def test_an_idea_goes_from_its_proposal_to_its_decision_and_the_head_to_its_claim(mill: Agent) -> None:
    failed = mill.tries("-f", mill.idea(heat=0.5))
    assert (failed["candidate"], failed["decision"]) == ("c001", "rejected")
    assert "p = " not in failed["why"]
    begun = mill.tries("-f", mill.idea(gain=5), "--seconds", "0")
    assert (begun["candidate"], begun["decision"], begun["command"]) == ("c002", "draft", "rlx try c002")
    ended = mill.tries("-f", "candidate.json")
    assert (ended["candidate"], ended["decision"], ended["head"]) == ("c002", "advanced", "c002")
    assert ended["why"].startswith("better: +")
    assert ended["measured"]["seeds"] == [6, 6]
    assert not mill.study.state().jobs_of("c002", "promotion"), "nothing races the head yet"
    again = mill.tries("-f", "candidate.json")
    assert (again["candidate"], again["decision"]) == ("c002", "advanced"), "the same proposal is the same candidate"
    repeated = mill.tries("-f", mill.idea(heat=0.5), "--seconds", "0")
    assert repeated["candidate"] == "c003"
    assert repeated["notes"][0].startswith("c001 made the same change: rejected, "), "it failed on another head"
    mill.types("propose", "--withdraw", "c003", "--why", "it failed before")
    short = mill.types("next")
    assert len(json.dumps(short)) <= MOST_BYTES
    assert [line.split()[0] for line in short["history"]] == ["c001", "c002"]
    claimed = mill.tries("--claim")
    assert claimed["why"].startswith("provisional: +"), "two seeds per side are too few"
    assert mill.types("study", "verify")["problems"] == []


def test_what_cannot_be_tried_says_why_by_its_code(mill: Agent) -> None:
    seed = mill.tries("-f", mill.idea(seed=3), code=4)
    assert [reason["code"] for reason in seed["reasons"]] == ["SEED_ONLY"]
    assert [reason["code"] for reason in mill.tries("-f", mill.idea(), code=4)["reasons"]] == ["NO_CHANGE"]
    crashed = mill.tries("-f", mill.idea(how="crash"))
    assert crashed["decision"] == "debug"
    assert crashed["why"].startswith("it failed: ")
    assert "KeyError" in crashed["why"]
    tried = mill.types("propose", "--withdraw", "c001", code=4)
    assert [reason["code"] for reason in tried["reasons"]] == ["WITHDRAW"]
    assert mill.tries("--claim", code=4)["reasons"][0]["code"] == "CLAIMS"
    assert mill.tries("c009", code=3)["hint"]


def test_two_calls_with_one_idea_at_the_same_time_make_one_candidate_and_one_decision(mill: Agent) -> None:
    words = mill.argv("try", "-f", mill.idea(gain=5), "--json")
    calls = [
        subprocess.Popen(words, cwd=mill.root, env=mill.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    ended = [call.communicate() for call in calls]
    assert [call.returncode for call in calls] == [0, 0], ended
    answers = [json.loads(told) for told, _ in ended]
    assert [(answer["candidate"], answer["decision"]) for answer in answers] == [("c001", "advanced")] * 2
    trained = [seed for job in mill.study.state().jobs_of("c001", "trial") for seed in job.seeds]
    assert len(trained) == len(set(trained)), "no seed trains twice"
    assert len(mill.study.state().candidates) == 1


class WalkedAwayError(Exception):
    """The agent left while its candidate trains."""


def test_another_candidate_trains_beside_the_first_if_the_contract_and_the_cores_have_room(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "available_cores", lambda: 8)
    mill = Agent.ready(tmp_path / "mill", tmp_path_factory, "hardware.parallel=8")
    side_by_side = []

    def leave(*_: object, **__: object) -> None:
        side_by_side.append([job.candidate for job in mill.study.state().open_jobs])
        raise WalkedAwayError

    for number in range(2):
        idea = {"kind": "hyperparameter", "hypothesis": "it stays", "changes": {"how": "stay", "gain": number}}
        with pytest.raises(WalkedAwayError):
            try_proposal(mill.study, idea, say=lambda text: None, follow=leave)
    assert side_by_side == [["c001"], ["c001", "c002"]]
    for job in mill.study.state().open_jobs:
        mill.types("stop", str(job.run))


@pytest.mark.parametrize("sign", ["x", "ü", "学", "🙂"])
def test_an_answer_of_the_longest_texts_fits_in_whatever_alphabet(sign: str) -> None:
    long = sign * 220
    whole = {
        "study": "s" * 64, "candidate": "c001", "change": sign * 70, "builds_on": "c000", "decision": "inconclusive",
        "is_running": False, "measured": {"metric": "m" * 60, "scores": {"c000": 0.1, "c001": 0.2}, "effect": 0.1},
        "why": long, "notes": [long, long], "left": {"seeds": 100, "candidates": 20}, "head": "c000",
        "worktree": ".rlx/tasks/t/studies/s/worktrees/c001", "command": "rlx try c001 --study " + "s" * 64,
    }  # fmt: skip
    answer = short_answer(whole)
    assert len(files.encode({"schema": 1, "exit_code": 0, **answer})) <= MOST_BYTES
    assert answer["command"] == whole["command"]
    assert answer["why"], "the reason is shortened, not dropped"
