"""Finds the parts of a task: reward terms with weights and functions, terminations, curriculum, randomisation.

Forms: terms of Isaac Lab and mjlab (`RewardTermCfg(func=…, weight=…)`), legged_gym's nested classes (`rewards.scales`
and `_reward_name`), dicts of weights, config classes with weights, and methods of plain environments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from rlx.adopt.find.text_patterns import text_pattern
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal, spelled
from rlx.adopt.scan_fact import ScanFact

_TERMS = {
    "RewardTermCfg": "reward term", "TerminationTermCfg": "termination", "CurriculumTermCfg": "curriculum",
    "EventTermCfg": "randomisation", "RandomizationTermCfg": "randomisation",
}  # fmt: skip
_USUAL = {
    "RewTerm": "RewardTermCfg", "RewardTerm": "RewardTermCfg", "DoneTerm": "TerminationTermCfg",
    "TerminationTerm": "TerminationTermCfg", "CurrTerm": "CurriculumTermCfg", "CurriculumTerm": "CurriculumTermCfg",
    "EventTerm": "EventTermCfg", "RandTerm": "RandomizationTermCfg",
}  # fmt: skip
_RANDOMISES = re.compile(r"random|noise|friction|mass|com\b|push|delay|latency|gain|perturb|armature|encoder", re.I)
_SCALES = re.compile(r"^(scales|reward_scales|rewards?_weights?|reward_weights)$")
_CONFIG = re.compile(r"(Cfg|Config|Params)$")
_WEIGHT = re.compile(
    r"^rew_(?!clip|range|type|threshold|buf)\w+$|^reward_scale_\w+$|_(rew|reward|penalty|cost)_(scale|weight|coef)$"
)
"""Names of the numbers in a config class that weigh a part of the reward."""
_WEIGHT_KEY = re.compile(r"_reward$|^reward_(?!range|type|threshold|scale$|weight$)|_penalty$")
_REWARD_METHOD = re.compile(r"^_?(compute_|get_|calc_|calculate_)?rewards?(_fn|_function)?$")
_REWARD_TERM_METHOD = re.compile(r"^_?reward_(\w+)$")
MOST_TERMS = 500
MOST_YAML_FILES = 400
_YAML_BLOCK = re.compile(r"^(reward_scales|rewards?_weights?|reward_coef\w*)$")


def mdp_terms(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the terms of all tasks in the repository."""
    count = 0
    for file in repository.programs:
        for fact in (
            *_config_terms(file),
            *_nested_classes(file),
            *_dict_weights(file),
            *_config_weights(file),
            *_methods(file),
        ):
            yield fact
            count += 1
            if count >= MOST_TERMS:
                return
    yield from islice(_yaml_weights(repository), MOST_TERMS - count)


def _config_terms(file: PythonFile) -> Iterator[ScanFact]:
    if "Term" not in file.text:  # the classes of all frameworks have this word, and the search below is slow
        return
    aliases = {**{name: name for name in _TERMS}, **_USUAL}
    for node in file.nodes:
        if isinstance(node, ast.ImportFrom):
            aliases |= {alias.asname: alias.name for alias in node.names if alias.asname and alias.name in _TERMS}
    for name, call in _named_calls(file):
        kind_name = dotted(call.func).rpartition(".")[2]
        if kind_name == "term" and call.args:
            kind_name = dotted(call.args[0]).rpartition(".")[2]
        kind = _TERMS.get(aliases.get(kind_name, ""))
        if kind is None:
            continue
        keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        function = spelled(keywords.get("func"))
        if kind == "randomisation" and not _RANDOMISES.search(f"{name} {function}"):
            continue
        yield ScanFact(kind, name, file.path, call.lineno, value=_term_value(kind, keywords), detail=function)


def _term_value(kind: str, keywords: dict[str, ast.expr]) -> object:
    if kind == "reward term":
        return literal(keywords.get("weight"))
    if kind == "termination":
        is_limit = any(literal(keywords.get(name)) is True for name in ("time_out", "is_timeout", "is_time_out"))
        return "truncation" if is_limit else "termination"
    return literal(keywords.get("mode"))


