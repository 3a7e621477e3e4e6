"""Draft the commands of a task from a scan: how to train, where the metrics and checkpoints are, what is still open."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

from rlx.adopt.find.options.option import ProgramOption
from rlx.adopt.find.options.program_options import ProgramOptions, is_yaml
from rlx.adopt.find.text_patterns import is_placeholder
from rlx.adopt.profiles.profile import Profile
from rlx.adopt.scan import Scan, is_length, length_unit
from rlx.adopt.scan_fact import OpenQuestion, ScanFact
from rlx.config.schema import Source
from rlx.errors import NotFound
from rlx.runs.readers.metric_dialects import RETURN, names_of

WORK = "{out}/work"
"""The working folder of a drafted training: writable, with links to the repository."""
OVERRIDES = {
    "hydra": "{key}={value}", "omegaconf": "{key}={value}", "sacred": "{key}={value}",
    "gin": "--gin_bindings={key}={value}",
}  # fmt: skip
_OUT = (
    "log_dir", "logdir", "log_root", "output_dir", "out_dir", "out", "output", "save_dir", "run_dir", "work_dir",
    "workdir", "exp_dir", "log_folder", "results_dir", "logger_dir", "base_dir", "log_path", "save_path",
)  # fmt: skip
_FIXED = re.compile(
    r"^(env|env[-_]id|env[-_]name|task|task[-_]name|exp[-_]?name|experiment([-_]name)?|run[-_]name|model|device|cuda|track|"
    r"wandb.*|project.*|entity|video.*|capture[-_]video|log.*|save.*|hf[-_].*|upload[-_].*|num[-_]iterations|headless|"
    r"render.*|verbose|resume.*|checkpoint.*|load.*|tensorboard[-_]log|config|conf[-_].*|uuid|trained[-_]agent|eval.*)$",
    re.I,
)
_SCORES = (
    r"(^|/)(mean_)?(episode|episodic|ep|avg|mean)_(return|rew\w*)", r"return", r"reward|(^|/)rew", r"success", r"score",
)  # fmt: skip
"""Patterns of the metrics that are usually the score, the best first."""
_TABLES = {"csv": "**/*.csv", "jsonl": "**/*.jsonl"}


@dataclass
class Draft:
    """The drafted commands of a task. Every guess is listed in `basis`, every gap in `questions`."""

    program: ScanFact
    profile: Profile
    train: list[str] = field(default_factory=list)
    eval: list[str] = field(default_factory=list)
    prefix: list[str] = field(default_factory=list)
    python_path: list[str] = field(default_factory=list)
    override: str = "--{key}={value}"
    cwd: str = ""
    local_sockets: bool = False
    steps: int | None = None
    unit: str = ""
    metrics: Source | None = None
    checkpoint: str = ""
    reward_paths: list[str] = field(default_factory=list)
    reward_keys: list[str] = field(default_factory=list)
    """Options that set the weights of reward terms."""
    edited_paths: list[str] = field(default_factory=list)
    """Files in which hyperparameters are changed, if no option changes them."""
    fixed_keys: list[str] = field(default_factory=list)
    """Options that say what is trained and where it is logged: no candidate may change them."""
    basis: list[ScanFact] = field(default_factory=list)
    questions: list[OpenQuestion] = field(default_factory=list)

    def ask(self, key: str, text: str) -> None:
        self.questions.append(OpenQuestion(key, text))


def draft_of(scan: Scan, *, program: str | None = None) -> Draft:
    """Draft the commands for one training program of a repository; `program` chooses it, else rlx does."""
    fact = choose_program(scan, program)
    draft = Draft(fact, scan.profile)
    options = scan.programs.get(fact.file, ProgramOptions(file=fact.file))
    draft.basis.append(fact)
    draft.train = list(fact.value)
    draft.override = draft.profile.override or OVERRIDES.get(options.system, "--{key}={value}")
    if options.system == "sacred":
        draft.train.append("with")
    _torchrun(fact, draft)
    _interpreter(scan, draft)
    _import_path(fact, draft)
    _required(fact, options, draft)
    _seed(options, draft)
    _length(fact, options, draft)
    _output(options, draft)
    draft.train += _extra_words(options, draft.profile)
    _metrics(scan, options, draft)
    _checkpoint(scan, options, draft)
    draft.train.append("{overrides}")
    draft.fixed_keys = [option.key for option in options.options if _FIXED.search(option.key)]
    sockets = scan.facts.first("local sockets")
    if sockets is not None:
        draft.local_sockets = True
        draft.basis.append(sockets)
    if not any(_is_tunable(option) for option in options.options) or options.is_fixed:
        declared = [option.file for option in options.options if options.is_fixed]
        draft.edited_paths = list(dict.fromkeys([fact.file, *declared]))
    if options.yaml is not None:
        named = [str(option.default) for option in options.options if is_yaml(option.default)]
        draft.edited_paths += [path.removeprefix("./") for path in named if (scan.root / path).is_file()]
    rewards = [found.file for kind in ("reward term", "reward function") for found in scan.facts.of(kind)]
    draft.reward_paths = list(dict.fromkeys(rewards))[:12]
    draft.reward_keys = list(_reward_keys(scan, options, draft.profile))
    _evaluation(scan, draft)
    return draft


def _reward_keys(scan: Scan, options: ProgramOptions, profile: Profile) -> Iterator[str]:
    """Yield the keys of reward weights: those of the framework, and options that are named after a term."""
    terms = scan.facts.names("reward term")
    if profile.reward_key:
        yield from (profile.reward_key.format(term=term) for term in terms)
        return
    terms += scan.facts.names("reward function")
    for option in options.options:
        words = option.key.replace("-", "_").lower()
        is_weight = re.search(r"reward|rew_|penalty", words) and isinstance(option.default, (int, float))
        if not options.is_fixed and (is_weight or words.rpartition(".")[2] in terms):
            yield option.key


def _is_tunable(option: ProgramOption) -> bool:
    return not (option.is_seed or option.is_switch or option.is_positional or _FIXED.search(option.key))


def choose_program(scan: Scan, program: str | None = None) -> ScanFact:
    """Return the training program to draft: the named one, the profile's usual one, or the most certain one."""
    programs = scan.facts.of("train")
    if program is not None:
        named = [fact for fact in programs if fact.file == program.removeprefix("./")]
        if not named:
            hint = "rlx adopt lists the programs that it found; for another one: rlx task new NAME --train COMMAND"
            raise NotFound(f"`{program}` is not a training program that rlx found", hint=hint)
        return named[0]
    if not programs:
        hint = 'describe it yourself: rlx task new NAME --train "python FILE --seed {seed} {overrides}"'
        raise NotFound(f"no training program was found in {scan.root}", hint=hint)
    usual = [fact for fact in programs if scan.profile.train and fact.file.endswith(scan.profile.train)]
    documented = [fact for fact in programs if fact.detail and fact.confidence == programs[0].confidence]
    return (usual or documented or programs)[0]


