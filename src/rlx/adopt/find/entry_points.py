"""Finds the programs of a repository that train and evaluate, and the words that start them."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

from rlx.adopt.find.documented_commands import console_scripts, documented_commands
from rlx.adopt.find.imported_files import imported_files, module_index, resolve
from rlx.adopt.find.learning_calls import calls_a_gradient_step, learns, reaches_learning, starts_a_trainer
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
_STARTED = re.compile(rf"{_TRAIN_VERB.pattern}|^run_(experiment|training|train|learner|algo)\w*$", re.I)
"""Names of functions of the project that train."""
_TRAINS = ("train", "learn", "fit", "run_training", "train_model", "train_agent", "train_loop")
_EVALUATES = {"evaluate_policy", "evaluate", "evaluate_agent", "rollout"}
_RUNS = ("run", "run_train", "run_training", "start", "main", "train_loop", "run_experiment")
_NOT_PROGRAMS = re.compile(
    r"(^|_)(utils?|config|cfg|args|callbacks?|hooks?|export|plot|convert|sweep|tune|optimize|dataset|upload|download|launch|tuner|record|logger|wrappers?)(_|$)",
    re.I,
)
MOST_ENTRIES = 60


def entry_points(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the programs that train and that evaluate; the value is the runnable argv."""
    scripts = dict(console_scripts(repository))
    documented = documented_commands(repository)
    found: list[ScanFact] = []
    for file in repository.programs:
        if not _is_program(file, {*scripts, *documented}):
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


def _is_program(file: PythonFile, started: set[str]) -> bool:
    if _NOT_PROGRAMS.search(file.stem):
        return False
    return bool(file.main_line) or file.path in started or "automain" in file.text or _runs_at_top(file)


def _runs_at_top(file: PythonFile) -> bool:
    """Return whether a file without a main guard is a script: named like one, outside packages, with a loop or call."""
    has_loop = any(isinstance(node, (ast.For, ast.While, ast.With)) for node in file.tree.body)
    named = (_TRAIN.search, _EVAL.search, _MAIN.match, _TEST.search)
    if not any(fits(file.stem) for fits in named):
        names = {call.func.attr for call in file.calls if isinstance(call.func, ast.Attribute)}
        steps = has_loop and "step" in names
        return _calls_its_main(file) or (_makes_at_top(file) and (steps or _learns_at_top(file)))
    if has_loop or _parses_at_top(file):
        return True
    calls = [node.value for node in file.tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    names = {dotted(call.func).rpartition(".")[2] for call in calls if dotted(call.func).count(".") <= 1}
    return bool(names & {"main", "train", "learn", "fit", "run", "evaluate", "play"})


def _parses_at_top(file: PythonFile) -> bool:
    """Return whether a file reads its command line outside its functions."""
    calls = [node.value for node in file.tree.body if isinstance(node, (ast.Expr, ast.Assign))]
    return any(isinstance(call, ast.Call) and dotted(call.func).endswith(".parse_args") for call in calls)


def _calls_its_main(file: PythonFile) -> bool:
    """Return whether a file calls its own main function at its end, without a guard."""
    own = {node.name for node in file.tree.body if isinstance(node, ast.FunctionDef)}
    for node in file.tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            name = node.value.func.id
            if name in own and re.match(r"(main|train|run|learn|start)(_|$)", name):
                return True
    return False


def _makes_at_top(file: PythonFile) -> bool:
    """Return whether a file builds an environment or an agent outside its functions."""
    for node in file.tree.body:
        if isinstance(node, (ast.Assign, ast.Expr)) and isinstance(node.value, ast.Call):
            tail = dotted(node.value.func).rpartition(".")[2]
            if tail in ("make", "make_env", "make_vec") or tail[:1].isupper() or tail in ("reset", "learn"):
                return True
    return False


def _learns_at_top(file: PythonFile) -> bool:
    """Return whether a file trains outside its functions: `model.learn(1000)`."""
    calls = [node.value for node in file.tree.body if isinstance(node, (ast.Expr, ast.Assign))]
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("learn", "fit", "train")
        for call in calls
    )


def _kinds(repository: ForeignRepository, file: PythonFile) -> Iterator[tuple[str, Confidence]]:
    """Yield whether a program trains or evaluates: by its name and by the calls in it."""
    is_named_train = bool(_TRAIN.search(file.stem))
    is_named_eval = bool(_EVAL.search(file.stem)) and not is_named_train
    if _is_test_of_policy(repository, file) or (not is_named_train and _plays(repository, file)):
        is_named_eval = True
    is_verb = bool(_TRAIN_VERB.search(file.stem)) and not _EVAL.search(file.stem)
    if is_named_train and (learns(file) or reaches_learning(repository, file)):
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
    if learns(file):
        return True
    if _MAIN.match(file.stem):
        return _calls_training(file) and reaches_learning(repository, file)
    if _EVAL.search(file.stem) is None and calls_a_gradient_step(repository, file):
        return True
    if not _asks_to_train(repository, file):
        return False
    return reaches_learning(repository, file) or starts_a_trainer(repository, file, _TRAINS)


