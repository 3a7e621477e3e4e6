"""Find the wrappers of a file that change the reward, from its syntax tree. Nothing is executed.

A wrapper changes the reward if it derives from `RewardWrapper` or has a `reward` method, or if its `step` returns
another reward than the one that the inner environment's `step` gave.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

REWARD_PLACE = 1  # the place of the reward in what `step` returns


def reward_wrappers(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """Return the wrappers that change the reward, with the methods that do so: `Class.reward`, `Class.step`."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found = {}
    for name, node in classes.items():
        if not _is_wrapper(node, classes):
            continue
        methods = {method.name: method for method in node.body if isinstance(method, ast.FunctionDef)}
        changing = []
        if "reward" in methods:
            changing.append(f"{name}.reward")
        if "step" in methods and changes_reward(methods["step"]):
            changing.append(f"{name}.step")
        if changing:
            found[name] = tuple(changing)
    return found


def _is_wrapper(node: ast.ClassDef, classes: dict[str, ast.ClassDef], depth: int = 0) -> bool:
    """Say whether a class is a wrapper by the names of its bases, also through other classes of the file."""
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        if "Wrapper" in name:
            return True
        if depth < len(classes) and name in classes and _is_wrapper(classes[name], classes, depth + 1):
            return True
    return False


def changes_reward(step: ast.FunctionDef) -> bool:
    """Say whether a wrapper's `step` returns another reward than the inner one's."""
    inner = {name for node in ast.walk(step) for name in _reward_of_inner_step(node)}
    written = [name for node in ast.walk(step) for name in _written(node)]
    for node in ast.walk(step):
        if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Tuple):
            continue
        elements = node.value.elts
        if len(elements) not in (4, 5):
            continue
        reward = elements[REWARD_PLACE]
        is_passed_on = isinstance(reward, ast.Name) and reward.id in inner and written.count(reward.id) == 1
        if not is_passed_on:
            return True
    return False


def _reward_of_inner_step(node: ast.AST) -> Iterator[str]:
    """Yield the name that holds the reward of `self.env.step(…)` or `super().step(…)`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return
    called = node.value.func
    if not isinstance(called, ast.Attribute) or called.attr != "step":
        return
    for target in node.targets:
        if isinstance(target, ast.Tuple) and len(target.elts) in (4, 5):
            reward = target.elts[REWARD_PLACE]
            if isinstance(reward, ast.Name):
                yield reward.id


def _written(node: ast.AST) -> Iterator[str]:
    """Yield every name that a statement assigns."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
