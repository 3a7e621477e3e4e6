"""Finds the config system of a program and its options: their flags, defaults, types and lines.

Systems: Hydra, tyro, argparse, click, absl flags, gin, docopt, dataclasses (pyrallis, draccus, simple-parsing,
HfArgumentParser), YAML files that a program names, and constants of a module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rlx.adopt.find.class_options import DATACLASS_PARSERS, dataclass_options, tyro_options
from rlx.adopt.find.hydra_options import hydra_options, hydra_settings
from rlx.adopt.find.imported_files import imported_files
from rlx.adopt.find.option import ProgramOption
from rlx.adopt.find.text_patterns import text_pattern
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal, spelled

SYSTEMS = ("hydra", "tyro", "dataclass", "argparse", "click", "absl", "gin", "docopt")
MOST_OPTIONS = 400


@dataclass(frozen=True)
class ProgramOptions:
    """The config system of a program, its place, and the options that its source declares."""

    system: str = "none"
    file: str = ""
    line: int = 1
    options: tuple[ProgramOption, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    """Hydra's `config_path` and `config_name`."""
    yaml: tuple[str, int] | None = None
    """The file and the line that load a YAML file of settings, next to the options."""


def options_of_program(repository: ForeignRepository, program: PythonFile) -> ProgramOptions:
    """Return the options of a program: of its own file, and of the project files that it imports for them."""
    chain = [program, *imported_files(repository, program, depth=3)]
    for file in chain[:1]:
        hydra = _hydra(repository, file)
        if hydra is not None:
            return hydra
    for system in SYSTEMS[1:]:
        for file in chain:
            place = _uses(file, system)
            if place:
                options = tuple(_READERS[system](repository, chain))[:MOST_OPTIONS]
                files = chain if any(is_yaml(option.default) for option in options) else chain[:1]
                yaml = _yaml_load(files)
                return ProgramOptions(system, file.path, place, options, yaml=yaml)
    loads_yaml = _yaml_load(chain[:1])
    if loads_yaml is not None:
        return ProgramOptions("yaml", *loads_yaml)
    constants = tuple(_constants(program))
    if constants:
        return ProgramOptions("constants", program.path, constants[0].line, constants)
    return ProgramOptions(file=program.path)


def _uses(file: PythonFile, system: str) -> int:
    """Return the line at which a file uses a config system; 0 if it does not."""
    marks = {
        "tyro": ("tyro.cli", "tyro.extras.overridable_config_cli", "tyro.extras.subcommand_cli_from_dict"),
        "dataclass": (*DATACLASS_PARSERS, "HfArgumentParser"),
        "argparse": ("ArgumentParser", "gymutil.parse_arguments"),
        "click": ("click.command", "click.option"),
        "absl": ("flags.DEFINE_",),
        "gin": ("gin.parse_config",),
        "docopt": ("docopt",),
    }[system]
    for call in file.calls:
        name = dotted(call.func)
        if any(name == mark or name.endswith(f".{mark}") or name.startswith(mark) for mark in marks):
            return call.lineno
    return 0


_YAML_LOADS = (
    "yaml.safe_load", "yaml.load", "yaml.full_load", "yaml.unsafe_load", "yaml.load_all", "yaml.safe_load_all",
    "OmegaConf.load",
)  # fmt: skip


def is_yaml(value: object) -> bool:
    """Return whether a default names a YAML file."""
    return isinstance(value, str) and value.endswith((".yaml", ".yml"))


def _yaml_load(chain: Sequence[PythonFile]) -> tuple[str, int] | None:
    """Return the place that reads a YAML file: by PyYAML, ruamel or OmegaConf; None if nothing does."""
    for file in chain:
        for call in file.calls:
            name = dotted(call.func)
            if name in _YAML_LOADS or ("ruamel" in file.packages and name.endswith((".load", ".load_all"))):
                return file.path, call.lineno
    return None


def _hydra(repository: ForeignRepository, file: PythonFile) -> ProgramOptions | None:
    for function in file.functions:
        for decorator in function.decorator_list:
            call = decorator
            name = dotted(call.func) if isinstance(call, ast.Call) else dotted(call)
            if name == "hydra_task_config":
                return ProgramOptions("hydra", file.path, decorator.lineno, tuple(_argparse(repository, [file])))
            if name in ("hydra.main", "main") and isinstance(call, ast.Call) and "hydra" in file.packages:
                settings = hydra_settings(call)
                options = tuple(hydra_options(repository, file, settings))
                return ProgramOptions("hydra", file.path, decorator.lineno, options, settings)
    return None


