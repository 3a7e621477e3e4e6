"""What a study's scores are scores of: it stays what it was once there are any, for others would be compared with them.

What is not covered: alpha, seeds, guardrails and margins, which a person may approve anew after scores were seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlx import files
from rlx.errors import Refused
from rlx.figures import counted
from rlx.study.contract import Contract
from rlx.study.study import Study
from rlx.study.task import Task

_OF_THE_ADAPTER = {"config", "prefix", "eval", "result", "checkpoint", "python_path", "policy", "policy_files"}


def measures(contract: Contract, task: Task) -> dict[str, str]:
    """Return, by its key, all in a settled contract and its task that decides what a score means."""
    assert contract.metric is not None
    assert contract.evaluation is not None
    assert contract.baseline is not None
    adapter = task.adapter.model_dump(mode="json", include=_OF_THE_ADAPTER)
    return {
        "metric.name": contract.metric.name,
        "metric.source": contract.metric.source,
        "metric.direction": contract.metric.direction,
        "evaluation.level": contract.evaluation.level,
        "evaluation.deterministic": str(contract.evaluation.deterministic),
        "baseline.commit": contract.baseline.commit,
        "the task's evaluation": files.sha256(files.encode(adapter))[:12],
    }


def refuse_others(study: Study, contract: Contract, task: Task) -> None:
    """Raise where a contract measures something else than what the study's scores were made by."""
    for says in _others(study, contract, task):
        raise Refused(says, hint="put it back, or measure it in a study of its own: rlx study new NAME")


def _others(study: Study, contract: Contract, task: Task) -> Iterator[str]:
    state = study.state()
    scores = sum(map(len, state.evaluations.values()))
    if not scores or state.approval is None or None in (contract.metric, contract.evaluation, contract.baseline):
        return
    now = measures(contract, task)
    for key, before in (state.approval.event.get("measures") or {}).items():
        if now.get(key) != before:
            yield f"{counted(scores, 'score')} were made with {key} `{before}`: it cannot become `{now.get(key)}`"
