"""What is done by hand in a study: queueing, and taking back."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.errors import Refused
from rlx.hosts.cli.study.revert import render
from rlx.loop.study import queue
from rlx.loop.study.propose import revert
from tests.loop.told import Told, typed


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_only_what_could_be_launched_is_queued(told: Told) -> None:
    draft, checked = told.proposed(0.01), told.checked(0.02)
    with pytest.raises(Refused, match=f"{draft} is draft: it cannot be queued for a trial") as refused:
        queue.add(told.study, [draft], "trial")
    assert refused.value.hint == f"rlx check candidate {draft}"
    with pytest.raises(Refused, match=f"{checked} is validated: it cannot be queued for a promotion"):
        queue.add(told.study, [checked], "promotion")
    assert queue.tickets(told.study) == []
    (ticket,) = queue.add(told.study, [checked], "trial")
    assert ticket.plan == told.state.candidates[checked].plan
    with pytest.raises(Refused, match="baseline has no trial jobs"):
        queue.add(told.study, ["baseline"], "trial")
    queue.add(told.study, ["baseline"], "confirmation")
    assert [one.candidate for one in queue.tickets(told.study)] == [checked, "baseline"]


def test_of_several_that_are_queued_together_a_refused_one_leaves_none(told: Told) -> None:
    checked, draft = told.checked(0.02), told.proposed(0.01)
    typed(told.study.root, f"rlx study queue --add {checked} --add {draft}", code=4)
    typed(told.study.root, f"rlx study queue --add {checked} --add c077", code=3)
    assert queue.tickets(told.study) == []
    other = told.checked(0.04)
    waiting = typed(told.study.root, f"rlx study queue --add {checked} --add {other} --add {checked}")["waiting"]
    assert [(one["job"], one["candidate"]) for one in waiting] == [("q001", checked), ("q002", other)]


def test_taking_back_what_nobody_proposed_is_not_found(told: Told) -> None:
    typed(told.study.root, "rlx study revert nope --why limps", code=3)
    typed(told.study.root, f"rlx study revert {told.checked(0.01)} --why limps", code=4)
    typed(told.study.root, "rlx study revert baseline --why limps", code=4)


def test_a_queue_is_worked_off_by_one_job_at_least(told: Told) -> None:
    for most in (0, -3):
        typed(told.study.root, f"rlx study queue --work --most {most}", code=2)


def test_taking_back_shows_what_is_taken_and_asks_for_a_reason(told: Told) -> None:
    identity = told.checked(0.01)
    told.trained(identity, (400.0, 401.0, 402.0))
    told.decide(identity, "advanced", says="p = 0.01 ≤ 0.17 at 6 seeds")
    typed(told.study.root, f"rlx study revert {identity}", code=2)
    assert told.state.head == identity
    lines = render(revert(told.study, identity, why="it limps")).splitlines()
    assert lines == [
        f"withdrawn: {identity}, advanced (p = 0.01 ≤ 0.17 at 6 seeds): a step of 0.01 learns faster",
        "why: it limps", f"head: {identity} → baseline", "incumbent: –", "next: rlx next",
    ]  # fmt: skip


def test_a_dry_run_of_a_loop_is_refused_where_the_loop_would_be(told: Told) -> None:
    refused = typed(told.study.root, "rlx study loop --agent true --dry-run", code=4)
    assert "without a person" in refused["error"]
    assert typed(told.study.root, "rlx study loop --dry-run")["ended"].startswith("dry run: ")


def test_a_probe_that_is_named_is_there(told: Told) -> None:
    tuning = "rlx propose --kind 'randomisation tuning' --hypothesis wider -s algo.learning_rate=0.02 --record probe="
    refused = typed(told.study.root, f"{tuning}runs/nope/probes/friction.json", code=4)
    assert "records.probe names `runs/nope/probes/friction.json`, which does not exist" in refused["error"]
    (told.study.root / "friction.json").write_text("{}")
    typed(told.study.root, f"{tuning}friction.json")


def test_a_file_that_any_record_names_is_there(told: Told) -> None:
    tuning = "rlx propose --kind hyperparameter --hypothesis wider -s algo.learning_rate=0.02 --record"
    refused = typed(told.study.root, f"{tuning} reflection=nope.json", code=4)
    assert "records.reflection names `nope.json`, which does not exist" in refused["error"]
    typed(told.study.root, f"{tuning} reason='not what nope.json says'")


def test_code_in_a_scope_of_keys_alone_is_told_at_once(told: Told) -> None:
    notes = typed(told.study.root, "rlx propose --kind code --hypothesis shorter")["notes"]
    assert any("the scope has no files" in one for one in notes)