def _argparse(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    seen: set[str] = set()
    for file in chain:
        for call in file.calls:
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
                continue
            option = _argument(call, file.path)
            if option is not None and option.key not in seen:
                seen.add(option.key)
                yield option
        for option in _argument_tables(file):
            if option.key not in seen:
                seen.add(option.key)
                yield option


def _argument(call: ast.Call, path: str) -> ProgramOption | None:
    names = [value for arg in call.args if isinstance(value := literal(arg), str)]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    long = next((name for name in names if name.startswith("--")), None)
    if not names:
        return None
    flag = long or names[0]
    action = literal(keywords.get("action"))
    default = literal(keywords.get("default"))
    path_text = text_pattern(keywords.get("default"))
    if default is None and is_yaml(path_text) and "*" not in path_text:
        default = path_text
    return ProgramOption(
        key=flag.lstrip("-"),
        flag=flag,
        file=path,
        line=call.lineno,
        default=default,
        type=spelled(keywords.get("type")),
        is_required=literal(keywords.get("required")) is True or not flag.startswith("-"),
        is_switch=isinstance(action, str) and action.startswith(("store_true", "store_false", "store_const")),
        is_positional=not flag.startswith("-"),
    )


def _argument_tables(file: PythonFile) -> Iterator[ProgramOption]:
    """Yield options that are written as dicts with `name`, `default` and `type`, as in Isaac Gym."""
    for node in file.nodes:
        if not isinstance(node, ast.Dict):
            continue
        entries = {literal(key): value for key, value in zip(node.keys, node.values, strict=True) if key is not None}
        name = literal(entries.get("name"))
        if (
            isinstance(name, str)
            and name.startswith("--")
            and {"type", "action", "default", "help"} & set(map(str, entries))
        ):
            yield ProgramOption(
                name[2:], name, file.path, node.lineno, literal(entries.get("default")), spelled(entries.get("type")),
                is_switch="action" in entries,
            )  # fmt: skip


def _click(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    for call in chain[0].calls:
        kind = dotted(call.func)
        names = [value for arg in call.args if isinstance(value := literal(arg), str)]
        keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        if kind == "click.option" and names:
            flag = next((name for name in names if name.startswith("--")), names[0]).partition("/")[0]
            yield ProgramOption(
                flag.lstrip("-"), flag, chain[0].path, call.lineno, literal(keywords.get("default")),
                spelled(keywords.get("type")), is_required=literal(keywords.get("required")) is True,
                is_switch=literal(keywords.get("is_flag")) is True,
            )  # fmt: skip
        elif kind == "click.argument" and names:
            yield ProgramOption(names[0], names[0], chain[0].path, call.lineno, is_required=True, is_positional=True)


def _absl(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    for file in chain:
        for call in file.calls:
            kind = dotted(call.func).rpartition(".")[2]
            if kind.startswith("DEFINE_") and call.args and isinstance(name := literal(call.args[0]), str):
                default = literal(call.args[1]) if len(call.args) > 1 else None
                yield ProgramOption(name, f"--{name}", file.path, call.lineno, default, kind.removeprefix("DEFINE_"))


def _gin(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    for path in repository.files:
        if path.endswith(".gin"):
            for number, line in enumerate(repository.text(path).splitlines(), start=1):
                match = re.match(r"([\w./]+)\s*=\s*(.+)", line)
                if match:
                    yield ProgramOption(match[1], match[1], path, number, _literal_text(match[2]))


_USAGE = re.compile(r"^\s*usage:.*", re.I | re.M)
_DOCOPT_LINE = re.compile(r"^\s*(?:-\w(?:[ =]<?[\w-]+>?)?,?\s+)?(--[\w-]+)(?:[ =](<[^>]+>|[A-Z][A-Z_]*))?(?:\s|$)")
_DOCOPT_DEFAULT = re.compile(r"\[default:\s*([^\]]*)\]", re.I)


def _docopt(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the options of docopt's usage text: a text of the program with a line `Usage:`."""
    file = next(file for file in chain if _uses(file, "docopt"))
    for node in file.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not _USAGE.search(node.value):
            continue
        for number, line in enumerate(node.value.splitlines()):
            match = _DOCOPT_LINE.match(line)
            if match is None or match[1] == "--help":
                continue
            default = _DOCOPT_DEFAULT.search(line)
            takes_value = match[2] is not None
            value = _literal_text(default[1]) if default and takes_value else None
            flag = f"{match[1]}=" if takes_value else match[1]
            yield ProgramOption(
                match[1][2:], flag, file.path, node.lineno + number, value, is_switch=not takes_value,
            )  # fmt: skip
        return


def _literal_text(text: str) -> object:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text.strip()


def _constants(program: PythonFile) -> Iterator[ProgramOption]:
    """Yield the constants of a module that look like settings."""
    for node in program.tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            value = literal(node.value)
            if isinstance(value, (int, float, str, bool)) and name.upper() == name and not name.startswith("_"):
                yield ProgramOption(name, name, program.path, node.lineno, value, type(value).__name__)


_READERS = {
    "tyro": tyro_options,
    "dataclass": dataclass_options,
    "argparse": _argparse,
    "click": _click,
    "absl": _absl,
    "gin": _gin,
    "docopt": _docopt,
}
