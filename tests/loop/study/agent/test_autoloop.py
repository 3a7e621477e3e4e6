"""The loop and its agent: somebody's own command, started whenever an idea is needed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rlx.errors import Refused
from rlx.loop.study.agent.autoloop import RESTARTS, Drive
from rlx.loop.study.step_commands import next_step
from tests.loop.mill import Mill
from tests.loop.told import WISHES, Told

RLX = (sys.executable, "-m", "rlx")
IDLE = (sys.executable, "-c", "pass")
UNATTENDED = replace(WISHES, settings=(*WISHES.settings, "automation.unattended=true"))
STUBBORN = (*RLX, "propose", "--kind", "hyperparameter", "--hypothesis", "another seed", "-s", "seed=7")


@pytest.mark.parametrize(("agent", "refusals"), [(IDLE, 0), (STUBBORN, RESTARTS)])
def test_an_agent_that_gets_nowhere_is_given_up_after_a_few_starts(
    tmp_path: Path, agent: tuple[str, ...], refusals: int
) -> None:
    told = Told(tmp_path / "lab", UNATTENDED)
    said: list[str] = []
    with pytest.raises(Refused, match="started 3 times"):
        Drive(told.study, said.append, agent, backoff_seconds=0.0).go()
    assert told.state.refusals == refusals
    assert sum("refusals apart" in line for line in said) == RESTARTS
    step = next_step(told.study)
    assert (step.move.kind, str(step.command)) == ("approve", "rlx study approve faster --go-on")


@pytest.mark.slow
def test_a_head_that_may_be_claimed_is_claimed_where_the_agent_has_no_other_idea(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mill = Mill.ready(tmp_path / "mill", tmp_path_factory)
    mill.proposes(gain=5)
    said: list[str] = []
    alone = Drive(mill.study, said.append, ()).go()
    assert alone["ended"].startswith("somebody must propose"), "a person may have one"
    assert "confirmation" not in {job.phase for job in mill.study.state().jobs.values()}
    ended = Drive(mill.study, said.append, IDLE, backoff_seconds=0.0).go()
    assert ended["ended"].startswith("the contract's claims are made")
    assert mill.study.state().decisions[-1].get("test") == "claim"
    assert sum("refusals apart" in line for line in said) == RESTARTS


def test_an_agent_is_not_started_where_the_contract_lets_nothing_start_without_a_person(tmp_path: Path) -> None:
    told, mark = Told(tmp_path / "lab"), tmp_path / "started"
    with pytest.raises(Refused, match="without a person"):
        Drive(told.study, lambda _: None, ("touch", str(mark))).go()
    assert not mark.exists()
