"""The best score of other runs of the project under the same evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from rlx import files
from rlx.diagnose.run_case import OtherRunScore
from rlx.runs.run import Run


def best_other_run(run: Run, documents: Iterable[Mapping[str, Any]]) -> OtherRunScore | None:
    """Return the best median over seeds that another run scored in no more steps, or None if there is none."""
    reports = [document for document in documents if document.get("purpose") == "report"]
    own = [document for document in reports if document["name"].endswith("_latest")]
    steps = max((document["step"] for document in own if isinstance(document.get("step"), int)), default=0)
    scores = []
    for protocol in {document["protocol_folder"] for document in own}:
        for folder in sorted(run.path.parent.glob(f"*/eval/{protocol}")):
            score = _score(folder)
            if folder.parent.parent != run.path and score is not None and score.steps <= steps:
                scores.append(score)
    return max(scores, key=lambda score: score.mean, default=None)


def _score(folder: Path) -> OtherRunScore | None:
    """Return the score of a run's final policies. Evaluations that cannot be read do not count."""
    means: list[float] = []
    steps: list[int] = []
    for path in folder.glob("seed_*_latest.json"):
        try:
            document = files.read_json(path)
            mean = document["mean"]
            step = document["step"]
        except (OSError, ValueError, LookupError, TypeError):
            continue
        if files.is_number(mean) and isinstance(step, int):
            means.append(files.number(mean))
            steps.append(step)
    if not means:
        return None
    return OtherRunScore(folder.parent.parent.name, median(means), max(steps))
