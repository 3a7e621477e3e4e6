"""One idea in one call: real processes, a small repository, every answer within 1 kB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
    assert {reason["code"] for reason in seed["reasons"]} >= {"SEED_ONLY", "SCOPE"}
    assert [reason["code"] for reason in mill.tries("-f", mill.idea(), code=4)["reasons"]] == ["NO_CHANGE"]
    crashed = mill.tries("-f", mill.idea(how="crash"))
    assert crashed["decision"] == "debug"
    tried = mill.types("propose", "--withdraw", "c001", code=4)
    assert [reason["code"] for reason in tried["reasons"]] == ["WITHDRAW"]
    assert mill.tries("--claim", code=4)["reasons"][0]["code"] == "CLAIMS"
    assert mill.tries("c009", code=3)["hint"]
