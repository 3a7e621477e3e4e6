"""The judge that a seed's session asks whether a `stop` rule ends it: reads the run anew, judges by pure rules."""

from __future__ import annotations

from rlx.config.schema import Experiment
from rlx.runs.run import Run
from rlx.train.session import Judge


def judge_for(experiment: Experiment, run: Run, number: int) -> Judge | None:
    """Return the judge of one seed; None where no rule is on."""
    if not experiment.stop.is_on:
        return None

    def judge(_step: int) -> str | None:
        from rlx.diagnose.reading import read
        from rlx.diagnose.stopping import reason_to_stop
        from rlx.runs.summary import costs

        now = Run(run.path)
        return reason_to_stop(experiment.stop, read(now, only=number), costs(now)[number])

    return judge
