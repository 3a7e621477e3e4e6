"""A study that is measured by what its trainings log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop import mill
from tests.loop.mill import Mill

pytestmark = pytest.mark.slow


def test_a_candidate_that_logs_no_metric_is_to_be_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, its decision ended with 6 for ever, and it was what came next."""
    monkeypatch.setattr(mill, "TRAIN", mill.TRAIN.replace('"loss": 1.0', '"x" if how == "mute" else "loss": 1.0'))
    settings = ("metric.name=loss", "metric.direction=minimize", "metric.source=training", "evaluation.level=reported")
    agent = Mill.built(tmp_path / "mill", *settings)
    agent.types("study", "baseline")
    identity = agent.proposes(how="mute")
    agent.trains(identity)
    told = agent.types("decide", identity)
    assert (told["verdict"], told["decision"]) == ("invalid", "debug")
    assert "logged no `loss`; it logged x" in told["objections"][0]


def test_a_training_that_leaves_only_its_log_is_measured_by_it(tmp_path: Path) -> None:
    settings = ("metric.name=loss", "metric.direction=minimize", "metric.source=training", "evaluation.level=reported")
    train = mill.TRAIN.replace('(out / "policy").write_text', "str")
    agent = Mill.built(
        tmp_path / "mill", *settings, programs=(train, mill.EVAL), describes=("adapter.checkpoint=", "adapter.eval=[]")
    )
    rehearsed = agent.types("study", "rehearse")
    assert {check["name"]: check["says"] for check in rehearsed["checks"]}["evaluation"].endswith("(reported)")
    assert any("no episodes" in line for point in agent.types("study", "show")["points"] for line in point["lines"])
    agent.types("study", "baseline")
    assert agent.study.state().usable("baseline", "baseline")


def test_episodes_of_a_command_that_takes_none_are_not_invented(tmp_path: Path) -> None:
    agent = Mill.built(tmp_path / "mill")
    lines = [line for point in agent.types("study", "show")["points"] for line in point["lines"]]
    assert "as many episodes as the eval command plays: it takes no {episodes}, drawn afterwards" in lines
    rehearsed = agent.types("study", "rehearse")
    says = {check["name"]: check["says"] for check in rehearsed["checks"]}
    assert says["evaluation"] == "an unknown number of episodes (pinned)"
