"""What a scope reaches that it must not (evaluator, seeds, what the metric is computed from), or that is not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rlx.runs.reader import listed
from rlx.study import evaluator, patterns, remedy
from rlx.study import task as tasks
from rlx.study.contract import allowed, figures_of, is_return
from rlx.study.remedy import Open
from rlx.study.task import Place, Task
from rlx.study.terms import Contract, Scope


def problems(contract: Contract, task: Task, root: Path) -> Iterator[str | Open]:
    """Yield why the point of a scope is not settled."""
    scope = contract.scope
    assert scope is not None
    for name in scope.surfaces:
        if name == "evaluator":
            out = remedy.without(contract, "scope.surfaces", scope.surfaces, name)
            yield Open("the evaluator may never be in scope", out)
        elif name not in task.surfaces:
            out = remedy.without(contract, "scope.surfaces", scope.surfaces, name)
            yield Open(f"the task has no surface `{name}`; it has: {', '.join(task.surfaces) or 'none'}", out)
    opened = allowed(scope, task)
    if not opened.paths and not opened.keys:
        yield Open("nothing is in scope: name surfaces, paths or keys", remedy.missing("scope", contract, task, ()))
    for pattern in scope.paths:
        problem = tasks.place_problem(pattern, root)
        if problem is not None:
            meant = tasks.place_meant(pattern, root)
            command = remedy.mended(contract, "scope.paths", scope.paths, pattern, meant)
            yield Open(f"`{pattern}` {problem}{_meant(meant)}", command)
    known = evaluator.known_keys(task, root)
    yield from _forbidden_problems(contract, scope, known, root)
    yield from _unknown_keys(opened, contract, task, known)
    yield from _key_problems(opened, contract, task)
    yield from _path_problems(opened, contract, task, root)


def _meant(near: str | None) -> str:
    return f"; did you mean `{near}`?" if near else ""


def _forbidden_problems(contract: Contract, scope: Scope, known: Sequence[str], root: Path) -> Iterator[Open]:
    """Yield what is forbidden and probably means something else: what it should close would be open."""
    for pattern in scope.forbidden:
        problem = tasks.place_problem(pattern, root)
        if problem is None:
            continue
        if "/" in pattern or patterns.split(pattern)[1] is not None:
            meant, says = tasks.place_meant(pattern, root), problem
            is_wrong = meant is not None or patterns.path_problem(pattern) is not None
        else:
            meant, says = evaluator.unknown_key(pattern, known) if known else None, "is no key, and no file"
            is_wrong = bool(meant)
        if is_wrong:
            command = remedy.mended(contract, "scope.forbidden", scope.forbidden, pattern, meant) if meant else ""
            yield Open(f"forbidden `{pattern}` {says}{_meant(meant)}", command)


def _unknown_keys(opened: Place, contract: Contract, task: Task, known: Sequence[str]) -> Iterator[Open]:
    """Yield keys in scope that the training does not take."""
    assert contract.scope is not None
    for key, meant in evaluator.unknown_keys(opened.keys, task, known).items():
        is_own = key in contract.scope.keys
        command = remedy.mended(contract, "scope.keys", contract.scope.keys, key, meant)
        there = _meant(meant) or f"; there are: {listed([one for one in known if '.' not in one] or list(known))}"
        yield Open(f"there is no key `{key}`{there}", command if is_own else remedy.task_mended(task, is_stale=False))


def _key_problems(opened: Place, contract: Contract, task: Task) -> Iterator[str | Open]:
    scope = contract.scope
    assert scope is not None
    for key in opened.keys:
        if patterns.is_seed_key(key):
            out = remedy.without(contract, "scope.keys", scope.keys, key)
            yield Open(f"key `{key}`: seeds are replicates and never in scope", out)
            continue
        for guarded in evaluator.keys(task):
            if patterns.keys_overlap(key, guarded) and not _is_forbidden(guarded, scope):
                says = f"key `{key}` reaches the evaluator's `{guarded}`; name narrower keys, or forbid `{guarded}`"
                yield Open(says, remedy.amend(contract, "scope.forbidden", [*scope.forbidden, guarded]))
    if opened.keys and task.adapter.kind == "command" and "{overrides}" not in " ".join(task.adapter.train):
        says = "keys are in scope, but adapter.train has no {overrides} to pass them by"
        yield Open(says, remedy.task_mended(task, is_stale=False))


def _is_forbidden(key: str, scope: Scope) -> bool:
    stem = key.removesuffix(".*")
    return any(patterns.covers_key(one.removesuffix(".*"), stem) for one in scope.forbidden)


def _path_problems(opened: Place, contract: Contract, task: Task, root: Path) -> Iterator[str | Open]:
    scope, metric = contract.scope, contract.metric
    assert scope is not None
    forbidden = [one for one in scope.forbidden if patterns.split(one)[1] is None]
    own, behind = evaluator.own_files(task, root), evaluator.behind_files(task, root)
    for pattern in opened.paths:
        region = patterns.split(pattern)[1]
        for file in dict.fromkeys((*own, *behind)):
            path, inner = patterns.split(file)
            is_kept = any(patterns.covers_path(one, path) for one in forbidden)
            if (
                is_kept
                or not patterns.covers_path(pattern, path)
                or (region and inner and not patterns.nested(region, inner))
            ):
                continue
            if file in own:
                says = f"`{pattern}` reaches `{file}`, which is the evaluator's and may never be in scope"
                yield Open(says, _closed(contract, task, pattern, file))
            elif region is None:
                says = f"`{pattern}` covers `{file}`, which the metric is computed from; name regions of it instead"
                yield Open(says, _closed(contract, task, pattern, file, tasks.regions(path, root)))
            elif metric is not None and is_return(metric.name):
                says = f"`{pattern}` is in a file that `{metric.name}` is computed from; choose a task metric"
                yield Open(says, _task_metric(contract, task))


def _closed(contract: Contract, task: Task, pattern: str, file: str, regions: Sequence[str] = ()) -> str:
    """Return the command that closes a file to candidates: the pattern that names it goes, or regions take its place;
    one that covers more than it stays, and the file is forbidden."""
    scope, path = contract.scope, patterns.split(file)[0]
    assert scope is not None
    if patterns.split(pattern)[0].removeprefix("./") != path:
        return remedy.amend(contract, "scope.forbidden", [*scope.forbidden, path])
    paths = [*(one for one in scope.paths if one != pattern), *regions]
    surfaces = [one for one in scope.surfaces if pattern not in task.surfaces.get(one, Place()).paths]
    kept = [
        one for name in scope.surfaces if name not in surfaces for one in task.surfaces[name].paths if one != pattern
    ]
    keys = [one for name in scope.surfaces if name not in surfaces for one in task.surfaces[name].keys]
    changed: dict[str, Sequence[str]] = {"scope.paths": [*paths, *kept]}
    if len(surfaces) < len(scope.surfaces):
        changed |= {"scope.surfaces": surfaces, **({"scope.keys": [*scope.keys, *keys]} if keys else {})}
    return remedy.amends(contract, changed)


def _task_metric(contract: Contract, task: Task) -> str:
    level = contract.evaluation.level if contract.evaluation else remedy.level(task)
    others = [one for one in figures_of(task, level) if not is_return(one)]
    return remedy.metric(contract, "success_rate" if level == "sealed" else (others or ["NAME"])[0])