def _asks_to_train(repository: ForeignRepository, file: PythonFile) -> bool:
    """Return whether a program calls a method that trains, or a function of the project that is named so."""
    names = {call.func.attr for call in file.calls if isinstance(call.func, ast.Attribute)}
    if names & set(_TRAINS):
        return _keeps_results(names) or not _loads_policy(file)
    own = {call.func.id for call in file.calls if isinstance(call.func, ast.Name) and _STARTED.search(call.func.id)}
    index = module_index(repository)
    imported = {name.rpartition(".")[2] for name in file.imports if resolve(name.rpartition(".")[0], file, index)}
    return bool(own & imported)


def _loads_policy(file: PythonFile) -> bool:
    """Return whether a program loads something else than a settings file."""
    for call in file.calls:
        receiver, _, tail = dotted(call.func).rpartition(".")
        if _LOADS.search(tail) and receiver not in ("json", "yaml", "toml", "tomllib", "OmegaConf"):
            return not re.search("env|config|cfg|setting", tail)
    return False


def _plays(repository: ForeignRepository, file: PythonFile) -> bool:
    """Return whether a program loads a policy and steps an environment with it, and trains nothing."""
    names = {call.func.attr for call in file.calls if isinstance(call.func, ast.Attribute)}
    called = names | {call.func.id for call in file.calls if isinstance(call.func, ast.Name)}
    steps = "step" in names or bool(called & _EVALUATES)
    if not steps or not any(_LOADS.search(name) for name in called):
        return False
    return not learns(file) and not names & {*_TRAINS, "update", "optimize"} and not _keeps_results(names)


def _is_test_of_policy(repository: ForeignRepository, file: PythonFile) -> bool:
    """Return whether a program named like a test plays a stored policy: it loads it, and steps or is named after it."""
    if not _TEST.search(file.stem):
        return False
    if not any(_LOADS.search(_method(call)) for call in file.calls):
        return False
    if re.search("policy|agent|model", file.stem):
        return True
    places = [file, *imported_files(repository, file, depth=1)[:10]]
    return any(_method(call) == "step" for place in places for call in place.calls)


def _method(call: ast.Call) -> str:
    """Return the name of the method that is called; empty if a function is."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return ""


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


def _main_function_line(file: PythonFile) -> int:
    for function in file.functions:
        if function.name in ("main", "train", "run", "eval", "play"):
            return function.lineno
    return 1


def argv(repository: ForeignRepository, file: PythonFile) -> list[str]:
    """Return the words that start a program: by its path, or as a module if it imports from the folder above."""
    top = package_root(repository, file.path)
    is_relative = any(name.startswith(".") for name in file.imports)
    if top is not None:
        module = file.path.removeprefix(f"{top}/".lstrip("/")).removesuffix(".py").replace("/", ".")
        if is_relative or module.partition(".")[0] in file.packages:
            return ["python", "-m", module]
    parts = file.path.removesuffix(".py").split("/")
    folders = _folders(repository)
    tops = folders["*"]
    here = folders["/".join(parts[:-1])]
    uses_top = any(name in tops and name not in here for name in file.packages)
    if len(parts) > 1 and (is_relative or uses_top) and all(part.isidentifier() for part in parts):
        return ["python", "-m", ".".join(parts)]
    return ["python", file.path]


def _folders(repository: ForeignRepository) -> dict[str, set[str]]:
    """Return the names of the modules in every folder; below `*`, of the highest folders and modules."""
    folders: dict[str, set[str]] = repository.cache.setdefault("folders", {})
    if not folders:
        folders["*"] = set()
        for name in repository.modules:
            folder, _, file = name.rpartition("/")
            folders.setdefault(folder, set()).add(file.removesuffix(".py"))
            folders["*"].add(name.partition("/")[0].removesuffix(".py"))
    return folders


def package_root(repository: ForeignRepository, path: str) -> str | None:
    """Return the folder above the package that a file belongs to; None if it is not part of a package."""
    folders = _folders(repository)
    folder = path.rpartition("/")[0]
    if "__init__" not in folders.get(folder, ()):
        return None
    while folder and "__init__" in folders.get(folder, ()):
        folder = folder.rpartition("/")[0]
    return folder
