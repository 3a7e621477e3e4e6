"""Finds the checkpoints that a repository writes: the patterns of their paths, and the call that saves them.

A path that a function only receives is looked up at the calls of that function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlx.adopt.find.text_patterns import nodes_around, text_pattern
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal, spelled
from rlx.adopt.scan_fact import Confidence, ScanFact

_SUFFIX = re.compile(r"\.(pt|pth|zip|ckpt|pkl|npz|safetensors|onnx|cleanrl_model|msgpack|tar|h5|bin|model)$")
_MODEL_SUFFIX = re.compile(r"\.(pt|pth|ckpt|safetensors|h5|keras|msgpack)$")
_SAVERS = {
    "torch.save": 1, "th.save": 1, "paddle.save": 1, "torch.jit.save": 1, "joblib.dump": 1, "save_file": 1,
    "pickle.dump": 1, "cPickle.dump": 1, "pkl.dump": 1, "dill.dump": 1, "cloudpickle.dump": 1, "jnp.savez": 0,
    "np.savez": 0, "numpy.savez": 0, "np.savez_compressed": 0, "np.save": 0, "numpy.save": 0, "jnp.save": 0,
    "eqx.tree_serialise_leaves": 0, "serializers.save_npz": 0, "tf.saved_model.save": 1,
}  # fmt: skip
_OF_ANY_VALUE = re.compile(r"^(np|jnp|numpy)\.save|dump$")
"""Calls that save any value: a checkpoint only if the value or the file is named like a model."""
_METHODS = (
    "save", "save_model", "save_checkpoint", "save_policy", "save_agent", "save_snapshot", "save_weights",
    "save_pretrained", "save_params", "save_parameters", "save_networks", "save_models", "save_state",
)  # fmt: skip
_OF_MODELS = re.compile(r"weights|pretrained|param|networks|models")
_OTHER_SUFFIX = re.compile(r"\.(mp4|gif|png|jpe?g|pdf|svg|json|jsonl|ya?ml|txt|csv|tsv|npy|wav|html|log)$")
_MODEL = re.compile(
    r"model|policy|policies|ckpt|checkpoint|param|weight|agent|actor|critic|q_?table|network|brain|snapshot", re.I
)
_WEIGHTS = re.compile(
    r"state_dict\(\)|\bparams\b|\.weights\b|^(self\.)?(q|Q|q_?table|Q_?table|agent|policy|model|actor|critic|net|network|weights)$"
)
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
    receiver, _, tail = name.rpartition(".")
    passed = next((dotted(argument) for argument in call.args[:1] if isinstance(argument, ast.Attribute)), "")
    if name in _SAVERS or passed in _SAVERS:
        place = _SAVERS.get(name, _SAVERS.get(passed, 0) + 1)  # or `retry(torch.save, state, path)`
        yield from _by_saver(call, name, place, file, repository)
    elif tail in ("EvalCallback", "CheckpointCallback"):
        yield from _by_callback(call, tail, file)
    elif tail in ("save", "save_checkpoint") and (pattern := _by_library(call, receiver, tail, file)):
        yield _checkpoint(_last(pattern), pattern, call, file)
    elif tail == "save" and "log" in receiver.rpartition(".")[2]:
        return  # a log that stores itself
    elif tail in _METHODS and isinstance(call.func, ast.Attribute) and not _NOT_MODELS.search(receiver):
        pattern = _resolved(_path(call, 0), file, repository)
        is_named = _OF_MODELS.search(tail) or re.search("model|policy|agent|ckpt|checkpoint", f"{name} {pattern}")
        is_model = _SUFFIX.search(pattern) or is_named
        if pattern and is_model and not pattern.endswith("/") and not _OTHER_SUFFIX.search(pattern):
            if not _SUFFIX.search(pattern) and _saves_itself(repository, tail):
                return  # the project's own method, whose files are found where it writes them
            if tail == "save" and not _SUFFIX.search(pattern) and "stable_baselines3" in file.packages:
                pattern += ".zip"
            yield _checkpoint(_last(pattern), pattern, call, file)
    elif tail == "write" and dotted(getattr(next(iter(call.args), None), "func", call)).endswith("to_bytes"):
        pattern = _resolved(getattr(call.func, "value", None), file, repository)
        if pattern:
            yield _checkpoint(_last(pattern), pattern, call, file)
    elif re.search(r"save|dump", tail):
        for pattern in map(text_pattern, call.args):
            if _MODEL_SUFFIX.search(pattern) and not _NOT_MODELS.search(_last(pattern)):
                yield _checkpoint(_last(pattern), pattern, call, file)


def _by_saver(
    call: ast.Call, name: str, place: int, file: PythonFile, repository: ForeignRepository
) -> Iterator[ScanFact]:
    """Yield the files of a function that saves a value at a path, such as `torch.save`."""
    node = _path(call, place)
    patterns = [_resolved(node, file, repository)]
    if not patterns[0].strip("*/"):
        patterns = _at_callers(_file_part(node), file, repository) or patterns
    is_any = bool(_OF_ANY_VALUE.search(name))
    is_array = name.endswith("savez") or (name.endswith(".save") and is_any)
    saved = spelled(call.args[1 - place]) if is_any and len(call.args) > 1 else ""
    if is_any and name.endswith("savez"):
        saved = " ".join(keyword.arg or spelled(keyword.value) for keyword in call.keywords)
    for pattern in patterns:
        is_model_file = _MODEL.search(pattern) and not _NOT_MODELS.search(_last(pattern))
        is_log = re.match(r"\w*logs?\b", _last(pattern))
        if is_any and (is_log or not (is_model_file or _WEIGHTS.search(saved))):
            continue
        if name.endswith("savez") and pattern.strip("*/") and not re.search(r"\.\w{1,12}$", pattern):
            pattern += ".npz"
        if (is_array and pattern.endswith(".npy")) or not _OTHER_SUFFIX.search(pattern):
            yield _checkpoint(_last(pattern) or "*", pattern, call, file)


def _by_callback(call: ast.Call, tail: str, file: PythonFile) -> Iterator[ScanFact]:
    """Yield the files of Stable-Baselines3's callbacks."""
    words = {word.arg: word.value for word in call.keywords}
    if tail == "EvalCallback" and "best_model_save_path" in words:
        yield _checkpoint("best_model.zip", "best_model.zip", call, file)
    elif tail == "CheckpointCallback" and (len(call.args) > 1 or "save_path" in words):
        prefix = words.get("name_prefix", call.args[2] if len(call.args) > 2 else None)
        name = f"{text_pattern(prefix) or ('*' if prefix else 'rl_model')}_*_steps.zip"
        yield _checkpoint(name, name, call, file)


