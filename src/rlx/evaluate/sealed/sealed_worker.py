"""The sealed evaluator's own process: reads its request on standard input and answers a line for every checkpoint.

It runs in a sandbox, from the pinned tree, and owns the environment, the episode seeds and the scoring. Checkpoints of
rlx are data and are rebuilt here. A foreign policy runs in a process of its own (see `policy_client`). Output of the
environment goes to the log. An answer is `{"began": i}`, or `{"index": i, …}` with a document or a failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config.load import parse
from rlx.errors import CheckpointInvalid, EvidenceInvalid, JobFailed, RlxError
from rlx.evaluate.episode_metrics import MissingFigure, score, summarize_rows
from rlx.evaluate.foreign_code import ForeignCode, one_line
from rlx.evaluate.measure import rebuild_fitting
from rlx.evaluate.policy_server.policy_client import PolicyFailed, PolicyServerSpec, serve_policy
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluation, Evaluator
from rlx.evaluate.stored_code import code_references
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.provenance import versions

# The code of a failure by its error. Every other error has the code `evidence`.
CODES = {CheckpointInvalid: "checkpoint", PolicyFailed: "policy", JobFailed: "environment", MissingFigure: "metric"}


def main(_argv: list[str]) -> None:
    """Measure the checkpoints that the request on standard input lists."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = files.decode(sys.stdin.buffer.read())
    for answer in _answers(request):
        answers.write(files.encode(answer) + b"\n")
        answers.flush()


def _answers(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    root = Path(request["root"])
    sys.path[:0] = [str(root / path) for path in request["python_path"]]
    try:
        experiment = parse(request["experiment"], source="the baseline's config")
        protocol = Protocol.of(
            experiment, root=root, purpose=request["purpose"], episodes=request["episodes"], first=request["first"]
        )
        with Evaluator(protocol) as evaluator:
            evaluator.env  # noqa: B018  made before the first checkpoint: its errors are no checkpoint's fault
            for subject in request["subjects"]:
                yield {"began": subject["index"]}
                yield {"index": subject["index"], **_measure(evaluator, request, subject)}
    except RlxError as error:
        yield {"failed": failure_of(error)}


def _measure(evaluator: Evaluator, request: Mapping[str, Any], subject: Mapping[str, Any]) -> dict[str, Any]:
    try:
        with ForeignCode(_as_rlx_error):
            return {"document": _document(evaluator, request, subject)}
    except RlxError as error:
        return {"failure": failure_of(error)}
    raise AssertionError


def _as_rlx_error(error: Exception) -> RlxError:
    """Return any error of a checkpoint as rlx's own: it must not keep the next checkpoint from being measured."""
    if isinstance(error, RlxError):
        return error
    return EvidenceInvalid(one_line(error))


def failure_of(error: RlxError) -> dict[str, Any]:
    """Return an error as the fields of an `EvaluationFailure`."""
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), "evidence")
    is_policy_fault = not isinstance(error, MissingFigure)
    return {"code": code, "message": error.message, "hint": error.hint, "is_policy_fault": is_policy_fault}


def _document(evaluator: Evaluator, request: Mapping[str, Any], subject: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if request["policy"] is None:
        evaluation, facts = _evaluate_bundle(evaluator, subject, named=code_references(request["experiment"]))
    else:
        server = _policy_server(request["policy"], str(subject["index"]))
        with serve_policy(server, Path(subject["path"]), evaluator.env.action_space) as policy:
            evaluation = evaluator.evaluate(policy, seed=subject["seed"])
    rows = [episode.document() for episode in (*evaluation.episodes, *evaluation.varied)]
    figures = summarize_rows(rows)
    return {
        "fingerprint": evaluation.fingerprint,
        "time": evaluation.made,
        "metric": evaluator.protocol.metric,
        "score": score(figures, evaluator.protocol.metric),
        "figures": figures,
        **facts,
        "versions": versions(),
        "protocol": evaluator.protocol.content,
        "episodes": rows,
    }


def _evaluate_bundle(
    evaluator: Evaluator, subject: Mapping[str, Any], *, named: list[str]
) -> tuple[Evaluation, dict[str, Any]]:
    checkpoint = checkpoints.read(Path(subject["path"]), with_replay=False)
    policy, note = rebuild_fitting(evaluator, checkpoint, named=named)
    facts: dict[str, Any] = {
        "step": checkpoint.step,
        "backend": checkpoint.backend,
        "algorithm": checkpoint.algorithm,
        "parameters": sum(int(array.size) for array in checkpoint.policy.values()),
    }
    if note:
        facts["note"] = note
    return evaluator.evaluate(policy, seed=subject["seed"]), facts


def _policy_server(request: Mapping[str, Any], name: str) -> PolicyServerSpec:
    scratch = Path(request["scratch"]) / name
    scratch.mkdir()
    paths = {"root": Path(request["root"]), "scratch": scratch, "hidden": tuple(map(Path, request["hidden"]))}
    return PolicyServerSpec(**{**request, **paths})
