"""Climbing runs both sides again, and scores of two rungs never meet."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlx.errors import Refused
from rlx.loop.lab.attempt import attempts
from rlx.loop.lab.attempt_figures import attempt_figures
from rlx.loop.lab.climb import climb, is_cut_off
from rlx.loop.lab.idea_tree import difference, find_row, node
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.lesson import record_lesson
from rlx.loop.lab.try_attempt import LabIdea, try_attempt
from tests.loop.lab.lab_project import RIGHT, WRONG, edit, press_lab


def quiet(_: str) -> None:
    """Say nothing."""


@pytest.mark.slow
def test_a_better_candidate_is_kept_and_both_sides_run_again_at_the_next_rung(tmp_path: Path) -> None:
    lab = press_lab(tmp_path)
    edit(lab, "candidate/env.py", WRONG, RIGHT)
    kept = try_attempt(lab, lab.root, LabIdea("pay for the right button", predicts=16.0), say=quiet)
    assert (kept.status, kept.score, kept.effect) == ("keep", 16.0, 16.0)
    assert kept.notes["parts"] == ["candidate/env.py::TrainingEnv.step"]
    assert WRONG not in (lab.root / "candidate" / "env.py").read_text(), "the lab's folder has the new head"
    figures = attempt_figures(lab, kept)
    assert figures["interval"] == [16.0, 16.0]
    assert (figures["solve_rate"], figures["stability"], figures["proof"]["problems"]) == (1.0, 1.0, [])
    assert figures["proof"]["steps"] == figures["proof"]["planned"] == 6 * 8 * 16 * 2

    # the tree: evidence points at files, and a lesson must fit it
    entry = node(lab, kept)
    assert entry["prediction"] == 16.0
    assert entry["seeds"] == [0, 1, 2, 3, 4, 5]
    assert entry["evidence"][0].endswith("c001_0.json#figures.return")
    with pytest.raises(Refused) as caught:
        record_lesson(lab, "c001", "No success_rate is missing; success_rate was not recorded.")
    assert [reason["code"] for reason in caught.value.reasons] == ["LESSON"]
    with pytest.raises(Refused):
        record_lesson(lab, "c001", "nothing there", missing=[entry["evidence"][0]])
    assert record_lesson(lab, "c001", "the sign was wrong", evidence=entry["evidence"][:1]).lesson

    carried = climb(lab, say=quiet)
    assert carried is not None
    assert (lab.rung.name, carried.rung.name, carried.status) == ("9/2", "9/2", "keep")
    assert carried.notes["carried"] == ["press-8x2/c001"]
    state = lab.study.state()
    trained = {(job.candidate, job.phase) for job in state.jobs.values()}
    assert {("baseline", "baseline"), ("c001", "trial")} <= trained, "both sides ran at the new rung"
    assert lab.study_at(lab.config.ladder[0]).state().stop is not None
    with pytest.raises(Refused) as caught:
        difference(find_row(lab, "press-8x2/c001"), find_row(lab, "press-9x2/c001"))
    assert [reason["code"] for reason in caught.value.reasons] == ["RUNG"]
    with pytest.raises(Refused) as caught:
        climb(lab, say=quiet)
    assert [reason["code"] for reason in caught.value.reasons] == ["RUNG"]
    assert [row.row for row in attempts(lab)] == ["press-8x2/c001", "press-9x2/c001"]


def killed_climb(lab: Lab, has_come: Callable[[], bool]) -> None:
    """Start `rlx lab climb` and kill it with -9 as soon as something has come."""
    process = subprocess.Popen([sys.executable, "-m", "rlx", "lab", "climb", "--json"], cwd=lab.root,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    while not has_come():
        assert process.poll() is None, "the climb ended before it was killed"
        time.sleep(0.01)
    process.kill()
    process.wait()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_climb_that_is_killed_again_and_again_runs_both_sides_once(tmp_path: Path) -> None:
    lab = press_lab(tmp_path)
    edit(lab, "candidate/env.py", WRONG, RIGHT)
    assert try_attempt(lab, lab.root, LabIdea("pay for the right button"), say=quiet).status == "keep"
    above = lab.study_at(lab.config.ladder[1])

    def has(kind: str, candidate: str) -> bool:
        rows = above.ledger.events() if above.ledger.path.is_file() else ()
        return any(row.kind == kind and row.get("candidate") == candidate for row in rows)

    killed_climb(lab, above.contract_path.is_file)
    killed_climb(lab, lambda: has("intent", "baseline"))
    killed_climb(lab, lambda: has("proposed", "c001"))
    killed_climb(lab, lambda: has("intent", "c001"))
    assert is_cut_off(lab)
    carried = climb(lab, say=quiet)
    assert carried is not None
    assert (carried.status, carried.notes["carried"]) == ("keep", ["press-8x2/c001"])
    assert not is_cut_off(lab)
    rows = [row.row for row in attempts(lab)]
    assert rows == ["press-8x2/c001", "press-9x2/c001"]
    state = above.state()
    for name, phase in (("baseline", "baseline"), ("c001", "trial")):
        seeds = [seed for job in state.jobs_of(name, phase) for seed in job.counted_seeds]  # type: ignore[arg-type]
        assert seeds
        assert sorted(seeds) == sorted(set(seeds)), f"{name}: no seed counts twice"
    assert [event.kind for event in above.ledger.events()].count("approved") == 1
    assert [event.kind for event in lab.study_at(lab.config.ladder[0]).ledger.events()].count("stopped") == 1
