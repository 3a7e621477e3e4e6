"""What becomes of trials that fail, are lost or are stopped, in a real study: what `next` says works, every time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.faults.cheats.test_study import CONFIG
from tests.faults.lab import PAY
from tests.faults.lab import Lab as Project

pytestmark = pytest.mark.slow
SLEEPS = PAY.replace("    return", "    import time\n    time.sleep(0.04)\n    return", 1)
BREAKS = (
    PAY[: PAY.index("def")]
    + """\
def reward(at, there):
    reward.calls = getattr(reward, "calls", 0) + 1
    return {}["nothing"] if reward.calls > 150 else 0.0
"""
)


class Lab:
    """A study of a walk on a line whose reward may be written anew; typed into as an agent would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        Project(root).commits(CONFIG)
        self.rlx(
            "study", "new", "walk", "--config", "configs/line.yaml", "--metric", "success_rate",
            "--edit", "envs/pay.py::reward", "--seeds", "60", "--hours", "1", "-s", "metric.seeds=2",
            "-s", "evaluation.episodes=4", "-s", "budget.per_seed_minutes=1", "-s", "automation.stop=[]",
        )  # fmt: skip
        self.rlx("study", "approve", "--yes", "--by", "tester")
        self.rlx("study", "baseline")
        self.rlx(
            "propose", "--kind", "reward engineering", "--hypothesis", "it should guide",
            "--record", "reflection=the reward is sparse", "--record", "reason=it should guide",
        )  # fmt: skip

    def rlx(self, *argv: str, code: int = 0) -> dict[str, Any]:
        return Project(self.root).types(*argv, code=code)

    def next(self, action: str) -> dict[str, Any]:
        """Type what `next` recommends, which must be this."""
        told = self.rlx("next", "--full")
        assert told["action"] == action, told
        return self.rlx(*told["command"].split()[1:])

    def trains(self, run: str) -> None:
        """Return when a run's first seed has begun."""
        while self.rlx("info", run)["status"] != "running" or not list((self.root / "runs" / run).glob("seed_*/ev*")):
            pass

    def writes(self, text: str) -> None:
        (self.root / ".rlx/tasks/line/studies/walk/worktrees/c001/envs/pay.py").write_text(text)


def test_a_lost_or_stopped_trial_is_taken_up_with_the_same_seeds_and_a_mended_one_is_judged_anew(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path / "lab")
    lab.writes(SLEEPS)
    lab.next("check")
    first = lab.next("launch")
    lab.trains(first["run"])
    supervisor = json.loads((lab.root / "runs" / first["run"] / "supervisor.json").read_text())
    os.kill(supervisor["pid"], 9)
    lab.rlx("wait", first["run"], "--timeout", "60", code=5)
    assert "c001 was lost" in lab.rlx("next", "--full")["why"]
    lab.next("check")
    second = lab.next("launch")
    assert second["seeds"] == first["seeds"]
    lab.trains(second["run"])
    lab.rlx("stop", second["run"])

    lab.writes(BREAKS)
    lab.next("mend")
    failed = lab.next("launch")
    lab.rlx("wait", failed["run"], "--timeout", "60", code=5)
    assert "KeyError" in lab.rlx("next", "--full")["why"]
    for _ in range(2):
        read = lab.next("mend")
        assert any("KeyError: 'nothing'" in log for log in read["logs"].values())
    refused = lab.rlx("check", "candidate", "c001", code=4)
    assert [one["code"] for one in refused["reasons"]] == ["UNCHANGED"]
    assert lab.rlx("check", "candidate", "c001", "--dry-run", code=4)["reasons"] == refused["reasons"]
    assert lab.rlx("study", "loop")["ended"].startswith("somebody must fix it")
    assert len(lab.rlx("status")["candidates"]) == 1

    lab.writes(PAY.replace("0.0", "-0.1"))
    lab.next("mend")
    mended = lab.next("launch")
    lab.rlx("wait", mended["run"], "--timeout", "60")
    decided = lab.next("decide")
    assert decided["objections"] == []
    assert (decided["n"], decided["crashed"]) == ([6, 3], 0)
    assert decided["decision"] in ("rejected", "inconclusive")
    assert decided["complexity"]["lines"] == 2
    assert decided["complexity"]["parameters"] > 0
    assert lab.rlx("study", "verify")["problems"] == []
    assert lab.rlx("study", "audit")["is_sound"]
    assert not any("last refusal" in one for one in lab.rlx("next", "--full")["findings"])
