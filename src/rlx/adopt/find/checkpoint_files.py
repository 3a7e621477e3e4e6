"""Finds the checkpoints that a repository writes: the patterns of their paths, and the call that saves them.

A path that a function only receives is looked up at the calls of that function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlx.adopt.find.text_patterns import nodes_around, text_pattern
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, spelled
from rlx.adopt.scan_fact import Confidence, ScanFact

_SUFFIX = re.compile(r"\.(pt|pth|zip|ckpt|pkl|npz|safetensors|onnx|cleanrl_model|msgpack|tar|h5|bin|model)$")
_MODEL_SUFFIX = re.compile(r"\.(pt|pth|ckpt|safetensors|h5|keras|msgpack)$")
_SAVERS = {
    "torch.save": 1, "th.save": 1, "joblib.dump": 1, "save_file": 1, "pickle.dump": 1, "jnp.savez": 0, "np.savez": 0,
}  # fmt: skip
_METHODS = ("save", "save_model", "save_checkpoint", "save_policy", "save_agent", "save_snapshot")
_OTHER_SUFFIX = re.compile(r"\.(mp4|gif|png|jpe?g|pdf|svg|json|jsonl|ya?ml|txt|csv|tsv|npy|wav|html|log)$")
_MODEL = re.compile(r"model|policy|ckpt|checkpoint|param")
_WEIGHTS = re.compile(r"state_dict\(\)|\bparams\b|\.weights\b")
"""Words of the saved value that say that it is a model."""
_NOT_MODELS = re.compile(r"(video|fig|plot|image|img|plt|df|sheet|workbook|data|buffer|motion|array|mesh|scene)", re.I)


def checkpoint_files(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the patterns of checkpoint files, each once per program; the detail is the whole path."""
    seen: set[tuple[str, str]] = set()
    found: list[ScanFact] = []
    for file in repository.programs:
        for call in file.calls:
            for fact in _saves(call, file, repository):
                if (fact.name, fact.file) not in seen:
                    seen.add((fact.name, fact.file))
                    found.append(fact)
    named = [fact for fact in found if fact.name.strip("*")]
    yield from named or found


def _saves(call: ast.Call, file: PythonFile, repository: ForeignRepository) -> Iterator[ScanFact]:
    name = dotted(call.func)
    tail = name.rpartition(".")[2]
    passed = next((dotted(argument) for argument in call.args[:1] if isinstance(argument, ast.Attribute)), "")
    if name in _SAVERS or passed in _SAVERS:
        place = _SAVERS.get(name, _SAVERS.get(passed, 0) + 1)  # or `retry(torch.save, state, path)`
        node = _path(call, place)
        patterns = [_resolved(node, file)]
        if not patterns[0].strip("*/"):
            patterns = _at_callers(_file_part(node), file, repository) or patterns
        for pattern in patterns:
            is_any_file = name in ("np.savez", "pickle.dump", "joblib.dump", "jnp.savez")
            saved = spelled(next(iter(call.args), None)) if is_any_file else ""
            is_model_file = _MODEL.search(pattern) and not _NOT_MODELS.search(_last(pattern))
            is_log = re.match(r"\w*logs?\b", _last(pattern))
            if is_any_file and (is_log or not (is_model_file or _WEIGHTS.search(saved))):
                continue
            if not _OTHER_SUFFIX.search(pattern):
                yield _checkpoint(_last(pattern) or "*", pattern, call, file)
    elif tail == "save" and "log" in name.rpartition(".")[0].rpartition(".")[2]:
        return  # a log that stores itself
    elif tail in _METHODS and isinstance(call.func, ast.Attribute) and not _NOT_MODELS.search(name.rpartition(".")[0]):
        pattern = _resolved(_path(call, 0), file)
        is_model = _SUFFIX.search(pattern) or re.search("model|policy|agent|ckpt|checkpoint", f"{name} {pattern}")
        if pattern and is_model and not pattern.endswith("/") and not _OTHER_SUFFIX.search(pattern):
            if tail == "save" and not _SUFFIX.search(pattern) and "stable_baselines3" in file.packages:
                pattern += ".zip"
            yield _checkpoint(_last(pattern), pattern, call, file)
    elif re.search(r"save|dump", tail):
        for pattern in map(text_pattern, call.args):
            if _MODEL_SUFFIX.search(pattern) and not _NOT_MODELS.search(_last(pattern)):
                yield _checkpoint(_last(pattern), pattern, call, file)
    elif tail == "EvalCallback" and any(word.arg == "best_model_save_path" for word in call.keywords):
        yield _checkpoint("best_model.zip", "best_model.zip", call, file)


