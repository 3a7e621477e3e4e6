"""Finds the programs of a repository that train and evaluate, and the words that start them."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import PurePosixPath

from rlx.adopt.find.imported_files import imported_files
from rlx.adopt.find.text_patterns import is_placeholder
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted
from rlx.adopt.scan_fact import Confidence, ScanFact

_TRAIN = re.compile(r"(^|_)(train|training|trainer_main|learn|finetune|pretrain)(_|$|\d)", re.I)
_TRAIN_VERB = re.compile(r"^(train|training|learn|finetune|pretrain)(_|$|\d)|_(train|training|learn)\d*$", re.I)
_EVAL = re.compile(
    r"(^|_)(eval|evaluate|evaluation|play|enjoy|replay|rollout|rollouts|visualize|demo_policy|benchmark_policy)(_|$|\d)",
    re.I,
)
_TEST = re.compile(r"^(test|tests|testing|inference|infer)$|^(test|run|infer)_(policy|agent|model|trained)\w*$", re.I)
_LOADS = re.compile(r"(^|_)(load|restore|from_pretrained|load_from_checkpoint)(_|$)")
_MAIN = re.compile(r"^_*(main|run|runner|start|experiment|run_\w+|main_\w+|launch)_*$", re.I)
_STARTS = ("train", "update", "learn", "fit", "optimize", "train_step", "update_parameters")
_RUNS = ("run", "run_train", "run_training", "start", "main", "train_loop", "run_experiment")
_NOT_PROGRAMS = re.compile(
    r"(^|_)(utils?|config|cfg|args|callbacks?|hooks?|export|plot|convert|sweep|tune|optimize|dataset|upload|download|launch|tuner|record|logger|wrappers?)(_|$)",
    re.I,
)
_LEARNS = (".learn", ".backward", ".fit", ".train_epoch", ".learn_one_epoch", ".run_train", ".train")
_GRADIENTS = ("value_and_grad", "grad")
_README = re.compile(r"^readme(\.\w+)?$", re.I)
_SEPARATORS = re.compile(r"&&|;|\|\|?")
MOST_ENTRIES = 60


def entry_points(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the programs that train and that evaluate; the value is the runnable argv."""
    scripts = dict(_console_scripts(repository))
    documented = _documented(repository)
    found: list[ScanFact] = []
    for file in repository.programs:
        if not _is_program(file, scripts):
            continue
        for kind, confidence in _kinds(repository, file):
            words = argv(repository, file)
            readme = documented.get(file.path)
            detail = ""
            if readme:
                detail = shlex.join(readme)
            line = file.main_line or _main_function_line(file)
            found.append(ScanFact(kind, file.path, file.path, line, confidence, value=words, detail=detail))
    for kind in ("train", "eval"):
        programs = [fact for fact in found if fact.kind == kind]
        wrapped = {target for fact in programs for target in _wraps(repository, fact.file)}
        kept = [fact for fact in programs if fact.file not in wrapped or fact.file.count("/") == 0]
        yield from (kept or programs)[:MOST_ENTRIES]


def _wraps(repository: ForeignRepository, path: str) -> set[str]:
    """Return the programs of the same name that a short program only calls."""
    file = repository.by_path(path)
    if file is None or len(file.text.splitlines()) > 30:
        return set()
    return {target.path for target in imported_files(repository, file, depth=1) if target.stem == file.stem}


def _is_program(file: PythonFile, scripts: dict[str, str]) -> bool:
    if _NOT_PROGRAMS.search(file.stem):
        return False
    return bool(file.main_line) or file.path in scripts or _runs_at_top(file)