def _by_library(call: ast.Call, receiver: str, tail: str, file: PythonFile) -> str:
    """Return the pattern of a file whose name a library completes: of TensorFlow's savers, or of Flax."""
    if tail == "save_checkpoint":
        is_flax = "flax" in file.packages and any(word.arg in ("target", "prefix", "keep") for word in call.keywords)
        if not is_flax and not ("flax" in file.packages and len(call.args) > 2):
            return ""
        prefix = next((text_pattern(word.value) for word in call.keywords if word.arg == "prefix"), "checkpoint_")
        return f"{prefix or '*'}*".replace("**", "*")
    maker = ""
    for node in file.nodes if "Saver(" in file.text or "CheckpointManager(" in file.text else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and dotted(node.targets[0]) == receiver:
            maker = dotted(node.value.func).rpartition(".")[2]
    if maker == "CheckpointManager" and ("tensorflow" in file.packages or not call.args):
        return "ckpt-*"
    if maker == "Saver" and len(call.args) > 1:
        pattern = _resolved(call.args[1], file)
        is_counted = len(call.args) > 2 or any(word.arg == "global_step" for word in call.keywords)
        return f"{pattern}-*" if is_counted and pattern.strip("*/") else pattern
    return ""


def _saves_itself(repository: ForeignRepository, name: str) -> bool:
    """Return whether the project defines a method of this name that saves a file under a name of its own."""
    known: dict[str, bool] = repository.cache.setdefault("methods that save", {})
    if name not in known:
        known[name] = any(
            isinstance(call, ast.Call) and dotted(call.func) in _SAVERS and _has_own_name(call, file)
            for file in repository.programs
            if f"def {name}(" in file.text
            for function in file.functions
            if function.name == name
            for call in file.inside(function)
        )
    return known[name]


def _has_own_name(call: ast.Call, file: PythonFile) -> bool:
    return bool(_resolved(_path(call, _SAVERS[dotted(call.func)]), file).strip("*/"))


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
            pattern = _resolved(given, other, repository)
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


def _resolved(
    node: ast.expr | None, file: PythonFile, repository: ForeignRepository | None = None, depth: int = 0
) -> str:
    """Return a path's pattern; a variable or a call of the same file is looked up there, in its own function first."""
    pattern = text_pattern(node)
    if pattern.strip("*/") or node is None or depth > 3:
        return pattern
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return f"*/{_resolved(node.right, file, repository, depth + 1) or '*'}".replace("**", "*")
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "open":
        return _resolved(_path(node, 0), file, repository, depth + 1)
    if isinstance(node, ast.Call):
        return _returned(node, file, repository, depth)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return pattern
    for other in nodes_around(node, file):
        if isinstance(other, ast.Assign) and any(dotted(target) == dotted(node) for target in other.targets):
            text = _resolved(other.value, file, repository, depth + 1)
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
                    return _resolved(source, file, repository, depth + 1)
    if isinstance(node, ast.Attribute):
        return _of_attribute(node, file, repository)
    for statement in file.tree.body:
        if isinstance(statement, ast.Assign) and dotted(statement.targets[0]) == node.id:
            return text_pattern(statement.value)
    return ""


def _of_attribute(node: ast.Attribute, file: PythonFile, repository: ForeignRepository | None) -> str:
    """Return the path that another method of the same class gives to an attribute."""
    around = [other for other in file.classes if other.lineno <= node.lineno <= (other.end_lineno or 0)]
    for other in ast.walk(max(around, key=lambda found: found.lineno)) if around else ():
        if isinstance(other, ast.Assign) and any(dotted(target) == dotted(node) for target in other.targets):
            text = text_pattern(other.value)
            if text.strip("*/"):
                return text
    if not dotted(node).startswith("self.") or ".args." in dotted(node):
        return _default_of_option(node.attr, file, repository)
    return ""


def _default_of_option(name: str, file: PythonFile, repository: ForeignRepository | None) -> str:
    """Return the default of `--save_path`, from which `args.save_path` comes; of this file, else of another one."""
    others = repository.programs if repository else ()
    for source in (file, *(other for other in others if "add_argument(" in other.text and name in other.text)):
        for call in source.calls:
            flags = [str(literal(argument)).lstrip("-").replace("-", "_") for argument in call.args]
            if dotted(call.func).endswith("add_argument") and name in flags:
                for word in call.keywords:
                    default = literal(word.value)
                    if word.arg == "default" and isinstance(default, str) and _SUFFIX.search(default):
                        return default
    return ""


def _returned(call: ast.Call, file: PythonFile, repository: ForeignRepository | None, depth: int) -> str:
    name = dotted(call.func).rpartition(".")[2]
    for function in file.functions:
        if function.name == name:
            for node in file.inside(function):
                if isinstance(node, ast.Return):
                    return _resolved(node.value, file, repository, depth + 1)
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
