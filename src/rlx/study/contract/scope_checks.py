"""Check a contract's scope: it must not reach the evaluator, seeds or the metric's files, and must match the task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rlx.command import Command
from rlx.number_format import listed
from rlx.study.candidate import path_patterns
from rlx.study.contract import fixes
from rlx.study.contract.contract import Contract, Scope, is_return, metric_names, open_places
from rlx.study.task import protected_files
from rlx.study.task import task as tasks
from rlx.study.task.task import PathsAndKeys, Task

# What is wrong with a point, and the command or advice that settles it; the fix is empty if there is none.
MessageAndFix = tuple[str, Command | str]


def problems(contract: Contract, task: Task, root: Path) -> Iterator[MessageAndFix]:
    """Yield why the scope is not settled."""
    scope = contract.scope
    assert scope is not None
    for name in scope.surfaces:
        remove = fixes.remove_entry(contract, "scope.surfaces", scope.surfaces, name)
        if name == "evaluator":
            yield "the evaluator may never be in scope", remove
        elif name not in task.surfaces:
            yield f"the task has no surface `{name}`; it has: {', '.join(task.surfaces) or 'none'}", remove
    opened = open_places(scope, task)
    if not opened.paths and not opened.keys:
        yield "nothing is in scope: name surfaces, paths or keys", fixes.add_point("scope", contract, task)
    for pattern in scope.paths:
        problem = tasks.pattern_problem(pattern, root)
        if problem is not None:
            near = tasks.similar_pattern(pattern, root)
            fix = fixes.replace_entry(contract, "scope.paths", scope.paths, pattern, near)
            yield f"`{pattern}` {problem}{_did_you_mean(near)}", fix
    known = protected_files.known_keys(task, root)
    yield from _forbidden_problems(contract, scope, known, root)
    yield from _key_problems(opened.keys, contract, scope, task, known)
    yield from _path_problems(opened, contract, scope, task, root)


def _did_you_mean(near: str | None) -> str:
    return f"; did you mean `{near}`?" if near else ""


def _forbidden_problems(contract: Contract, scope: Scope, known: Sequence[str], root: Path) -> Iterator[MessageAndFix]:
    """Yield forbidden patterns that match nothing and look misspelt, because they would leave a place open."""
    for pattern in scope.forbidden:
        problem = tasks.pattern_problem(pattern, root)
        if problem is None:
            continue
        is_path = "/" in pattern or path_patterns.split(pattern)[1] is not None
        if is_path:
            near = tasks.similar_pattern(pattern, root)
        else:
            near = protected_files.unknown_key(pattern, known) if known else None
            problem = "is neither a key nor a file"
        if near:
            fix = fixes.replace_entry(contract, "scope.forbidden", scope.forbidden, pattern, near)
            yield f"forbidden `{pattern}` {problem}{_did_you_mean(near)}", fix
        elif is_path and path_patterns.path_problem(pattern) is not None:
            yield f"forbidden `{pattern}` {problem}", ""


def _key_problems(
    keys: Sequence[str], contract: Contract, scope: Scope, task: Task, known: Sequence[str]
) -> Iterator[MessageAndFix]:
    """Yield keys in scope that the training does not accept, that set a seed, or that the evaluator uses."""
    top_keys = [key for key in known if "." not in key]
    for key, near in protected_files.unknown_keys(keys, task, known).items():
        hint = _did_you_mean(near) or f"; known keys: {listed(top_keys or list(known))}"
        fix: Command | str = fixes.rewrite_task(task)
        if key in scope.keys:
            fix = fixes.replace_entry(contract, "scope.keys", scope.keys, key, near)
        yield f"there is no key `{key}`{hint}", fix
    for key in keys:
        if path_patterns.is_seed_key(key):
            remove = fixes.remove_entry(contract, "scope.keys", scope.keys, key)
            yield f"key `{key}`: seeds are replicates and never in scope", remove
            continue
        for guarded in protected_files.keys(task):
            if path_patterns.keys_overlap(key, guarded) and not _is_forbidden(guarded, scope):
                forbid = fixes.amend(contract, "scope.forbidden", [*scope.forbidden, guarded])
                yield (
                    f"key `{key}` reaches the evaluator's `{guarded}`; name narrower keys, or forbid `{guarded}`",
                    forbid,
                )
    if keys and task.adapter.kind == "command" and "{overrides}" not in " ".join(task.adapter.train):
        yield "keys are in scope, but adapter.train has no {overrides} to pass them", fixes.rewrite_task(task)


def _is_forbidden(key: str, scope: Scope) -> bool:
    patterns = [pattern.removesuffix(".*") for pattern in scope.forbidden]
    return path_patterns.any_covers_key(patterns, key.removesuffix(".*"))


def _path_problems(
    opened: PathsAndKeys, contract: Contract, scope: Scope, task: Task, root: Path
) -> Iterator[MessageAndFix]:
    """Yield paths in scope that reach the evaluator's files, or files that the metric is computed from."""
    forbidden = [pattern for pattern in scope.forbidden if path_patterns.split(pattern)[1] is None]
    evaluator_files = protected_files.evaluator_files(task, root)
    protected = dict.fromkeys((*evaluator_files, *protected_files.metric_files(task, root)))
    for pattern in opened.paths:
        region = path_patterns.split(pattern)[1]
        for file in protected:
            path, protected_region = path_patterns.split(file)
            is_apart = region and protected_region and not path_patterns.nested(region, protected_region)
            is_reached = path_patterns.covers_path(pattern, path) and not is_apart
            if not is_reached or path_patterns.any_covers_path(forbidden, path):
                continue
            if file in evaluator_files:
                message = f"`{pattern}` reaches `{file}`, which belongs to the evaluator and may never be in scope"
                yield message, fixes.close_file(contract, task, pattern, path)
            elif region is None:
                message = f"`{pattern}` covers `{file}`, which the metric is computed from; name regions of it instead"
                yield message, fixes.close_file(contract, task, pattern, path, tasks.regions(path, root))
            elif contract.metric is not None and is_return(contract.metric.name):
                name = contract.metric.name
                message = f"`{pattern}` is in a file that `{name}` is computed from; choose a task metric"
                yield message, fixes.set_metric(contract, _task_metric(contract, task))


def _task_metric(contract: Contract, task: Task) -> str:
    """Return a metric of the evaluation that is not a sum of rewards."""
    level = fixes.evaluation_level(contract, task)
    if level == "sealed":
        return "success_rate"
    return next((name for name in metric_names(task, level) if not is_return(name)), "NAME")
