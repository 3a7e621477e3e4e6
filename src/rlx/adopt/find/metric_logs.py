"""Finds how a repository logs: its loggers, the folders they write, and the names of the metrics."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlx.adopt.find.metric_tags import metric_tags
from rlx.adopt.find.text_patterns import text_pattern
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal
from rlx.adopt.scan_fact import ScanFact

MOST_TAGS = 300
_WRITERS = {
    "SummaryWriter": "tensorboard",
    "TensorboardSummaryWriter": "tensorboard",
    "TensorBoardLogger": "tensorboard",
}
_STARTS = {
    "wandb.init": "wandb", "mlflow.start_run": "mlflow", "mlflow.log_metric": "mlflow", "neptune.init_run": "neptune",
    "aim.Run": "aim", "csv.writer": "csv", "csv.DictWriter": "csv", "trackio.init": "trackio",
    "swanlab.init": "swanlab",
}  # fmt: skip


def metric_logs(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield loggers, log folders and metric names, each once."""
    seen: set[tuple[str, str]] = set()
    for file in repository.programs:
        for fact in (*_loggers(file), *_folders(file), *metric_tags(file, repository)):
            key = (fact.kind, fact.name)
            if key not in seen and len(seen) < MOST_TAGS:
                seen.add(key)
                yield fact


def _loggers(file: PythonFile) -> Iterator[ScanFact]:
    for call in file.calls:
        name = dotted(call.func)
        tail = name.rpartition(".")[2]
        if tail in _WRITERS:
            yield ScanFact("logger", _WRITERS[tail], file.path, call.lineno)
        elif name in _STARTS:
            yield ScanFact("logger", _STARTS[name], file.path, call.lineno)
        elif tail == "Monitor" and ("stable_baselines3" in file.packages or "gym" in file.packages):
            yield ScanFact("logger", "monitor.csv", file.path, call.lineno, confidence="medium")
        for keyword in call.keywords:
            if keyword.arg == "tensorboard_log" and literal(keyword.value) is not None:
                yield ScanFact("logger", "tensorboard", file.path, call.lineno)


def _folders(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the relative folders that the program writes its logs to."""
    for call in file.calls:
        tail = dotted(call.func).rpartition(".")[2]
        if tail in _WRITERS and (call.args or call.keywords):
            nodes = [*call.args[:1], *(word.value for word in call.keywords if word.arg in ("log_dir", "logdir"))]
            for node in nodes:
                yield from _folder(text_pattern(node), file, call.lineno)
        for keyword in call.keywords:
            if keyword.arg in ("tensorboard_log", "log_dir", "save_path", "logdir"):
                yield from _folder(text_pattern(keyword.value), file, call.lineno)
        if tail == "join" and call.args:
            parts = [text_pattern(arg) for arg in call.args]
            if parts[0].strip("./") in _ROOTS:
                yield from _folder("/".join(part or "*" for part in parts), file, call.lineno)
    for division in file.nodes:
        if isinstance(division, ast.BinOp) and isinstance(division.op, ast.Div):
            text = text_pattern(division)
            if text.partition("/")[0] in _ROOTS:
                yield from _folder(text, file, division.lineno)


_ROOTS = (
    "logs",
    "runs",
    "log",
    "outputs",
    "output",
    "storage",
    "results",
    "checkpoints",
    "models",
    "exp",
    "experiments",
)


def _folder(text: str, file: PythonFile, line: int) -> Iterator[ScanFact]:
    parts = []
    for part in text.removeprefix("./").split("/"):
        if not part or "*" in part or part == "..":
            break
        parts.append(part)
    if parts and not text.startswith(("/", "~")) and "." not in parts[-1]:
        yield ScanFact("log folder", "/".join(parts), file.path, line)
