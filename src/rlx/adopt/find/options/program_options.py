"""Finds the config system of a program and its options: their flags, defaults, types and lines.

Systems: Hydra, tyro, argparse, optparse, click, typer, Fire, absl flags, ml_collections, gin, sacred, docopt,
jsonargparse, Tap, OmegaConf, dataclasses (pyrallis, draccus, simple-parsing, HfArgumentParser), YAML and JSON files
that a program names, and constants.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlx.adopt.find.imported_files import imported_files
from rlx.adopt.find.options.class_options import DATACLASS_PARSERS, dataclass_options, tyro_options
from rlx.adopt.find.options.function_options import (
    fire_options,
    is_tap,
    jsonargparse_options,
    sacred_options,
    tap_options,
    typer_options,
)
from rlx.adopt.find.options.hydra_options import hydra_options, hydra_settings
from rlx.adopt.find.options.option import ProgramOption
from rlx.adopt.find.options.plain_settings import config_module_options, constants, file_settings
from rlx.adopt.find.options.seed_calls import is_seed, seeded_keys
from rlx.adopt.find.text_patterns import text_pattern
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal, spelled

_MARKS = {
    "tyro": ("tyro.cli", "tyro.extras.overridable_config_cli", "tyro.extras.subcommand_cli_from_dict"),
    "dataclass": (*DATACLASS_PARSERS, "HfArgumentParser"),
    "typer": ("typer.run", "typer.Typer"),
    "fire": ("fire.Fire", "Fire"),
    "sacred": ("sacred.Experiment", "Experiment"),
    "ml_collections": ("config_flags.DEFINE_",),
    "jsonargparse": ("CLI", "auto_cli", "LightningCLI"),
    "argparse": ("ArgumentParser", "ArgParser", "gymutil.parse_arguments"),
    "optparse": ("OptionParser",),
    "click": ("click.command", "click.option"),
    "absl": ("DEFINE_",),
    "gin": ("gin.parse_config_",),
    "docopt": ("docopt",),
    "omegaconf": ("OmegaConf.from_cli",),
}
"""The calls by which a program uses a config system; a mark that ends with `_` is the start of a name."""
_PACKAGES = {"typer": "typer", "fire": "fire", "sacred": "sacred", "jsonargparse": "", "absl": ""}
"""Packages that a file must import, because others have calls of the same name."""
_FILE_OPTION = re.compile(
    r"(\w+[-_])?(config|cfg|conf|yaml|hparams|params|settings)([-_](file|path|name|yaml))?|\w+_yaml", re.I
)
"""Options that name a file of settings."""
_CONFIG_FOLDER = re.compile(r"(^|/)(configs?|cfgs?|conf|hparams|params|settings|experiments)/", re.I)
_FIXED = ("constants", "yaml", "json")
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
    in_files: tuple[ProgramOption, ...] = ()
    """Settings of the config files that the program reads next to its options; no flag changes them."""
    others: tuple[tuple[str, str, int], ...] = ()
    """Further config systems of the same file, with their places."""

    @property
    def is_fixed(self) -> bool:
        """Return whether no command line changes the settings."""
        return self.system in _FIXED


def options_of_program(repository: ForeignRepository, program: PythonFile) -> ProgramOptions:
    """Return the options of a program: of its own file, and of the project files that it imports for them."""
    chain = [program, *imported_files(repository, program, depth=3)]
    found = _options(repository, chain)
    seeded = seeded_keys(chain)

    def marked(options: Sequence[ProgramOption]) -> tuple[ProgramOption, ...]:
        return tuple(
            replace(option, is_seed=is_seed(option.key) or option.key.replace("-", "_") in seeded) for option in options
        )

    return replace(found, options=marked(found.options), in_files=marked(found.in_files))


def _options(repository: ForeignRepository, chain: Sequence[PythonFile]) -> ProgramOptions:
    for file in chain[:1]:
        hydra = _hydra(repository, file)
        if hydra is not None:
            return hydra
    for file in chain:
        systems = {system: place for system in _READERS if (place := _uses(file, system))}
        if systems:
            return _of_systems(repository, chain, file, systems)
    return _without_a_command_line(repository, chain)


def _of_systems(
    repository: ForeignRepository, chain: Sequence[PythonFile], file: PythonFile, systems: dict[str, int]
) -> ProgramOptions:
    """Return the options of the config systems that one file uses; the first one is the program's own."""
    found: dict[str, ProgramOption] = {}
    for system in systems:
        for option in _READERS[system](repository, chain):
            found.setdefault(option.key, option)
    options = tuple(found.values())[:MOST_OPTIONS]
    takes_file = any(is_yaml(option.default) or _FILE_OPTION.fullmatch(option.key) for option in options)
    yaml = _yaml_load(chain if takes_file else chain[:1])
    in_files = tuple(_settings(repository, options)) if yaml is not None and takes_file else ()
    (system, place), *others = systems.items()
    return ProgramOptions(
        system, file.path, place, options, yaml=yaml, in_files=in_files,
        others=tuple((other, file.path, line) for other, line in others),
    )  # fmt: skip


