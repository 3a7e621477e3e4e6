"""Finds tables of reward weights: dicts, config classes, config trees, entries of a table, and YAML files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal
from rlx.adopt.scan_fact import ScanFact

TABLE = re.compile(
    r"^(scales|(\w+_)?(rew|reward)s?_(scales?|weights?|coefs?|coeffs?|coefficients|weighting|terms_weights?|w)(_\w+)?|"
    r"weights?_rewards?|scales?_rewards?)$"
)
"""Names of the tables that hold one weight per part of the reward."""
_TABLE_CLASS = re.compile(
    r"^(\w*(Reward|Rew)s?_?(Scales?|Weights?|Coefs?|Coeffs?|Coefficients)|(rew|reward)s?_(scales|weights|coef\w*))$"
)
_WITHIN = re.compile(r"(^|_)rew(ard)?s?(_|$)", re.I)
_INNER = re.compile(r"^(scales?|weights?|coefs?|coeffs?|coefficients)$")
_CONFIG = re.compile(r"(Cfg|Config|Params)$")
_WEIGHT = re.compile(
    r"^rew_(?!clip|range|type|threshold|buf)\w+$|^reward_scale_\w+$|_(rew|reward|penalty|cost)_(scale|weight|coef)$"
)
"""Names of the numbers in a config class that weigh a part of the reward."""
_WEIGHT_KEY = re.compile(r"_reward$|^reward_(?!range|type|threshold|scale$|weight$)|_penalty$")
_TASK = re.compile(r"env|task|reward|game|world|sim", re.I)
"""Paths and classes of environments: elsewhere, `terminal_reward` is an agent's own setting."""
_YAML_KEY = re.compile(
    r"^(?!task|style|disc|intrinsic|extrinsic)\w+(Rew(ard)?Scale|Rew(ard)?Weight|_rew(ard)?_(scale|weight|coef))$|^rew_(scale|weight)_\w+$"
)
_YAML_BLOCK = re.compile(r"^(reward_scales|rewards?_weights?|reward_coef\w*)$")
_INLINE = re.compile(r"([\w.-]+)\s*:\s*([-+.\deE_]+)\s*(?:[,}]|$)")
MOST_YAML_FILES = 400
LONGEST_VALUE = 2000
_DEEPEST = 8


