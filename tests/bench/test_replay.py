"""Stop rules see a stored training as it looked while it ran."""

from __future__ import annotations

import numpy as np
from labelled.replay import looks, stopped_by

from rlx.diagnose.run_case import RETURN
from tests.diagnose.cases import FIRES, HEALTHY, ROWS, SOUND, STEPS, case


def test_a_look_has_the_rows_until_then_and_nothing_of_the_end() -> None:
    every = list(looks(case(HEALTHY)))
    assert [len(one.seeds[0].values(RETURN)) for one in every] == list(range(1, ROWS))
    assert every[9].seeds[0].step == STEPS[9]
    assert {(one.seeds[0].state, one.seeds[0].report, one.random) for one in every} == {("running", None, None)}


def test_no_rule_ends_a_healthy_training() -> None:
    assert stopped_by(SOUND["ppo, one seed"]) == set()


def test_a_rule_ends_what_it_is_for() -> None:
    assert "value_explosion" in stopped_by(FIRES["value_explosion"])
    assert "plateau (stop.plateau)" in stopped_by(case({**HEALTHY, RETURN: np.full(ROWS, 20.0)}))
