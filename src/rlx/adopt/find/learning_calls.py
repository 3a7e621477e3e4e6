"""Tells whether a program learns: by gradients, tables, a library's trainer, or an imported learner."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from rlx.adopt.find.imported_files import imported_files
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted

_GRADIENTS = ("value_and_grad", "grad", "filter_grad", "filter_value_and_grad")
_STEPS = ("apply_gradients", "minimize", "train_on_batch", "apply_updates")
"""Calls that take one step of learning in TensorFlow, Keras and JAX."""
_TRAINERS = {
    "ray": ("train", "fit", "run"), "sample_factory": ("train", "fit"), "tianshou": ("run",), "skrl": ("train",),
    "pytorch_lightning": ("fit",), "lightning": ("fit",), "d3rlpy": ("fit", "fit_online"), "rl": ("fit",),
    "brax": ("train",), "pearl": ("online_learning",), "acme": ("run", "run_experiment"), "garage": ("train",),
    "elegantrl": ("train_agent",), "torchrl": ("train",), "stable_baselines3": ("learn",), "rl_games": ("run",),
    "rsl_rl": ("learn",), "tf_agents": ("train",), "coax": ("update",),
}  # fmt: skip
"""Libraries of learners, and the calls that make them train."""
_TRAINER_CALLS = re.compile(r"^(on|off)policy_trainer$|^offline_trainer$|^train_agent$")
_TABLE = re.compile(r"^(q|q_?table|q_?values?|v|values?|policy|theta|w|weights?|pi)$", re.I)
MOST_FILES = 40


def learns(file: PythonFile) -> bool:
    """Return whether a file itself changes what is learned, or makes a library's trainer do so."""
    names = {call.func.attr for call in file.calls if isinstance(call.func, ast.Attribute)}
    if names & {"learn", "backward", *_STEPS}:
        return True
    called = {dotted(call.func) for call in file.calls}
    is_jax = bool(file.packages & {"jax", "equinox", "flax", "optax", "haiku"})
    if is_jax and any(name.rpartition(".")[2] in _GRADIENTS for name in called):
        return bool(names & {"step", "apply_gradients", "update"})
    if any(names & set(calls) for package, calls in _TRAINERS.items() if package in file.packages):
        return True
    return any(_TRAINER_CALLS.match(name.rpartition(".")[2]) for name in called) or _fills_a_table(file, names)


def _fills_a_table(file: PythonFile, names: set[str]) -> bool:
    """Return whether a file that steps an environment changes the entries of a table of values."""
    if "step" not in names:
        return False
    for node in file.nodes:
        if isinstance(node, ast.AugAssign):
            target: ast.expr = node.target
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
        else:
            continue
        if not isinstance(target, ast.Subscript):
            continue
        while isinstance(target, ast.Subscript):
            target = target.value
        if _TABLE.match(dotted(target).rpartition(".")[2].strip("_")):
            return True
    return False


def reaches_learning(repository: ForeignRepository, file: PythonFile) -> bool:
    """Return whether a project file that a program imports learns."""
    return any(learns(target) for target in imported_files(repository, file, depth=2)[:MOST_FILES])


def starts_a_trainer(repository: ForeignRepository, file: PythonFile, names: Collection[str]) -> bool:
    """Return whether a program calls a method that trains of an imported class; its learner is loaded by a name."""
    called = {call.func.attr for call in file.calls if isinstance(call.func, ast.Attribute)} & set(names)
    for target in imported_files(repository, file, depth=1)[:MOST_FILES]:
        methods = {function.name for function in target.functions}
        steps = any(isinstance(call.func, ast.Attribute) and call.func.attr == "step" for call in target.calls)
        if steps and called & methods:
            return any(learns(other) for other in repository.programs)
    return False


def calls_a_gradient_step(repository: ForeignRepository, file: PythonFile) -> bool:
    """Return whether a program calls a function or method, of a project file that it imports, that takes a step."""
    called = {dotted(call.func).rpartition(".")[2] for call in file.calls}
    return any(
        function.name in called and function.name != "forward"
        for target in imported_files(repository, file, depth=1)[:MOST_FILES]
        if learns(target)
        for function in target.functions
        if _takes_a_step(function)
    )


def _takes_a_step(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in ("backward", *_STEPS) for node in ast.walk(function))
