"""Finds defects that make evidence wrong or lost, each with the reason why it matters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from rlx.adopt.find.imported_files import imported_files
from rlx.adopt.find.options.program_options import ProgramOptions
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal, spelled
from rlx.adopt.scan_fact import Confidence, Defect, ScanFacts

_SEEDING = re.compile(
    r"(manual_seed|set_random_seed|set_seed\w*|seed_everything|random\.seed|\.seed|PRNGKey|random\.key|default_rng)$"
)
_GLOBAL_SEED = re.compile(
    r"(manual_seed|set_random_seed|set_seed\w*|seed_everything|^random\.seed|np\.random\.seed|PRNGKey)$"
)
_FAILURE = re.compile(r"contact|fall|fell|crash|collision|unhealthy|bad_|illegal|out_of|below|drop", re.I)
_NORMALISERS = ("VecNormalize", "NormalizeObservation", "NormalizeReward")
_KEEPS_STATISTICS = re.compile(
    r"obs_rms|vec_?normalize\w*\.(save|load)|\.save\([^)]*normali|get_vec_normalize_env|running_mean", re.I
)


def defects(
    repository: ForeignRepository, facts: ScanFacts, programs: Mapping[str, ProgramOptions]
) -> Iterator[Defect]:
    """Yield every defect once per place."""
    pin = next((str(fact.value or "") for fact in facts.of("framework") if fact.name == "Gymnasium"), "")
    for file in repository.programs:
        yield from _unsafe_loads(file)
        yield from _old_api(file, pin)
        yield from _ends_in_step(file)
        yield from _threshold(file)
        yield from _best(file)
        yield from _same_seed(file)
        yield from _normaliser(file)
    yield from _terms(facts)
    yield from _weights_without_function(repository, facts)
    yield from _programs(repository, facts, programs)


def _unsafe_loads(file: PythonFile) -> Iterator[Defect]:
    why = "a checkpoint from elsewhere can run code on your machine when it is loaded"
    for call in file.calls:
        name = dotted(call.func)
        keywords = {keyword.arg: literal(keyword.value) for keyword in call.keywords}
        if name in ("torch.load", "th.load") and keywords.get("weights_only") is not True:
            message = f"`{name}` without `weights_only=True`"
            yield Defect("unsafe-load", message, why, file.path, call.lineno, "medium")
        elif name in ("pickle.load", "pickle.loads", "joblib.load", "cloudpickle.load", "dill.load"):
            yield Defect("unsafe-load", f"`{name}` executes what the file says", why, file.path, call.lineno)
        elif name == "np.load" and keywords.get("allow_pickle") is True:
            yield Defect("unsafe-load", "`np.load` with `allow_pickle=True`", why, file.path, call.lineno)
        elif name == "eval" and call.args and literal(call.args[0]) is None:
            yield Defect("unsafe-load", "`eval` of a computed text", why, file.path, call.lineno, "medium")


def _old_api(file: PythonFile, pin: str) -> Iterator[Defect]:
    is_old_pinned = bool(re.search(r"(==|~=|<|\^)\s*0\.", pin)) or "<1" in pin.replace(" ", "")
    confidence: Confidence = "low" if is_old_pinned else "high"
    for node in file.nodes:
        is_old_key = isinstance(node, ast.Constant) and node.value in ("final_info", "final_observation")
        if is_old_key and file.packages & {"gymnasium", "gym"}:
            assert isinstance(node, ast.Constant)
            why = "Gymnasium 1 has no such key in vector environments: the program ends well and logs no returns"
            message = f"reads `{node.value!s}` of Gymnasium 0.x vector environments"
            yield Defect("gymnasium-api", message, why, file.path, node.lineno, confidence)
            break
    if "gym" in file.packages:
        why = "the package `gym` is not maintained, and its environments return other tuples than Gymnasium's"
        yield Defect("gymnasium-api", "imports `gym`", why, file.path, file.imports.get("gym", 1), "medium")
    for node in file.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Tuple):
            called = dotted(node.value.func)
            count = len(node.targets[0].elts)
            if re.search(r"envs?\.step$", called) and count == 4 and "gymnasium" in file.packages and not _is_vec(file):
                why = "Gymnasium returns five values: the call fails, or the fourth one is read as `info`"
                yield Defect("gymnasium-api", "reads four values of `step`", why, file.path, node.lineno, "medium")


def _is_vec(file: PythonFile) -> bool:
    """Return whether a file uses vector environments of its library, whose `step` returns four values."""
    return bool(file.packages & {"stable_baselines3", "sb3_contrib", "rsl_rl", "isaaclab_rl"})


def _ends_in_step(file: PythonFile) -> Iterator[Defect]:
    """Yield steps of environments that report a time limit as a failure, or a failure as a time limit."""
    for function in file.functions:
        if function.name != "step":
            continue
        values = {
            dotted(node.targets[0]): node.value
            for node in file.inside(function)
            if isinstance(node, ast.Assign) and len(node.targets) == 1
        }
        for node in file.inside(function):
            if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Tuple) or len(node.value.elts) != 5:
                continue
            terminated, truncated = node.value.elts[2:4]
            ends = spelled(values.get(dotted(terminated), terminated))
            limits = spelled(values.get(dotted(truncated), truncated))
            if literal(truncated) is False and re.search(r"[<>]=?", ends) and re.search(r"step|time|t\b|length", ends):
                why = "the value of the last state is learned as zero, although the episode only ran out of time"
                message = "a time limit is returned as `terminated`, and `truncated` is always False"
                yield Defect("truncation-as-failure", message, why, file.path, node.lineno, "medium")
            elif literal(terminated) is False and _FAILURE.search(limits):
                why = (
                    "a failure is bootstrapped as if the episode went on: the policy learns that failing costs nothing"
                )
                message = "a failure is returned as `truncated`, and `terminated` is always False"
                yield Defect("failure-as-truncation", message, why, file.path, node.lineno, "medium")


def _terms(facts: ScanFacts) -> Iterator[Defect]:
    for fact in facts.of("termination"):
        text = f"{fact.name} {fact.detail}"
        if not fact.detail:
            continue
        if fact.value == "termination" and re.search(r"time_?out|time_?limit", text, re.I):
            why = "the value of the last state is learned as zero, although the episode only ran out of time"
            message = f"`{fact.name}` ends episodes by time without `time_out=True`"
            yield Defect("truncation-as-failure", message, why, fact.file, fact.line)
        elif fact.value == "truncation" and _FAILURE.search(text) and not re.search(r"bounds|terrain", text):
            why = "a failure is bootstrapped as if the episode went on: the policy learns that failing costs nothing"
            message = f"`{fact.name}` is a failure, and has `time_out=True`"
            yield Defect("failure-as-truncation", message, why, fact.file, fact.line, "medium")


def _weights_without_function(repository: ForeignRepository, facts: ScanFacts) -> Iterator[Defect]:
    functions = set(facts.names("reward function"))
    why = "the term is weighted but never computed: the program fails, or ignores it"
    for fact in facts.of("reward term"):
        is_nested = "scales" in repository.text(fact.file) and "class rewards" in repository.text(fact.file)
        is_weighted = bool(fact.value) and not fact.detail and fact.confidence == "high"
        if is_nested and functions and fact.name not in functions and is_weighted:
            message = f"reward weight `{fact.name}` has no function `_reward_{fact.name}`"
            yield Defect("weight-without-function", message, why, fact.file, fact.line)


def _threshold(file: PythonFile) -> Iterator[Defect]:
    for call in file.calls:
        if dotted(call.func).endswith("StopTrainingOnRewardThreshold"):
            why = "training ends at a lucky evaluation, so the score that ended it is biased upwards"
            message = "training stops when the evaluator's own score passes a threshold"
            yield Defect("stop-on-evaluator", message, why, file.path, call.lineno)


def _best(file: PythonFile) -> Iterator[Defect]:
    """Yield saves under a name with `best` that no comparison guards."""
    if "best" not in file.text:
        return
    guarded = {id(inner) for node in file.nodes if isinstance(node, ast.If) for inner in ast.walk(node)}
    for call in file.calls:
        tail = dotted(call.func).rpartition(".")[2]
        words = " ".join(spelled(arg) for arg in call.args)
        is_save = tail in ("save", "save_checkpoint", "copy", "copyfile")
        if is_save and re.search(r"\bbest|best_", words) and id(call) not in guarded:
            why = "the file named best is only the newest one: a report on it describes an arbitrary point of training"
            message = "saves `best` without a comparison"
            yield Defect("best-is-newest", message, why, file.path, call.lineno, "medium")


def _same_seed(file: PythonFile) -> Iterator[Defect]:
    """Yield evaluation environments that get exactly the seed of the training environments."""
    seeds: dict[bool, list[tuple[str, int]]] = {True: [], False: []}
    for node in file.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        name = dotted(node.targets[0]).lower()
        if "env" not in name:
            continue
        words = [*node.value.args, *(word.value for word in node.value.keywords)]
        for word in words:
            text = spelled(word)
            if re.search(r"(^|\.)seed$", text):
                seeds["eval" in name or "test" in name].append((text, node.lineno))
    for text, line in seeds[True]:
        if any(text == other for other, _ in seeds[False]):
            why = "the policy is scored on the episodes that it was trained on"
            message = f"the evaluation environment gets the training seed `{text}`"
            yield Defect("evaluation-on-training-seeds", message, why, file.path, line)
            return


def _normaliser(file: PythonFile) -> Iterator[Defect]:
    used = [call for call in file.calls if dotted(call.func).rpartition(".")[2] in _NORMALISERS]
    saves = any(dotted(call.func).rpartition(".")[2] == "save" for call in file.calls)
    if used and saves and not _KEEPS_STATISTICS.search(file.text):
        name = dotted(used[0].func).rpartition(".")[2]
        why = "the saved policy expects normalised observations; without the statistics its scores are wrong"
        message = f"`{name}` is used, and its statistics are not saved with the policy"
        yield Defect("normaliser-not-saved", message, why, file.path, used[0].lineno, "medium")


def _programs(
    repository: ForeignRepository, facts: ScanFacts, programs: Mapping[str, ProgramOptions]
) -> Iterator[Defect]:
    """Yield training programs without a seed, and run folders that two seeds of one second share."""
    for fact in facts.of("train")[:40]:
        file = repository.by_path(fact.file)
        if file is None:
            continue
        chain = imported_files(repository, file, depth=3)
        options = programs.get(fact.file, ProgramOptions()).options
        has_option = any("seed" in option.key for option in options)
        if not has_option and not _sets_seed(file) and not any(_sets_global_seed(part) for part in chain):
            why = "no result can be repeated, and seeds cannot be told apart"
            yield Defect("no-seed", "the training sets no seed", why, file.path, fact.line, "medium")
        clock = _names_by_second(file)
        if clock:
            why = "two trainings that start in the same second write into one folder"
            message = "the run folder is named by the wall-clock second"
            yield Defect("folder-by-second", message, why, file.path, clock, "medium")


def _sets_seed(file: PythonFile) -> bool:
    for call in file.calls:
        if _SEEDING.search(dotted(call.func)):
            return True
        if any(keyword.arg == "seed" and literal(keyword.value) is not None for keyword in call.keywords):
            return True
        if any(keyword.arg == "seed" and not isinstance(keyword.value, ast.Constant) for keyword in call.keywords):
            return True
    for node in file.nodes:
        if isinstance(node, ast.Assign) and any(dotted(target).endswith(".seed") for target in node.targets):
            return True
    return False


def _sets_global_seed(file: PythonFile) -> bool:
    return any(_GLOBAL_SEED.search(dotted(call.func)) for call in file.calls)


def _names_by_second(file: PythonFile) -> int:
    for call in file.calls:
        name = dotted(call.func)
        words = " ".join(str(literal(arg)) for arg in call.args)
        if name.endswith("strftime") and "%S" in words and "%f" not in words:
            return call.lineno
        if name == "int" and call.args and spelled(call.args[0]) == "time.time()":
            return call.lineno
    return 0
