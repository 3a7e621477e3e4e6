"""Reviewing a reward before it costs a training: its source where there is one, and what the random policy meets."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import files
from rlx.diagnose.finding import Finding
from rlx.diagnose.review_code import review_code
from rlx.diagnose.review_steps import Played, review_steps
from rlx.diagnose.reward_code import parse, reward_functions
from rlx.errors import ConfigError, NotFound, RlxError
from rlx.runs.run import Run, find

if TYPE_CHECKING:
    from rlx.config.schema import Env

EPISODES = 10
RANDOM, KEPT = "the random policy", "the run's evaluations"


@dataclass(frozen=True)
class Review:
    """What was looked at, and what was found; `notes` say what could not be."""

    looked_at: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = field(default=())

    def document(self) -> dict[str, Any]:
        """Return everything as JSON-able data."""
        found = [one.document() for one in self.findings]
        return {"looked_at": list(self.looked_at), "findings": found, "notes": list(self.notes)}


def review(target: str, *, root: Path) -> Review:
    """Review `FILE.py`, `FILE.py:name`, a run's or a named environment's reward.

    A file is only read, never run, unless the name is an environment class in it.
    """
    from rlx.envs.source import is_file_reference

    if is_file_reference(target):
        return _review_file(target, root=root)
    try:
        run = find(target, root=root)
    except NotFound as no_run:
        try:
            return _review_env(_env(target), root=root)
        except NotFound as no_env:
            raise NotFound(f"`{target}` is neither a run nor an environment", hint=no_env.hint or no_run.hint) from None
    return _review_run(run, root=root)


def _env(env_id: str) -> Env:
    from rlx.config.schema import Env

    return Env(id=env_id)


def _review_file(target: str, *, root: Path) -> Review:
    from rlx.envs.scan import envs_in

    place, name = _split(target)
    if target in [one.id for one in envs_in(root / place, name=place)]:
        return _review_env(_env(target), root=root)
    return _review_source(place, name, root=root)


def _split(target: str) -> tuple[str, str | None]:
    place, _, name = target.rpartition(":")
    return (place, name) if place else (name, None)


def _review_source(place: str, name: str | None, *, root: Path, horizon: int | None = None) -> Review:
    try:
        text = (root / place).read_text(encoding="utf-8")
    except OSError as error:
        raise NotFound(f"cannot read `{place}`: {error.strerror}", hint="paths start at the project's root") from None
    except UnicodeDecodeError:
        raise ConfigError(f"`{place}` is not text in UTF-8") from None
    tree = parse(text, place=place)
    functions = reward_functions(tree, name, place=place)
    lines = tuple(f"{place}:{one.node.lineno} {one.name} (source)" for one in functions)
    return Review(lines, tuple(review_code(functions, tree, place=place, horizon=horizon)))


def _review_env(env: Env, *, root: Path) -> Review:
    """Read the source of a project's environment, and let the random policy play in it."""
    from rlx.envs.make import inspect
    from rlx.envs.source import is_file_reference

    horizon = inspect(env, root=root).horizon
    source = Review((), ())
    notes: tuple[str, ...] = ()
    if is_file_reference(env.id):
        try:
            source = _review_source(*_split(env.id), root=root, horizon=horizon)
        except RlxError as error:
            notes = (f"source not reviewed: {error.message}",)
    played = _play(env, root=root)
    steps = sum(len(one.rewards) for one in played)
    looked_at = (*source.looked_at, f"{len(played)} episodes of {RANDOM}, {steps:,} steps")
    found = [*source.findings, *review_steps(played, who=RANDOM)]
    return Review(looked_at, tuple(found), notes)


def _play(env: Env, *, root: Path) -> list[Played]:
    from rlx.evaluate.protocol import Protocol
    from rlx.evaluate.rollout import Evaluator

    protocol = Protocol(env, episodes=EPISODES, deterministic=True, purpose="parity", root=root)
    with Evaluator(protocol, keeps_trajectories=True) as evaluator:
        trajectories = evaluator.evaluate_random().trajectories
    return [Played(one.rewards, one.terms, one.success) for one in trajectories]


def _review_run(run: Run, *, root: Path) -> Review:
    """Review the environment a run was trained in, and how its evaluations' returns rank success."""
    from rlx.config.load import parse as parse_config

    env = parse_config(run.config, source=f"{run.name}/config_snapshot.yaml").env
    reviewed = _review_env(env, root=root)
    kept = _kept(run)
    if not kept:
        return reviewed
    known = {one.rule for one in reviewed.findings}
    found = [
        one for one in review_steps(kept, who=KEPT) if one.rule == "reward_ranks_failures" and one.rule not in known
    ]
    looked_at = (*reviewed.looked_at, f"{len(kept)} evaluation episodes of {run.name}")
    return Review(looked_at, (*found, *reviewed.findings), reviewed.notes)


def _kept(run: Run) -> list[Played]:
    """Return a run's evaluation episodes that tell whether they succeeded, each as one sum."""
    import numpy as np

    rows = [row for document in run.evaluations() for row in document.get("episodes") or [] if "success" in row]
    return [Played(np.array([files.number(row["return"])]), {}, bool(row["success"])) for row in rows]