def _settings(repository: ForeignRepository, options: Sequence[ProgramOption]) -> Iterator[ProgramOption]:
    """Yield the settings of the YAML file that an option names by default, else of the first one among configs."""
    named = [str(option.default).removeprefix("./") for option in options if is_yaml(option.default)]
    known = set(repository.files)
    paths = [path for path in named if path in known]
    paths += [path for path in repository.files if is_yaml(path) and _CONFIG_FOLDER.search(path)][:1]
    if paths:
        yield from file_settings(repository, paths[0])


def _without_a_command_line(repository: ForeignRepository, chain: Sequence[PythonFile]) -> ProgramOptions:
    program = chain[0]
    loads_yaml = _yaml_load(chain[:1])
    if loads_yaml is not None:
        return ProgramOptions("yaml", *loads_yaml, tuple(_named_files(repository, program, (".yaml", ".yml"))))
    options = tuple(_named_files(repository, program, (".json",)))
    loads_json = next((call.lineno for call in program.calls if dotted(call.func) in ("json.load", "json.loads")), 0)
    if options and loads_json:
        return ProgramOptions("json", program.path, loads_json, options)
    options = tuple(constants(program, chain))[:MOST_OPTIONS]
    if options:
        return ProgramOptions("constants", options[0].file, options[0].line, options)
    return ProgramOptions(file=program.path)


def _named_files(
    repository: ForeignRepository, program: PythonFile, suffixes: tuple[str, ...]
) -> Iterator[ProgramOption]:
    """Yield the settings of the files that a program names by a text."""
    names = set(repository.files)
    folder = program.path.rpartition("/")[0]
    for node in program.nodes:
        text = text_pattern(node) if isinstance(node, (ast.Constant, ast.Call, ast.BinOp)) else ""
        if text.endswith(suffixes) and "*" not in text:
            path = text.removeprefix("./")
            found = next((name for name in (path, f"{folder}/{path}") if name in names), None)
            if found is not None:
                yield from file_settings(repository, found)


def _uses(file: PythonFile, system: str) -> int:
    """Return the line at which a file uses a config system; 0 if it does not."""
    package = _PACKAGES.get(system, "")
    if package and package not in file.packages:
        return 0
    if system == "tap":
        return next((node.lineno for node in file.classes if is_tap(node)), 0)
    for call in file.calls:
        name = dotted(call.func)
        for mark in _MARKS[system]:
            if name == mark or name.endswith(f".{mark}") or (mark[-1] == "_" and _starts_with(name, mark)):
                return call.lineno
    return 0


def _starts_with(name: str, mark: str) -> bool:
    """Return whether a call's name starts with a mark, also after the name of a module: `app.flags.DEFINE_float`."""
    return (name.startswith(mark) or f".{mark}" in name) and (mark != "DEFINE_" or "DEFINE_config" not in name)


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
            if (
                kind.startswith("DEFINE_")
                and "config" not in kind
                and call.args
                and isinstance(name := literal(call.args[0]), str)
            ):
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


def _optparse(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    for file in chain:
        for call in file.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "add_option":
                option = _argument(call, file.path)
                if option is not None:
                    yield option


def _omegaconf(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the settings of the YAML files that a program merges with its command line, as `key=`."""
    for option in _named_files(repository, chain[0], (".yaml", ".yml")):
        yield replace(option, flag=f"{option.key}=")


_READERS = {
    "tyro": tyro_options,
    "dataclass": dataclass_options,
    "tap": tap_options,
    "typer": typer_options,
    "fire": fire_options,
    "sacred": sacred_options,
    "ml_collections": config_module_options,
    "jsonargparse": jsonargparse_options,
    "argparse": _argparse,
    "optparse": _optparse,
    "click": _click,
    "absl": _absl,
    "gin": _gin,
    "docopt": _docopt,
    "omegaconf": _omegaconf,
}
"""The readers of the options, by system: the first one that a file uses is its own."""