def _runs_at_top(file: PythonFile) -> bool:
    """Return whether a file without a main guard is a script: named like one, outside packages, with a loop or call."""
    if not (_TRAIN.search(file.stem) or _EVAL.search(file.stem) or _MAIN.match(file.stem)):
        return False
    if any(isinstance(node, (ast.For, ast.While, ast.With)) for node in file.tree.body):
        return True
    calls = [node.value for node in file.tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    names = {dotted(call.func).rpartition(".")[2] for call in calls if dotted(call.func).count(".") <= 1}
    return bool(names & {"main", "train", "learn", "fit", "run", "evaluate", "play"})


def _kinds(repository: ForeignRepository, file: PythonFile) -> Iterator[tuple[str, Confidence]]:
    """Yield whether a program trains or evaluates: by its name and by the calls in it."""
    is_named_train = bool(_TRAIN.search(file.stem))
    is_named_eval = bool(_EVAL.search(file.stem)) and not is_named_train
    if _is_test_of_policy(file):
        is_named_eval = True
    is_verb = bool(_TRAIN_VERB.search(file.stem)) and not _EVAL.search(file.stem)
    learns = _learns(file)
    if is_named_train and (learns or _reaches_learning(repository, file)):
        yield "train", "high"
    elif is_verb or (not is_named_eval and _trains(repository, file)):
        yield "train", "medium"
    if is_named_eval:
        confidence: Confidence = "high"
        if re.search("visual|demo|replay", file.stem, re.I):
            confidence = "low"
        yield "eval", confidence


def _trains(repository: ForeignRepository, file: PythonFile) -> bool:
    """Return whether a program learns by itself, or is a main program that asks an imported learner to."""
    if _learns(file):
        return True
    return bool(_MAIN.match(file.stem)) and _calls_training(file) and _reaches_learning(repository, file)


def _is_test_of_policy(file: PythonFile) -> bool:
    """Return whether a program named like a test plays a stored policy: it loads something and steps an environment."""
    if not _TEST.search(file.stem):
        return False
    names = {call.func.attr for call in file.calls if isinstance(call.func, ast.Attribute)}
    return "step" in names and any(_LOADS.search(name) for name in names)


def _calls_training(file: PythonFile) -> bool:
    """Return whether a program asks an object to train: `agent.update(…)`, or `Runner(…)` and then `runner.run(…)`."""
    names = {call.func.attr for call in file.calls if isinstance(call.func, ast.Attribute)}
    if names & set(_STARTS):
        return True
    if not any(dotted(call.func).rpartition(".")[2][:1].isupper() for call in file.calls):
        return False
    return bool(names & set(_RUNS)) or ("step" in names and _keeps_results(names))


def _keeps_results(names: set[str]) -> bool:
    """Return whether a program that steps an environment logs or saves; one that only loads plays a policy."""
    keeps = names & {"add_scalar", "save", "save_model", "save_checkpoint", "log", "log_metrics", "record"}
    return bool(keeps) or not any(_LOADS.search(name) for name in names)


def _learns(file: PythonFile) -> bool:
    names = {f".{call.func.attr}" for call in file.calls if isinstance(call.func, ast.Attribute)}
    receivers = {dotted(call.func) for call in file.calls}
    if ".learn" in names or ".backward" in names:
        return True
    if any(name.rpartition(".")[2] in _GRADIENTS and name.startswith("jax") for name in receivers):
        return ".step" in names or ".apply_gradients" in names
    return bool({".train", ".fit"} & names) and ("ray" in file.packages or "sample_factory" in file.packages)


def _reaches_learning(repository: ForeignRepository, file: PythonFile) -> bool:
    return any(_learns(target) for target in imported_files(repository, file, depth=2)[:40])


def _main_function_line(file: PythonFile) -> int:
    for function in file.functions:
        if function.name in ("main", "train", "run", "eval", "play"):
            return function.lineno
    return 1


def _console_scripts(repository: ForeignRepository) -> Iterator[tuple[str, str]]:
    """Yield the files behind `[project.scripts]`, with the command's name."""
    for path in repository.files:
        if PurePosixPath(path).name != "pyproject.toml" or path.count("/") > 3:
            continue
        try:
            data = tomllib.loads(repository.text(path))
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        project = data.get("project")
        if not isinstance(project, dict):
            continue
        for name, target in (project.get("scripts") or {}).items():
            module = str(target).partition(":")[0].replace(".", "/")
            for file in repository.files:
                if file.endswith((f"{module}.py", f"{module}/__main__.py")):
                    yield file, name


def argv(repository: ForeignRepository, file: PythonFile) -> list[str]:
    """Return the words that start a program: by its path, or as a module if it imports from the folder above."""
    top = package_root(repository, file.path)
    is_relative = any(name.startswith(".") for name in file.imports)
    if top is not None:
        module = file.path.removeprefix(f"{top}/".lstrip("/")).removesuffix(".py").replace("/", ".")
        if is_relative or module.partition(".")[0] in file.packages:
            return ["python", "-m", module]
    parts = file.path.removesuffix(".py").split("/")
    tops = {name.partition("/")[0].removesuffix(".py") for name in repository.modules}
    here = {PurePosixPath(name).stem for name in repository.modules if name.split("/")[:-1] == parts[:-1]}
    uses_top = any(name in tops and name not in here for name in file.packages)
    if len(parts) > 1 and (is_relative or uses_top) and all(part.isidentifier() for part in parts):
        return ["python", "-m", ".".join(parts)]
    return ["python", file.path]


def package_root(repository: ForeignRepository, path: str) -> str | None:
    """Return the folder above the package that a file belongs to; None if it is not part of a package."""
    names = set(repository.modules)
    folder = path.rpartition("/")[0]
    if f"{folder}/__init__.py" not in names:
        return None
    while f"{folder}/__init__.py" in names:
        folder = folder.rpartition("/")[0]
    return folder


def _documented(repository: ForeignRepository) -> dict[str, list[str]]:
    """Return the first documented command of each program, as words: without placeholders, if there is such a one."""
    commands: dict[str, list[str]] = {}
    pages = [path for path in repository.files if _README.match(PurePosixPath(path).name) and path.count("/") < 3]
    pages += [path for path in repository.files if path.endswith((".md", ".rst")) and path.startswith("docs/")][:60]
    names = set(repository.modules)
    for page in pages:
        for line in repository.text(page).replace("\\\n", " ").splitlines():
            if not re.search(r"python|train|eval|play|torchrun", line) or len(line) > 1000:
                continue
            for command in _SEPARATORS.split(line.strip().strip("`").removeprefix("$").strip()):
                words = _words(command)
                file = _named_file(words, names)
                if file is not None and (file not in commands or _is_template(commands[file])):
                    commands[file] = commands.get(file, words) if _is_template(words) else words
    return commands


def _is_template(words: list[str]) -> bool:
    return any(is_placeholder(part) for word in words for part in word.split("="))


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return []


def _named_file(words: list[str], names: set[str]) -> str | None:
    for index, word in enumerate(words):
        if word.endswith(".py"):
            return next((name for name in names if name == word.removeprefix("./") or name.endswith(f"/{word}")), None)
        if word == "-m" and index + 1 < len(words):
            tail = words[index + 1].replace(".", "/")
            return next((name for name in names if name.endswith((f"{tail}.py", f"{tail}/__main__.py"))), None)
    return None