def _named_calls(file: PythonFile) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls that are assigned to a name, or stored under a key of a dict; local variables are left out."""
    local = {id(node) for function in file.functions for node in ast.walk(function) if isinstance(node, ast.Assign)}
    for node in file.nodes:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call):
            yield dotted(node.target).rpartition(".")[2], node.value
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target = node.targets[0]
            if isinstance(target, ast.Name) and id(node) in local:
                continue
            name = dotted(target).rpartition(".")[2]
            if isinstance(target, ast.Subscript):
                name = text_pattern(target.slice)
            yield name, node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(value, ast.Call) and key is not None and text_pattern(key):
                    yield text_pattern(key), value


def _nested_classes(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the terms of legged_gym's configs: `class rewards: class scales:` and `class domain_rand:`."""
    for node in file.classes:
        if node.name == "rewards":
            for inner in node.body:
                if isinstance(inner, ast.ClassDef) and _SCALES.match(inner.name):
                    yield from (_found("reward term", item, file) for item in _numbers(inner))
        elif node.name in ("domain_rand", "domain_randomization"):
            yield from (_found("randomisation", item, file) for item in _numbers(node))
        elif node.name in ("curriculum", "curriculums"):
            yield from (_found("curriculum", item, file) for item in _numbers(node))


def _found(kind: str, item: tuple[str, object, int], file: PythonFile) -> ScanFact:
    name, value, line = item
    return ScanFact(kind, name, file.path, line, value=value)


def _numbers(node: ast.ClassDef) -> Iterator[tuple[str, object, int]]:
    for statement in node.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            value = literal(statement.value)
            if isinstance(target, ast.Name) and isinstance(value, (int, float, list)):
                yield target.id, value, statement.lineno


def _config_weights(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the weights that a config class has as plain numbers, such as `rew_scale_alive = 1.0`."""
    for node in file.classes:
        if _CONFIG.search(node.name):
            for name, value, line in _numbers(node):
                if _WEIGHT.search(name) and not isinstance(value, (bool, list)):
                    yield ScanFact("reward term", name, file.path, line, value=value)


def _dict_weights(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the weights of dicts that are named like reward weights, and keys such as `collision_reward: -1`."""
    for node in file.nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Dict):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if _SCALES.match(dotted(target).rpartition(".")[2]):
                yield from _weights(node.value, file, pattern=None)
        elif isinstance(node, ast.Dict):
            yield from _weights(
                node, file, pattern=re.compile(r"_reward$|^reward_(?!range|type|threshold|scale$|weight$)|_penalty$")
            )


def _weights(node: ast.Dict, file: PythonFile, *, pattern: re.Pattern[str] | None) -> Iterator[ScanFact]:
    for key, value in zip(node.keys, node.values, strict=True):
        name = literal(key)
        weight = literal(value)
        is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if isinstance(name, str) and is_number and (pattern is None or pattern.search(name)):
            assert key is not None
            yield ScanFact("reward term", name, file.path, key.lineno, value=weight)


def _yaml_weights(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the weights below `reward_scales:` in YAML files, line by line."""
    seen: set[str] = set()
    paths = [path for path in repository.files if path.endswith((".yaml", ".yml"))][:MOST_YAML_FILES]
    for path in paths:
        block = -1
        for number, line in enumerate(repository.text(path).splitlines(), start=1):
            text = line.partition("#")[0].rstrip()
            indent = len(text) - len(text.lstrip())
            name, colon, value = text.strip().partition(":")
            if not colon:
                continue
            if 0 <= block < indent:
                weight = _number(value)
                if weight is not None and name not in seen:
                    seen.add(name)
                    yield ScanFact("reward term", name, path, number, value=weight)
            else:
                block = -1
                if _YAML_BLOCK.match(name) and not value.strip():
                    block = indent


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _methods(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the methods of plain environments that compute a reward or the end of an episode."""
    for node in file.classes:
        methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
        names = {method.name for method in methods}
        if (
            not names & {"step", "reset", "compute_reward", "_reward", "_rewards", "_init_buffers"}
            and "Env" not in node.name
        ):
            continue
        for method in methods:
            term = _REWARD_TERM_METHOD.match(method.name)
            if term:
                yield ScanFact(
                    "reward function", term[1], file.path, method.lineno, detail=f"{node.name}.{method.name}"
                )
            elif _REWARD_METHOD.match(method.name):
                yield ScanFact(
                    "reward function", method.name, file.path, method.lineno, detail=f"{node.name}.{method.name}"
                )
                yield from _returned_terms(method, file)
            elif re.match(r"_?(is_|check_|compute_|get_)?(terminat\w*|dones?)$", method.name):
                yield ScanFact("termination", method.name, file.path, method.lineno, "medium", value="termination")
            elif re.match(r"_?(is_|check_|compute_)?(truncat\w*|time_?outs?)$", method.name):
                yield ScanFact("termination", method.name, file.path, method.lineno, "medium", value="truncation")


def _returned_terms(method: ast.FunctionDef, file: PythonFile) -> Iterator[ScanFact]:
    """Yield the keys of a dict of terms that a reward method returns."""
    for node in ast.walk(method):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
            for key in node.value.keys:
                name = literal(key)
                if isinstance(name, str) and key is not None:
                    yield ScanFact("reward term", name, file.path, key.lineno, "medium")