def reward_weights(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the weights in the tables of a file."""
    yield from _of_dicts(file)
    yield from _of_configs(file)
    if _WITHIN.search(file.text) or "eward" in file.text:
        yield from _of_classes(file)
        yield from _of_trees(file)
        yield from _of_entries(file)


def _term(name: str, value: object, node: ast.AST, file: PythonFile) -> ScanFact:
    return ScanFact("reward term", name, file.path, getattr(node, "lineno", 1), value=value)


def numbers(node: ast.ClassDef) -> Iterator[tuple[str, object, int]]:
    """Yield the names, values and lines of a class's numbers and lists."""
    for statement in node.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            value = literal(statement.value)
            if isinstance(target, ast.Name) and isinstance(value, (int, float, list)):
                yield target.id, value, statement.lineno


def _of_configs(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the weights that a config class has as plain numbers, such as `rew_scale_alive = 1.0`."""
    for node in file.classes:
        if _CONFIG.search(node.name):
            for name, value, line in numbers(node):
                if _WEIGHT.search(name) and not isinstance(value, (bool, list)):
                    yield ScanFact("reward term", name, file.path, line, value=value)


def _of_classes(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the numbers of classes such as `reward_scales` and `RewardWeights`."""
    for node in file.classes:
        if _TABLE_CLASS.match(node.name):
            for name, value, line in numbers(node):
                if not isinstance(value, (bool, list)):
                    yield ScanFact("reward term", name, file.path, line, value=value)


def _of_dicts(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the weights of dicts named like reward weights, and a task's keys such as `collision_reward: -1`."""
    is_task = bool(_TASK.search(file.path)) or any(_TASK.search(node.name) for node in file.classes)
    for node in file.nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Dict):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if TABLE.match(dotted(target).rpartition(".")[2]):
                yield from _of_dict(node.value, file, pattern=None)
        elif isinstance(node, ast.Dict) and is_task:
            yield from _of_dict(node, file, pattern=_WEIGHT_KEY)


def _of_dict(node: ast.Dict, file: PythonFile, *, pattern: re.Pattern[str] | None) -> Iterator[ScanFact]:
    for key, value in zip(node.keys, node.values, strict=True):
        name = literal(key)
        weight = literal(value)
        if isinstance(name, str) and _is_number(weight) and (pattern is None or pattern.search(name)):
            assert key is not None
            yield _term(name, weight, key, file)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _of_trees(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the weights of nested configs, as dicts or calls: `reward_config=create(scales=create(pose=-0.5))`."""
    for node in file.nodes:
        if not isinstance(node, (ast.Dict, ast.Call)):
            continue
        for name, value in _entries(node):
            if _WITHIN.search(name):
                yield from _of_tree(value, name, file, _DEEPEST)


def _of_tree(node: ast.expr, name: str, file: PythonFile, depth: int) -> Iterator[ScanFact]:
    """Yield the weights below a key that is named like a reward."""
    is_table = bool(TABLE.match(name) or _INNER.match(name))
    for inner, value in _entries(node) if depth else ():
        weight = literal(value)
        if is_table and _is_number(weight):
            yield _term(inner, weight, value, file)
        elif _INNER.match(inner):
            yield from _of_tree(value, inner, file, depth - 1)


def _entries(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """Return the entries of a dict, or of a call that builds one from keywords."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [(name, value) for key, value in pairs if isinstance(name := literal(key), str)]
    if isinstance(node, ast.Call):
        inside = [entry for argument in node.args[:1] if isinstance(argument, ast.Dict) for entry in _entries(argument)]
        return inside + [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
    return []


def _of_entries(file: PythonFile) -> Iterator[ScanFact]:
    """Yield weights that are set one by one: `rew_scales["torque"] = …`, `Cfg.reward_scales.jump = 10`."""
    for node in file.nodes:
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(name := literal(target.slice), str):
            if TABLE.match(dotted(target.value).rpartition(".")[2]) and not isinstance(node.value, ast.Dict):
                yield _term(name, literal(node.value), node, file)
        elif isinstance(target, ast.Attribute) and _is_number(literal(node.value)):
            above, _, table = dotted(target.value).rpartition(".")
            if _TABLE_CLASS.match(table) or (table == "scales" and _WITHIN.search(above)):
                yield _term(target.attr, literal(node.value), node, file)


def yaml_weights(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the weights of YAML files: below `reward_scales:`, below `weights:` of `rewards:`, or named as weights."""
    seen: set[str] = set()
    paths = [path for path in repository.files if path.endswith((".yaml", ".yml"))][:MOST_YAML_FILES]
    for path in paths:
        text = repository.text(path)
        if "rew" not in text.lower():
            continue
        for name, weight, line in _of_yaml(text):
            if name not in seen:
                seen.add(name)
                yield ScanFact("reward term", name, path, line, value=weight)


def _of_yaml(text: str) -> Iterator[tuple[str, float, int]]:
    above: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].rstrip()
        name, colon, value = content.strip().partition(":")
        if not colon:
            continue
        indent = len(content) - len(content.lstrip())
        above = [(depth, key) for depth, key in above if depth < indent]
        keys = [key for _, key in above]
        weight = _number(value)
        if not value.strip():
            above.append((indent, name))
        elif weight is not None and (_is_table(keys) or _YAML_KEY.search(name)):
            yield name, weight, number
        elif value.strip().startswith("{") and len(value) < LONGEST_VALUE and _is_table([*keys, name]):
            for inner, words in _INLINE.findall(value):
                if (found := _number(words)) is not None:
                    yield inner, found, number


def _is_table(keys: list[str]) -> bool:
    """Return whether the keys above a number say that it is a weight of the reward."""
    if not keys:
        return False
    if any(_YAML_BLOCK.match(key) for key in keys):
        return True
    return bool(_INNER.match(keys[-1])) and len(keys) > 1 and bool(_WITHIN.search(keys[-2]))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