def _interpreter(scan: Scan, draft: Draft) -> None:
    chosen = scan.facts.first("interpreter")
    if chosen is None:
        return
    manager = next(iter(chosen.value or ()), "")
    if manager and "/" not in manager and shutil.which(manager) is None:
        text = (
            f"`{manager}` ({chosen.file}:{chosen.line}) is not installed here, so the draft starts `python`. Which one?"
        )
        draft.ask("adapter.prefix", text)
        return
    draft.basis.append(chosen)
    if chosen.name == "venv":
        draft.train[0] = chosen.detail
        return
    draft.prefix = [str(word) for word in chosen.value]
    if chosen.name == "isaaclab.sh" and draft.train[0] == "python":
        draft.train = draft.train[1:]


def _torchrun(program: ScanFact, draft: Draft) -> None:
    """Start the program by torchrun if its documentation does."""
    words = shlex.split(program.detail) if program.detail else []
    if not words or words[0] != "torchrun":
        return
    options = []
    for word in words[1:]:
        if word.endswith(".py") or word == "-m":
            break
        options.append(word)
    draft.train = ["python", "-m", "torch.distributed.run", "--standalone", *options, *draft.train[1:]]
    draft.local_sockets = True


def _import_path(program: ScanFact, draft: Draft) -> None:
    words = program.value
    if "-m" in words:
        module = str(words[words.index("-m") + 1])
        above = program.file.removesuffix(".py").removesuffix(module.replace(".", "/")).rstrip("/")
        if above:
            draft.python_path = [above, "."]


def _flag(option: ProgramOption, value: str) -> list[str]:
    """Return the words that give an option a value, in the form of its config system."""
    if option.is_positional:
        return [value]
    if option.flag.endswith("="):
        return [f"{option.flag}{value}"]
    return [option.flag, value]


