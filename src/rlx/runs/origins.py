"""Where a run's attempts came from, and in what they differ: code, versions, threads, machine."""

from __future__ import annotations

from typing import Any

from rlx.runs.run import Run

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def differences(run: Run) -> list[str]:
    """Say in what the attempts of a run's seeds differ; empty where all were made the same way."""
    traits: dict[str, dict[str, list[str]]] = {}
    for seed in run.seeds:
        for number, attempt in enumerate(seed.attempts, start=1):
            who = f"seed {seed.number}" + (f" attempt {number}" if len(seed.attempts) > 1 else "")
            for trait, value in traits_of(attempt).items():
                traits.setdefault(trait, {}).setdefault(value, []).append(who)
    return [f"{trait}: " + "; ".join(f"{value} ({_some(who)})" for value, who in values.items())
            for trait, values in traits.items() if len(values) > 1]  # fmt: skip


def _some(who: list[str]) -> str:
    return ", ".join(who[:4]) + (f" and {len(who) - 4} more" if len(who) > 4 else "")


def traits_of(attempt: dict[str, Any]) -> dict[str, str]:
    """Return what may change a result, each as one short text."""
    environment = attempt.get("environment") or {}
    traits = {
        "code": _code(attempt),
        "threads": ", ".join(f"{name} {environment[name]}" for name in _THREADS if name in environment) or "not set",
        "platform": str(attempt.get("platform", "unknown")),
        "host": str(attempt.get("host", "unknown")),
    }
    return traits | {name: str(version) for name, version in (attempt.get("versions") or {}).items()}


def _code(attempt: dict[str, Any]) -> str:
    git, digest = attempt.get("git") or {}, attempt.get("code_sha256")
    if not git:
        return f"{str(digest)[:8]} outside git" if digest else "outside git"
    commit = str(git.get("commit", ""))[:12]
    diff = git.get("diff_sha256")
    return f"{commit} + uncommitted changes {str(diff)[:8]}" if diff else commit