def _checkpoint(name: str, pattern: str, call: ast.Call, file: PythonFile) -> ScanFact:
    confidence = _confidence(pattern)
    return ScanFact("checkpoint", name, file.path, call.lineno, confidence, value=dotted(call.func), detail=pattern)


def _file_part(node: ast.expr | None) -> ast.expr | None:
    """Return the last part of a path that is put together."""
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "join" and node.args:
        return node.args[-1]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return node.right
    return node


def _at_callers(node: ast.expr | None, file: PythonFile, repository: ForeignRepository) -> list[str]:
    """Return the paths that callers give to the function around a call, if the path is one of its parameters."""
    if not isinstance(node, ast.Name):
        return []
    around = [function for function in file.functions if function.lineno <= node.lineno <= (function.end_lineno or 0)]
    if not around:
        return []
    function = max(around, key=lambda function: function.lineno)
    names = [argument.arg for argument in function.args.args]
    if node.id not in names:
        return []
    place = names.index(node.id) - (names[0] in ("self", "cls"))
    given_by_itself = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    patterns = [text for text in [text_pattern(given_by_itself.get(node.id))] if _SUFFIX.search(text)]
    for other in repository.programs:
        for call in other.calls:
            if dotted(call.func).rpartition(".")[2] != function.name:
                continue
            given = next((word.value for word in call.keywords if word.arg == node.id), None)
            if given is None and len(call.args) > place >= 0:
                given = call.args[place]
            pattern = _resolved(given, other)
            if _SUFFIX.search(pattern):
                patterns.append(pattern)
    return list(dict.fromkeys(patterns))


def _path(call: ast.Call, index: int) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg in ("f", "path", "file", "filename", "model_path", "save_path"):
            return keyword.value
    if len(call.args) > index:
        return call.args[index]
    return None


def _resolved(node: ast.expr | None, file: PythonFile, depth: int = 0) -> str:
    """Return a path's pattern; a variable or a call of the same file is looked up there, in its own function first."""
    pattern = text_pattern(node)
    if pattern.strip("*/") or node is None or depth > 3:
        return pattern
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return f"*/{_resolved(node.right, file, depth + 1) or '*'}".replace("**", "*")
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "open":
        return _resolved(_path(node, 0), file, depth + 1)
    if isinstance(node, ast.Call):
        return _returned(node, file, depth)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return pattern
    for other in nodes_around(node, file):
        if isinstance(other, ast.Assign) and any(dotted(target) == dotted(node) for target in other.targets):
            text = _resolved(other.value, file, depth + 1)
            if text.strip("*/"):
                return text
        elif isinstance(other, ast.AugAssign) and dotted(other.target) == dotted(node):
            text = text_pattern(other.value)
            if _SUFFIX.search(text):
                return f"*{text}"
        elif isinstance(other, ast.With):
            for item in other.items:
                opened = item.context_expr
                is_ours = item.optional_vars is not None and dotted(item.optional_vars) == dotted(node)
                if is_ours and isinstance(opened, ast.Call):
                    source: ast.expr | None = next(iter(opened.args), None)
                    if isinstance(opened.func, ast.Attribute) and opened.func.attr == "open":
                        source = opened.func.value
                    return _resolved(source, file, depth + 1)
    if isinstance(node, ast.Attribute):
        return _of_attribute(node, file, depth)
    return ""


def _of_attribute(node: ast.Attribute, file: PythonFile, depth: int) -> str:
    """Return the path that another method of the same class gives to an attribute."""
    around = [other for other in file.classes if other.lineno <= node.lineno <= (other.end_lineno or 0)]
    for other in ast.walk(max(around, key=lambda found: found.lineno)) if around else ():
        if isinstance(other, ast.Assign) and any(dotted(target) == dotted(node) for target in other.targets):
            text = text_pattern(other.value)
            if text.strip("*/"):
                return text
    return ""


def _returned(call: ast.Call, file: PythonFile, depth: int) -> str:
    name = dotted(call.func).rpartition(".")[2]
    for function in file.functions:
        if function.name == name:
            for node in file.inside(function):
                if isinstance(node, ast.Return):
                    return _resolved(node.value, file, depth + 1)
    return ""


def _last(pattern: str) -> str:
    """Return the part of a pattern that names the file."""
    return pattern.rpartition("/")[2] or pattern


def _confidence(pattern: str) -> Confidence:
    if not pattern.strip("*"):
        return "low"
    if _SUFFIX.search(pattern):
        return "high"
    return "medium"
