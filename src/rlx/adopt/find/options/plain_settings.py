"""Reads settings that no command line changes: constants, config classes, config modules, YAML and JSON files."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from rlx.adopt.find.options.option import ProgramOption
from rlx.adopt.find.text_patterns import text_pattern
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal

_SETTING = re.compile(
    r"(^|_)(seeds?|lr|learning_rate|alpha|gamma|discount|tau|lambda|lam|eps\w*|epsilon\w*|batch(_?size)?|\w*episodes?|\w*steps?|\w*timesteps?|"
    r"\w*iterations?|\w*iters|\w*epochs?|hidden\w*|capacity|buffer_size|memory_size|replay_size|entropy_coef|clip\w*|env_name|env_id)$",
    re.I,
)
"""Names of the variables that hold a training's settings."""
_COUNTED = re.compile(
    r"^(i|t|ep|step|steps|episode|episodes|epoch|total_steps?|\w*_count|current_\w+|global_step)$", re.I
)
_CLASS = re.compile(r"(Config|Cfg|Args|Arguments|Params|Parameters|Settings|Options|Hyper\w*|Constants)$", re.I)
_DICT = re.compile(r"^(\w*config|cfg|\w*params|\w*parameters|settings|args|\w*hyper\w*|options|opt)$", re.I)
_DEEPEST = 6
LONGEST_NAME = 80
MOST_SETTINGS = 400


def constants(program: PythonFile, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the settings that a program has in its source: of the module, of config classes, of functions."""
    found = list(_upper(program))
    for file in chain:
        found += _of_classes(file, program)
    found += _of_body(program.tree.body, program.path)
    for function in program.functions:
        found += _of_body(function.body, program.path)
    seen: set[str] = set()
    for option in found:
        if option.key not in seen:
            seen.add(option.key)
            yield option


def _upper(program: PythonFile) -> Iterator[ProgramOption]:
    for node, name, value in _assigned(program.tree.body):
        is_plain = isinstance(value, (int, float, str, bool))
        if is_plain and name.upper() == name and not name.startswith("_"):
            yield _constant(name, value, program.path, node.lineno)


def _of_classes(file: PythonFile, program: PythonFile) -> Iterator[ProgramOption]:
    """Yield the numbers and texts of config classes that the program names."""
    for node in file.classes:
        if _CLASS.search(node.name) and re.search(rf"\b{node.name}\b", program.text):
            for statement, name, value in _assigned(node.body):
                if isinstance(value, (int, float, str, bool)):
                    yield _constant(f"{node.name}.{name}", value, file.path, statement.lineno)


def _of_body(body: Sequence[ast.stmt], path: str) -> Iterator[ProgramOption]:
    """Yield the variables that are named like settings, and the entries of dicts that are named like a config."""
    for node, name, value in _assigned(body):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if (
            is_number
            and len(name) < LONGEST_NAME
            and _SETTING.search(name)
            and not (_COUNTED.match(name) and value in (0, 1))
        ):
            yield _constant(name, value, path, node.lineno)
        elif isinstance(value, dict) and _DICT.match(name):
            for key, entry in value.items():
                if isinstance(key, str) and isinstance(entry, (int, float, str, bool)):
                    yield _constant(f"{name}.{key}", entry, path, node.lineno)


def _assigned(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, str, object]]:
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node, node.targets[0].id, literal(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node, node.target.id, literal(node.value)


def _constant(key: str, value: object, path: str, line: int) -> ProgramOption:
    return ProgramOption(key, key, path, line, value, type(value).__name__)


def file_settings(repository: ForeignRepository, path: str) -> Iterator[ProgramOption]:
    """Yield the numbers and texts of a YAML or JSON file with their lines; nested keys are joined by points."""
    text = repository.text(path)
    found = _json_settings(text, path) if path.endswith(".json") else _yaml_settings(text, path)
    yield from islice(found, MOST_SETTINGS)


def _yaml_settings(text: str, path: str) -> Iterator[ProgramOption]:
    above: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition(" #")[0].rstrip()
        name, colon, value = content.strip().partition(":")
        if not colon or not re.fullmatch(r"[\w.-]+", name):
            continue
        indent = len(content) - len(content.lstrip())
        above = [(depth, key) for depth, key in above if depth < indent]
        if value.strip():
            key = ".".join([*(key for _, key in above), name])
            yield ProgramOption(key, key, path, number, _value(value.strip()))
        else:
            above.append((indent, name))


def _json_settings(text: str, path: str) -> Iterator[ProgramOption]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return
    for key, value in islice(_leaves(data, "", _DEEPEST), MOST_SETTINGS):
        place = text.find(f'"{key.rpartition(".")[2]}"')
        line = text.count("\n", 0, max(place, 0)) + 1
        yield ProgramOption(key, key, path, line, value, type(value).__name__)


def _leaves(data: object, prefix: str, depth: int) -> Iterator[tuple[str, object]]:
    if not isinstance(data, dict) or depth == 0:
        return
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.", depth - 1)
        elif isinstance(value, (int, float, str, bool)):
            yield f"{prefix}{key}", value


def _value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text.strip("\"'")


def config_module_options(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the keys of the config modules that `config_flags.DEFINE_config_file` names, as flags `--config.key`."""
    for file in chain:
        for call in file.calls:
            tail = dotted(call.func).rpartition(".")[2]
            name = literal(next(iter(call.args), None))
            if tail not in ("DEFINE_config_file", "DEFINE_config_dict") or not isinstance(name, str):
                continue
            path = text_pattern(call.args[1]) if len(call.args) > 1 else ""
            yield ProgramOption(name, f"--{name}", file.path, call.lineno, path or None)
            wanted = path.partition(":")[0].lstrip("*./")
            module = next((other for other in repository.modules if wanted and other.endswith(wanted)), None)
            target = file if tail == "DEFINE_config_dict" else repository.by_path(module or "")
            if target is not None:
                yield from _config_dict(target, name)


def _config_dict(file: PythonFile, flag: str) -> Iterator[ProgramOption]:
    """Yield the keys of an ml_collections config: by assignments to its attributes, and by keywords and entries."""
    for node in file.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            key = dotted(node.targets[0]).partition(".")[2]
            if not isinstance(node.value, ast.Call):
                yield _config_flag(flag, key, literal(node.value), file.path, node.lineno)
        elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("create", "dict", "ConfigDict"):
            for keyword in node.keywords:
                if keyword.arg and not isinstance(keyword.value, ast.Call):
                    yield _config_flag(flag, keyword.arg, literal(keyword.value), file.path, keyword.value.lineno)
            for argument in node.args[:1]:
                if isinstance(argument, ast.Dict):
                    for entry, value in zip(argument.keys, argument.values, strict=True):
                        if isinstance(name := literal(entry), str):
                            yield _config_flag(flag, name, literal(value), file.path, value.lineno)


def _config_flag(flag: str, key: str, value: object, path: str, line: int) -> ProgramOption:
    return ProgramOption(f"{flag}.{key}", f"--{flag}.{key}", path, line, value, type(value).__name__)