def _required(program: ScanFact, options: ProgramOptions, draft: Draft) -> None:
    """Add the options that must be given, with the values of the documented command or of the profile."""
    documented = _documented_values(program.detail)
    usual = {f"--{name}": value for name, value in draft.profile.usual.items()}
    documented = {**documented, **usual}
    for option in options.options:
        if not option.is_required or option.is_seed or is_length(option.key, draft.profile):
            continue
        if option.key.replace("-", "_") in _OUT:
            continue
        value = documented.get(option.flag) or draft.profile.values.get(option.key.replace("-", "_"))
        if value is None and options.system == "tyro":
            continue  # a nested config without a default is filled by its class
        if value is None:
            value = "FILL_IN"
            draft.ask(
                "adapter.train", f"which value has the required option `{option.flag}` ({option.file}:{option.line})?"
            )
        draft.train += _flag(option, value)
    known = {option.flag for option in options.options}
    for name, value in (*draft.profile.values.items(), *draft.profile.usual.items()):
        if f"--{name}" in known and f"--{name}" not in draft.train:
            draft.train += [f"--{name}", documented.get(f"--{name}", value)]


def _documented_values(command: str) -> dict[str, str]:
    try:
        words = shlex.split(command)
    except ValueError:
        return {}
    values = {}
    for word, after in zip(words, [*words[1:], "--"], strict=False):
        name, sign, value = word.partition("=")
        if sign and word.startswith("-"):
            values[name] = value
        elif word.startswith("-") and not after.startswith("-"):
            values[word] = after
    return {name: value for name, value in values.items() if not is_placeholder(value)}


def _seed(options: ProgramOptions, draft: Draft) -> None:
    wanted = [name.replace("-", "_") for name in draft.profile.seed_keys]
    seeds = [option for option in options.options if option.is_seed and not options.is_fixed]
    seeds.sort(key=lambda option: option.key.replace("-", "_") not in wanted)
    if seeds:
        option = seeds[0]
        draft.train += _flag(option, "{seed}")
        draft.basis.append(ScanFact("seed", option.flag, option.file, option.line, value=option.default))
        return
    draft.train = ["env", "RLX_SEED={seed}", *draft.train]
    text = "the program has no seed option: its trainings differ, but none can be repeated. Which option sets the seed?"
    draft.ask("adapter.train", text)


def _length(program: ScanFact, options: ProgramOptions, draft: Draft) -> None:
    """Set the length of a training: as the documentation starts it, else the option's default, else the usual one."""
    order = [name.replace("-", "_") for name in draft.profile.length.keys]
    lengths = [option for option in options.options if is_length(option.key, draft.profile)]
    lengths = [option for option in lengths if not options.is_fixed]
    lengths.sort(key=lambda option: order.index(option.key.replace("-", "_").lower()))
    if not lengths:
        draft.ask("adapter.steps", "the program has no option for the length of a training: how long does one take?")
        return
    option = lengths[0]
    draft.train += _flag(option, "{steps}")
    draft.unit = length_unit(option.key, draft.profile)
    draft.basis.append(
        ScanFact("length", option.flag, option.file, option.line, value=option.default, detail=draft.unit)
    )
    documented = _whole_number(_documented_values(program.detail).get(option.flag.rstrip("=")))
    if documented:
        draft.steps = documented
    elif isinstance(option.default, (int, float)) and option.default > 0:
        draft.steps = int(option.default)
    elif draft.profile.length.usual:
        draft.steps = draft.profile.length.usual
    else:
        draft.ask("adapter.steps", f"how many {draft.unit.partition(' (')[0]} is one training (`{option.flag}`)?")


def _whole_number(text: str | None) -> int | None:
    """Return a documented length, such as `80000` or `1e6`; None if it is not a positive number."""
    try:
        number = float((text or "").replace("_", ""))
    except ValueError:
        return None
    if not 1 <= number < 1e12:
        return None
    return int(number)


def _output(options: ProgramOptions, draft: Draft) -> None:
    if options.system == "hydra" and options.settings:
        draft.train.append("hydra.run.dir={out}/hydra")
        draft.cwd = WORK
        return
    for name in _OUT:
        for option in options.options:
            if (
                option.key.replace("-", "_").rpartition(".")[2] == name
                and not option.is_switch
                and not option.is_positional
            ):
                if options.is_fixed:
                    continue
                draft.train += _flag(option, "{out}")
                draft.basis.append(ScanFact("log folder", option.flag, option.file, option.line, value=option.default))
                return
    draft.cwd = WORK


