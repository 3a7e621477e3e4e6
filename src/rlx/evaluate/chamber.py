"""The sealed evaluator's own process: it reads what to measure on its input and answers a line for every checkpoint.

It runs in a box, from the pinned tree, and owns environment, episode seeds and scoring. Checkpoints of rlx's own are
data and are rebuilt here; a foreign policy is served by a process of its own (see `served`). What the environment
prints goes to the log. Answers are `{"began": i}`, then `{"index": i, …}` with a document or a failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from rlx import files
from rlx.config.load import parse
from rlx.errors import CheckpointInvalid, JobFailed, RlxError
from rlx.evaluate.measure import fitting
from rlx.evaluate.policy import code_named_in
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluation, Evaluator
from rlx.evaluate.served import PolicyFailed, Service, served
from rlx.evaluate.tally import NoFigure, score, tally
from rlx.runs import checkpoint as checkpoints
from rlx.runs.provenance import versions

CODES = {CheckpointInvalid: "checkpoint", PolicyFailed: "policy", JobFailed: "environment", NoFigure: "metric"}
"""What a failure is called, by its error; anything else is `evidence`."""


def main() -> None:
    """Measure what the request on standard input asks for."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = files.decode(sys.stdin.buffer.read())
    root = Path(request["root"])
    sys.path[:0] = [str(root / path) for path in request["python_path"]]
    try:
        experiment = parse(request["experiment"], source="the baseline's config")
        protocol = Protocol.of(
            experiment, root=root, purpose=request["purpose"], episodes=request["episodes"], first=request["first"]
        )
        with Evaluator(protocol) as evaluator:
            for answer in _measured(evaluator, request):
                _say(answers, answer)
    except RlxError as error:
        _say(answers, {"failed": failure_of(error)})


def _say(answers: IO[bytes], answer: Mapping[str, Any]) -> None:
    answers.write(files.encode(answer) + b"\n")
    answers.flush()


def _measured(evaluator: Evaluator, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    evaluator.env  # noqa: B018  made before the first checkpoint: what is wrong with it is nobody's failure
    for subject in request["subjects"]:
        yield {"began": subject["index"]}
        try:
            document = _document(evaluator, request, subject)
            yield {"index": subject["index"], "document": document}
        except RlxError as error:
            yield {"index": subject["index"], "failure": failure_of(error)}
        except Exception as error:  # noqa: BLE001  job supervision: a checkpoint is other people's, and one of several
            what = " ".join(f"{type(error).__name__}: {error}".split())
            yield {"index": subject["index"], "failure": {"code": "evidence", "says": what, "hint": None}}


def failure_of(error: RlxError) -> dict[str, Any]:
    """Return an error as plain data."""
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), "evidence")
    return {"code": code, "says": error.message, "hint": error.hint, "is_policys": not isinstance(error, NoFigure)}


def _document(evaluator: Evaluator, request: Mapping[str, Any], subject: Mapping[str, Any]) -> dict[str, Any]:
    if request["policy"] is None:
        evaluation, about = _of_bundle(evaluator, subject, named=code_named_in(request["experiment"]))
    else:
        evaluation, about = _of_service(evaluator, subject, _service(request, subject)), {}
    rows = [episode.document() for episode in (*evaluation.episodes, *evaluation.varied)]
    figures = tally(rows)
    return {
        "fingerprint": evaluation.fingerprint,
        "time": evaluation.made,
        "metric": evaluator.protocol.metric,
        "score": score(figures, evaluator.protocol.metric),
        "figures": figures,
        **about,
        "versions": versions(),
        "protocol": evaluator.protocol.content,
        "episodes": rows,
    }


def _of_bundle(
    evaluator: Evaluator, subject: Mapping[str, Any], *, named: list[str]
) -> tuple[Evaluation, dict[str, Any]]:
    checkpoint = checkpoints.read(Path(subject["path"]), with_replay=False)
    policy, note = fitting(evaluator, checkpoint, named=named)
    parameters = sum(int(array.size) for array in checkpoint.policy.values())
    about = {"step": checkpoint.step, "backend": checkpoint.backend, "algorithm": checkpoint.algorithm,
             "parameters": parameters}  # fmt: skip
    return evaluator.evaluate(policy, seed=subject["seed"]), {**about, **({"note": note} if note else {})}


def _of_service(evaluator: Evaluator, subject: Mapping[str, Any], service: Service) -> Evaluation:
    space = evaluator.env.action_space
    with served(service, Path(subject["path"]), space) as policy:
        return evaluator.evaluate(policy, seed=subject["seed"])


def _service(request: Mapping[str, Any], subject: Mapping[str, Any]) -> Service:
    told = request["policy"]
    scratch = Path(told["scratch"]) / str(subject["index"])
    scratch.mkdir()
    hidden = tuple(Path(path) for path in told["hidden"])
    limits = {key: told[key] for key in ("load_seconds", "answer_seconds", "memory_bytes", "may_go_unenforced")}
    return Service(told["reference"], Path(told["root"]), scratch, hidden, **limits)
