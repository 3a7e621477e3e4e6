"""Review a reward before it costs a training: its source if there is one, and what the random policy meets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import files
from rlx.diagnose.finding import Finding
from rlx.diagnose.reward_review.reward_ast import parse, reward_functions
from rlx.diagnose.reward_review.source_findings import review_source
from rlx.diagnose.reward_review.step_findings import PlayedEpisode, review_steps
from rlx.diagnose.reward_review.wrapper_reward import reward_wrappers
from rlx.diagnose.rule import by_severity
from rlx.errors import ConfigError, NotFound, RlxError
from rlx.runs.run import Run, find

if TYPE_CHECKING:
    from rlx.config.schema import Env

EPISODES = 10
RANDOM = "the random policy"
STORED = "the run's evaluations"


@dataclass(frozen=True)
class RewardReview:
    """The sources and episodes that were reviewed, the findings, and notes on what could not be reviewed."""

    looked_at: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the review as JSON-able data."""
        findings = [finding.document() for finding in self.findings]
        return {"looked_at": list(self.looked_at), "findings": findings, "notes": list(self.notes)}


def review(target: str, *, root: Path) -> RewardReview:
    """Review `FILE.py`, `FILE.py:name`, a run's or a named environment's reward.

    A file is only read and never run, unless the name is an environment class in it.
    """
    from rlx.config.schema import Env
    from rlx.envs.import_object import is_file_reference
    from rlx.envs.project_envs import envs_in

    if is_file_reference(target):
        place, name = _split(target)
        if target in [env.id for env in envs_in(root / place, name=place)]:
            return _review_env(Env(id=target), root=root)
        return _review_file(place, name, root=root)
    try:
        run = find(target, root=root)
    except NotFound as no_run:
        try:
            return _review_env(Env(id=target), root=root)
        except NotFound as no_env:
            raise NotFound(f"`{target}` is neither a run nor an environment", hint=no_env.hint or no_run.hint) from None
    return _review_run(run, root=root)


def _split(target: str) -> tuple[str, str | None]:
    place, _, name = target.rpartition(":")
    return (place, name) if place else (name, None)


def _review_file(place: str, name: str | None, *, root: Path, horizon: int | None = None) -> RewardReview:
    try:
        text = (root / place).read_text(encoding="utf-8")
    except OSError as error:
        raise NotFound(f"cannot read `{place}`: {error.strerror}", hint="paths start at the project's root") from None
    except UnicodeDecodeError:
        raise ConfigError(f"`{place}` is not UTF-8 text") from None
    tree = parse(text, place=place)
    functions = reward_functions(tree, name, place=place)
    lines = tuple(f"{place}:{function.node.lineno} {function.name} (source)" for function in functions)
    return RewardReview(lines, review_source(functions, tree, place=place, horizon=horizon))


def _review_env(env: Env, *, root: Path) -> RewardReview:
    """Read the source of a project's environment, and let the random policy play in it."""
    from rlx.envs.import_object import is_file_reference
    from rlx.envs.make import inspect

    horizon = inspect(env, root=root).horizon
    names = [name for name in (env.id, *(wrapper.name for wrapper in env.wrappers)) if is_file_reference(name)]
    reviewed = _review_sources(names, root=root, horizon=horizon)
    episodes = play_random(env, root=root)
    steps = sum(len(episode.rewards) for episode in episodes)
    looked_at = (*reviewed.looked_at, f"{len(episodes)} episodes of {RANDOM}, {steps:,} steps")
    findings = by_severity([*reviewed.findings, *review_steps(episodes, who=RANDOM)])
    return replace(reviewed, looked_at=looked_at, findings=findings)


def _review_sources(names: Sequence[str], *, root: Path, horizon: int | None = None) -> RewardReview:
    """Read the sources of an environment and of its wrappers. A wrapper that leaves the reward alone is passed over."""
    findings: list[Finding] = []
    looked_at: list[str] = []
    notes: list[str] = []
    for index, name in enumerate(names):
        if index and not _is_reward_wrapper(*_split(name), root=root):
            continue
        try:
            reviewed = _review_file(*_split(name), root=root, horizon=horizon)
        except RlxError as error:
            notes.append(f"source not reviewed: {error.message}")
            continue
        findings += reviewed.findings
        looked_at += reviewed.looked_at
    return RewardReview(tuple(dict.fromkeys(looked_at)), by_severity(findings), tuple(notes))


def _is_reward_wrapper(place: str, name: str | None, *, root: Path) -> bool:
    try:
        tree = parse((root / place).read_text(encoding="utf-8"), place=place)
    except (OSError, UnicodeDecodeError, RlxError):
        return True  # the review says why it cannot be read
    return name in reward_wrappers(tree)


def play_random(env: Env, *, root: Path) -> list[PlayedEpisode]:
    """Play episodes of the random policy."""
    from rlx.evaluate.protocol import Protocol
    from rlx.evaluate.rollout import Evaluator

    protocol = Protocol(env, episodes=EPISODES, deterministic=True, purpose="parity", root=root)
    with Evaluator(protocol, keeps_trajectories=True) as evaluator:
        trajectories = evaluator.evaluate_random().trajectories
    return [PlayedEpisode(played.rewards, played.terms, played.success) for played in trajectories]


def _review_run(run: Run, *, root: Path) -> RewardReview:
    """Review the environment that a run was trained in, and how its evaluations' returns rank success."""
    from rlx.evaluate.stored_code import stored_experiment

    env = stored_experiment(run, root=root).env
    reviewed = _review_env(env, root=root)
    episodes = _stored_episodes(run)
    if not episodes:
        return reviewed
    known = {finding.rule for finding in reviewed.findings}
    findings = [*reviewed.findings]
    if "reward_ranks_failures" not in known:
        stored = review_steps(episodes, who=STORED)
        findings += [finding for finding in stored if finding.rule == "reward_ranks_failures"]
    looked_at = (*reviewed.looked_at, f"{len(episodes)} evaluation episodes of {run.name}")
    return replace(reviewed, looked_at=looked_at, findings=by_severity(findings))


def review_unplayed(run: Run, *, root: Path) -> RewardReview:
    """Review a run's reward without running any code: the source of its environment and of wrappers, and its returns.

    `root` is the folder with the code that the run trained. What cannot be read is noted.
    """
    from rlx.envs.import_object import is_file_reference

    env = run.config.get("env") or {}
    names = [env.get("id"), *(wrapper.get("name") for wrapper in env.get("wrappers") or () if wrapper)]
    files_named = [name for name in names if isinstance(name, str) and is_file_reference(name)]
    reviewed = _review_sources(files_named, root=root)
    findings = [*reviewed.findings]
    episodes = _stored_episodes(run)
    if episodes:
        stored = review_steps(episodes, who=STORED)
        findings += [finding for finding in stored if finding.rule == "reward_ranks_failures"]
    return replace(reviewed, findings=by_severity(findings))


def _stored_episodes(run: Run) -> list[PlayedEpisode]:
    """Return a run's evaluation episodes that say whether they succeeded, each as one step with its return."""
    import numpy as np

    rows = [row for document in run.evaluations() for row in document.get("episodes") or [] if "success" in row]
    return [PlayedEpisode(np.array([files.number(row["return"])]), {}, bool(row["success"])) for row in rows]
