"""Runs as evidence: the side of a comparison that a run's folder amounts to."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from rlx import files
from rlx.compare.code import Codes
from rlx.compare.reports import Report
from rlx.compare.side import Side, Training
from rlx.config.diff import diff
from rlx.evaluate.protocol import REPORT_EPISODES
from rlx.runs import checkpoint as checkpoints
from rlx.runs.run import Run, Seed
from rlx.runs.status import PREPARED, RUNNING


def side_of(run: Run, reports: Mapping[int, Report], *, like: Run, codes: Codes) -> Side:
    """Return a run's trainings as values; `like` is the run whose protocol the reports were made under."""
    protocol = next(iter(reports.values())).protocol if reports else {}
    randoms = [report.random for report in reports.values() if report.random is not None]
    is_script = run.is_script
    lineage = run.metadata.get("lineage") or {}
    return Side(
        name=run.name,
        trainings=tuple(_training(run, seed, reports.get(seed.number), codes) for seed in run.seeds),
        config=run.config,
        planned_steps=run.planned_steps,
        floor=min(randoms, default=None),
        phase=run.metadata.get("phase") or lineage.get("phase"),
        evaluate="" if run.is_opaque else evaluate_command(run, protocol, like=like),
        is_script=is_script,
        metric=next(iter(reports.values())).metric if reports else "return",
    )


def _training(run: Run, seed: Seed, report: Report | None, codes: Codes) -> Training:
    status, attempts = seed.status, seed.attempts
    last = seed.events[-1] if seed.events else {}
    is_coming = status.state == PREPARED and run.is_supervised
    return Training(
        seed=seed.number,
        state=RUNNING if is_coming else status.state,
        score=report.score if report else None,
        step=report.step if report else 0,
        episodes=report.episodes if report else 0,
        started=float(attempts[0]["time"]) if attempts else float("inf"),
        weights=_weights(seed),
        codes=tuple(codes.name(attempt) for attempt in attempts),
        versions=tuple(attempt.get("versions") or {} for attempt in attempts),
        error=str(last.get("kind", "")),
        reason=status.reason,
    )


def _weights(seed: Seed) -> str | None:
    """Return the SHA-256 of a seed's final policy, from the manifest alone."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        manifest = files.read_json(seed.checkpoints / "latest" / checkpoints.MANIFEST)
        return str(manifest["files"][checkpoints.POLICY]["sha256"])
    return None


def evaluate_command(run: Run, protocol: Mapping[str, Any], *, like: Run) -> str:
    """Return the command that evaluates a run under this protocol."""
    own, wanted = (_measured(one.config) for one in (run, like))
    is_borrowed = run is not like and bool(diff(own, wanted))
    usual = ((like if is_borrowed else run).config.get("eval") or {}).get("report_episodes") or REPORT_EPISODES
    episodes = protocol.get("episodes", usual)
    words = ["rlx eval", run.name]
    words += [f"--like {like.name}"] if is_borrowed else []
    words += [f"--episodes {episodes}"] if episodes != usual else []
    return " ".join(words)


def _measured(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a config that a report's protocol is made of."""
    env, settings = dict(config.get("env") or {}), dict(config.get("eval") or {})
    return {
        "env": {key: env.get(key) for key in ("id", "kwargs", "wrappers")},
        "eval": {key: settings.get(key) for key in ("deterministic", "metric", "env", "scenarios", "report_episodes")},
    }
