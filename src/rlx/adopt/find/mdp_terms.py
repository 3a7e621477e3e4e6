"""Finds the parts of a task: reward terms with weights and functions, terminations, curriculum, randomisation.

Forms: terms of Isaac Lab and mjlab (`RewardTermCfg(func=…, weight=…)`), legged_gym's nested classes (`rewards.scales`
and `_reward_name`), dicts of weights, config classes with weights, and methods of plain environments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from rlx.adopt.find.reward_sums import reward_sums
from rlx.adopt.find.reward_weights import TABLE, numbers, reward_weights, yaml_weights
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
_REWARD_METHOD = re.compile(r"^_?(compute_|get_|calc_|calculate_)?rewards?(_fn|_function)?$")
_REWARD_TERM_METHOD = re.compile(
    r"^_?reward_(?!spec$|range$|fn$|function$|scales?$|weights?$|space$|dim$|shape$|type$)(\w+)$"
)
MOST_TERMS = 500


def mdp_terms(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the terms of all tasks in the repository."""
    found: list[ScanFact] = []
    for file in repository.programs:
        found += _config_terms(file)
        found += _nested_classes(file)
        found += reward_weights(file)
        found += _methods(file)
    found += yaml_weights(repository)
    weights = [fact for fact in found if fact.kind == "reward term" and fact.confidence == "high"]
    known = {_plain(fact.name) for fact in weights}
    weighted = {fact.file.removesuffix(".py") for fact in weights}
    for file in repository.programs:
        if not any(path.startswith(file.path.removesuffix(".py")) for path in weighted):
            found += [fact for fact in reward_sums(file) if _plain(fact.name) not in known]
    if not any(fact.kind == "reward term" for fact in found):
        found += [
            replace(fact, kind="reward term", confidence="medium")
            for fact in found
            if fact.kind == "reward function" and "._reward_" in fact.detail
        ]
    yield from islice(found, MOST_TERMS)


def _plain(name: str) -> str:
    """Return a term's name without the words that say that it is a weight, or a part of the reward."""
    return re.sub(
        r"(rew(ard)?s?|scale|weight|coef\w*|penalty|cost)(_|$)|_", "", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    )


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
    local = {id(node) for function in file.functions for node in file.inside(function) if isinstance(node, ast.Assign)}
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
                if isinstance(inner, ast.ClassDef) and TABLE.match(inner.name):
                    yield from (_found("reward term", item, file) for item in numbers(inner))
        elif node.name in ("domain_rand", "domain_randomization"):
            yield from (_found("randomisation", item, file) for item in numbers(node))
        elif node.name in ("curriculum", "curriculums"):
            yield from (_found("curriculum", item, file) for item in numbers(node))


def _found(kind: str, item: tuple[str, object, int], file: PythonFile) -> ScanFact:
    name, value, line = item
    return ScanFact(kind, name, file.path, line, value=value)


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
    for node in file.inside(method):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
            for key in node.value.keys:
                name = literal(key)
                if isinstance(name, str) and key is not None:
                    yield ScanFact("reward term", name, file.path, key.lineno, "medium")