def _extra_words(options: ProgramOptions, profile: Profile) -> Iterator[str]:
    """Yield the profile's extra words if the program knows them."""
    known = {option.flag for option in options.options}
    flags = [word for word in profile.extra if word.startswith("--")]
    if profile.name == "Isaac Lab" or all(flag in known for flag in flags):
        yield from profile.extra


def _metrics(scan: Scan, options: ProgramOptions, draft: Draft) -> None:
    logs = draft.profile.logs
    loggers = scan.facts.names("logger")
    top = _top(options, draft)
    folder = _log_folder(scan, draft)
    reader = "tensorboard"
    if logs.score:
        reader = logs.reader
    elif "tensorboard" not in loggers:
        reader = "csv" if "csv" in loggers else "stdout"
    path = f"{top}/{folder}".rstrip("/").removesuffix("/.")
    names = names_of(logs.dialect, scan.facts.names("metric tag")) or _guessed_score(scan, draft)
    if reader == "stdout":
        draft.metrics = Source(reader="stdout", step=logs.step)
        draft.ask("adapter.metrics", "no log file was found: rlx reads `name=value` and `name: value` from the output")
        return
    if reader in _TABLES:
        path = f"{path}/{_TABLES[reader]}"
    draft.metrics = Source(reader=reader, path=path, step=logs.step, names=names)
    if not names:
        draft.ask("adapter.metrics.names", "which logged metric is the score that should improve?")


def _guessed_score(scan: Scan, draft: Draft) -> dict[str, str]:
    """Return the logged metric that is most likely the score, and ask about it."""
    tags = [fact for fact in scan.facts.of("metric tag") if "*" not in fact.name]
    tags.sort(key=lambda fact: fact.file != draft.program.file)
    for words in _SCORES:
        for fact in tags:
            if re.search(words, fact.name, re.I):
                draft.basis.append(fact)
                draft.ask("adapter.metrics.names", f"is `{fact.name}` ({fact.file}:{fact.line}) the score to improve?")
                return {RETURN: fact.name}
    return {}


def _log_folder(scan: Scan, draft: Draft) -> str:
    """Return the folder below the working folder that the program logs to; empty if an option sets it."""
    if not draft.cwd:
        return ""
    own = [fact.name for fact in scan.facts.of("log folder") if fact.file == draft.program.file]
    if draft.train and any(word.startswith("hydra.run.dir=") for word in draft.train):
        return ""
    if own:
        return own[0]
    return draft.profile.logs.folder


def _checkpoint(scan: Scan, options: ProgramOptions, draft: Draft) -> None:
    """Name the checkpoint of the program itself, or of its framework; else the folder of its logs stands in for it."""
    facts = scan.facts.of("checkpoint")
    own = [fact for fact in facts if fact.file == draft.program.file and fact.confidence == "high"]
    usual = [fact for fact in facts if fact.name == draft.profile.checkpoint and fact.file != draft.program.file]
    usual += [fact for fact in facts if fact.name == draft.profile.checkpoint and fact.is_of_framework]
    if draft.profile.name == "CleanRL" or not draft.profile.checkpoint:
        usual = []
    top = _top(options, draft)
    folder = _log_folder(scan, draft)
    if own or usual:
        chosen = (own or usual)[0]
        draft.basis.append(chosen)
        draft.checkpoint = f"{top}/**/{chosen.name}"
        if own and top == draft.cwd and re.match(r"[\w-]+/", chosen.detail):
            draft.checkpoint = f"{top}/{chosen.detail}"
        elif folder:
            draft.checkpoint = f"{top}/{folder}/**/{chosen.name}"
        draft.train += [option.flag for option in options.options if option.is_switch and _saves(option)]
        return
    draft.checkpoint = f"{top}/{folder}".rstrip("/")
    draft.ask("adapter.checkpoint", "no checkpoint was found: the log folder stands in for it until you name one")


def _saves(option: ProgramOption) -> bool:
    return option.key.replace("-", "_") in ("save_model", "save_checkpoint", "save") and option.default is not True


def _top(options: ProgramOptions, draft: Draft) -> str:
    """Return the folder below which the program writes."""
    if options.system == "hydra" and options.settings:
        return "{out}"  # in Hydra's folder or in the working folder: that depends on `hydra.job.chdir`
    return draft.cwd or "{out}"


def _evaluation(scan: Scan, draft: Draft) -> None:
    programs = scan.facts.of("eval")
    names = ", ".join(fact.file for fact in programs[:3]) or "none was found"
    text = f"which command scores a checkpoint with a number ({names})? `rlx adopt --eval-template` writes one"
    draft.ask("adapter.eval", text)
