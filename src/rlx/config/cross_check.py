"""Checks across keys: sizes that do not fit, intervals longer than the run, devices that do not exist here."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Collection, Iterator

from rlx.config.defaults import divisors
from rlx.config.devices import SPELLING
from rlx.config.expression import Expression
from rlx.config.schema import (
    COMMAND,
    LARGEST_SEED,
    Ars,
    Command,
    Dqn,
    Experiment,
    OffPolicy,
    OnPolicy,
    Ppo,
    Problem,
    Source,
    Tqc,
    Trpo,
)
from rlx.errors import hint_for
from rlx.plugins import BACKENDS

POLICY_TYPES = ("mlp", "cnn", "multi")
PLACEHOLDERS = {
    "train": ("seed", "out", "steps", "overrides"),
    "resume": ("seed", "out", "steps", "overrides", "checkpoint"),
    "override": ("key", "value"),
    "checkpoint": ("seed", "out", "steps"),
    "metrics.path": ("seed", "out", "steps"),
}
"""The placeholders that the templates of `command` may use."""
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_POLICY_SPELLINGS = {"mlppolicy": "mlp", "cnnpolicy": "cnn", "multiinputpolicy": "multi", "dict": "multi"}


def cross_check(experiment: Experiment, *, devices: Collection[str] | None = None) -> list[Problem]:
    """Return every problem and note about a resolved experiment; `devices` are the machine's, if they matter."""
    return [
        *_names(experiment),
        *_device(experiment, devices),
        *_loggers(experiment, is_here=devices is not None),
        *_seeds(experiment),
        *_on_policy(experiment),
        *_off_policy(experiment),
        *_single_algorithms(experiment),
        *_cadence(experiment),
        *_scenarios(experiment),
        *_resources(experiment),
        *_command(experiment),
    ]


_RECURRENT = ("lstm", "gru", "rnn", "recurrent", "mlplstm", "mlplstmpolicy")


def _note(key: str, message: str, hint: str | None = None) -> Problem:
    return Problem(key, message, hint, is_error=False)


def _names(experiment: Experiment) -> Iterator[Problem]:
    kind = experiment.policy.type
    if kind not in POLICY_TYPES and ":" not in kind:
        spelling = _POLICY_SPELLINGS.get(kind.lower(), kind)
        hint = hint_for(spelling, POLICY_TYPES, otherwise="policy: {type: mlp}")
        if kind.lower() in _RECURRENT:
            hint = "memory belongs to the algorithm: -s policy.type=mlp -s algo.name=recurrent_ppo"
        yield Problem("policy.type", f"unknown policy type `{kind}`; expected mlp, cnn, multi or `file.py:Class`", hint)
    known = ("auto", *BACKENDS)
    if experiment.backend not in known:
        hint = hint_for(experiment.backend, known, otherwise=f"known: {', '.join(known)}")
        yield Problem("backend", f"unknown backend `{experiment.backend}`", hint)


def _device(experiment: Experiment, devices: Collection[str] | None) -> Iterator[Problem]:
    device = experiment.device
    if not SPELLING.match(device):
        spelling = {"gpu": "cuda", "nvidia": "cuda"}.get(device.lower(), device)
        hint = hint_for(spelling, ("auto", "cpu", "cuda", "mps"), otherwise="device: auto")
        yield Problem("device", f"`device` is {device!r}; expected auto, cpu, cuda, cuda:N or mps", hint)
    elif devices is not None and device != "auto" and device.split(":")[0] not in devices:
        yield Problem(
            "device", f"device `{device}` is not on this machine", "use the devices that exist: -s device=auto"
        )


def _loggers(experiment: Experiment, *, is_here: bool) -> Iterator[Problem]:
    """Refuse a logger whose package is not installed, if the config is to run here."""
    if is_here and experiment.log.wandb and importlib.util.find_spec("wandb") is None:
        hint = "pip install 'rlx[wandb]', or -s log.wandb=false"
        yield Problem("log.wandb", "`log.wandb` needs `wandb`, which is not installed", hint)


def _seeds(experiment: Experiment) -> Iterator[Problem]:
    seeds = experiment.seeds
    if isinstance(seeds, tuple):
        repeated = [seed for seed, count in Counter(seeds).items() if count > 1]
        if not seeds:
            yield Problem("seeds", "`seeds` is an empty list", "seeds: 5, or seeds: [0, 1, 2]")
        if repeated:
            yield Problem(
                "seeds", f"`seeds` has {min(repeated)} more than once", "every seed is one replicate: list it once"
            )
    elif seeds is not None and experiment.seed + seeds - 1 > LARGEST_SEED:
        yield Problem(
            "seeds",
            f"{seeds} seeds from {experiment.seed} exceed the largest seed, {LARGEST_SEED}",
            "start at a lower `seed`",
        )


def _on_policy(experiment: Experiment) -> Iterator[Problem]:
    algo = experiment.algo
    if not isinstance(algo, OnPolicy):
        return
    copies = experiment.env.num_envs or 1
    rollout = copies * algo.rollout_steps
    if rollout > algo.total_timesteps:
        yield _note(
            "algo.total_timesteps",
            f"`algo.total_timesteps` is {algo.total_timesteps}, less than one rollout: the run takes {rollout} steps",
            f"num_envs × rollout_steps = {copies} × {algo.rollout_steps} = {rollout}",
        )
    if isinstance(algo, (Ppo, Trpo)):
        yield from _batch(algo, rollout, f"num_envs × rollout_steps = {copies} × {algo.rollout_steps} = {rollout}")


def _batch(algo: Ppo | Trpo, rollout: int, sum_: str) -> Iterator[Problem]:
    batch = algo.batch_size
    if batch > rollout:
        yield Problem("algo.batch_size", f"`algo.batch_size` is {batch}, more than {sum_}", _nearest(rollout, batch))
    elif rollout % batch:
        yield Problem(
            "algo.batch_size", f"`algo.batch_size` is {batch}, which does not divide {sum_}", _nearest(rollout, batch)
        )
    elif algo.normalize_advantage and batch == 1:
        yield Problem(
            "algo.batch_size",
            "`algo.batch_size` is 1: advantages cannot be normalised",
            "-s algo.normalize_advantage=false",
        )


def _nearest(rollout: int, wanted: int) -> str:
    fitting = divisors(rollout)
    below = [n for n in fitting if n < wanted][-1:]
    above = [n for n in fitting if n > wanted][:1]
    near = " or ".join(f"-s algo.batch_size={n}" for n in [*below, *above])
    return near or "choose a divisor"


def _off_policy(experiment: Experiment) -> Iterator[Problem]:
    algo = experiment.algo
    if not isinstance(algo, OffPolicy):
        return
    if algo.batch_size > algo.buffer_size:
        yield Problem(
            "algo.batch_size",
            f"`algo.batch_size` is {algo.batch_size}, more than `algo.buffer_size` ({algo.buffer_size}) holds",
            f"-s algo.batch_size={algo.buffer_size}, or a larger buffer",
        )
    if algo.learning_starts >= algo.total_timesteps:
        yield Problem(
            "algo.learning_starts",
            f"`algo.learning_starts` is {algo.learning_starts}: a run of {algo.total_timesteps} steps never learns",
            f"-s algo.learning_starts={algo.total_timesteps // 10}",
        )
    if algo.gradient_steps == 0:
        yield Problem(
            "algo.gradient_steps", "`algo.gradient_steps` is 0: it would never learn", "-s algo.gradient_steps=1"
        )


def _single_algorithms(experiment: Experiment) -> Iterator[Problem]:
    algo = experiment.algo
    if isinstance(algo, Dqn):
        if algo.exploration_final > algo.exploration_initial:
            yield _note(
                "algo.exploration_final", "exploration grows: `exploration_final` is more than `exploration_initial`"
            )
        if algo.target_update_every > algo.total_timesteps:
            yield _note(
                "algo.target_update_every",
                f"`algo.target_update_every` is {algo.target_update_every}: the target network never changes",
                f"-s algo.target_update_every={max(1, algo.total_timesteps // 20)}",
            )
    if isinstance(algo, Tqc) and algo.dropped_quantiles >= algo.quantiles:
        yield Problem(
            "algo.dropped_quantiles",
            f"`algo.dropped_quantiles` is {algo.dropped_quantiles} of {algo.quantiles} quantiles: none is left",
            f"-s algo.dropped_quantiles={algo.quantiles // 10}",
        )
    if isinstance(algo, Ars) and (algo.top_deltas or 0) > algo.deltas:
        yield Problem(
            "algo.top_deltas",
            f"`algo.top_deltas` is {algo.top_deltas}, more than `algo.deltas` ({algo.deltas})",
            f"-s algo.top_deltas={algo.deltas}",
        )
    rate = algo.learning_rate
    if isinstance(rate, float) and rate >= 0.1 and not isinstance(algo, Ars):
        yield _note(
            "algo.learning_rate", f"`algo.learning_rate` is {rate:g}, which is very large", "usual: 1e-5 to 1e-2"
        )


def _cadence(experiment: Experiment) -> Iterator[Problem]:
    total = experiment.algo.total_timesteps
    for key, every, what in (
        ("eval.every", experiment.eval.every, "no evaluation before the end"),
        ("checkpoint.save_every", experiment.checkpoint.save_every, "no `step_N` checkpoint"),
        ("log.every", experiment.log.every, "no metrics before the end"),
    ):
        if every is not None and every > total:
            yield _note(
                key,
                f"`{key}` is {every}, longer than the run ({total} steps): {what}",
                f"-s {key}={max(1, total // 10)}",
            )


def _scenarios(experiment: Experiment) -> Iterator[Problem]:
    scenarios = experiment.eval.scenarios or {}
    for name, scenario in scenarios.items():
        key = f"eval.scenarios.{name}.pass"
        try:
            Expression(scenario.passes or "return > 0")
        except ValueError as error:
            yield Problem(key, f"`{key}` {scenario.passes!r} {error}", "pass: return > 200 and not truncated")
    if experiment.eval.metric == "pass_rate" and not any(scenario.passes for scenario in scenarios.values()):
        yield Problem(
            "eval.metric", "`eval.metric` is pass_rate, and no scenario has a `pass`", "eval.scenarios.NAME.pass"
        )


def _resources(experiment: Experiment) -> Iterator[Problem]:
    env = experiment.env
    resources = experiment.resources
    if env.vectorization == "async" and resources.cores == 1:
        yield _note(
            "env.vectorization",
            "`async` runs each copy in its own process, on one core",
            "sync is faster, or -s resources.cores=2",
        )
    if experiment.device == "cpu" and resources.gpus:
        yield _note("resources.gpus", f"`resources.gpus` is {resources.gpus:g}, but `device` is cpu", "-s device=cuda")
    if env.normalize.obs and experiment.policy.type == "cnn":
        yield _note("env.normalize.obs", "a cnn scales its images itself", "-s env.normalize.obs=false")


def _command(experiment: Experiment) -> Iterator[Problem]:
    command = experiment.command
    if command is None:
        if experiment.backend == COMMAND:
            hint = 'command: {train: [python, train.py, --seed, "{seed}"]}'
            yield Problem("command", "`backend: command` needs a `command` section", hint)
        return
    if experiment.backend != COMMAND:
        yield Problem("command", f"the backend {experiment.backend} ignores `command`", "backend: command")
    yield from _templates(command)
    words = (*command.prefix, *command.train)
    if not any("{seed}" in word for word in words):
        yield Problem(
            "command.train", "`command.train` has no {seed}: all seeds would train the same", 'train: [..., "{seed}"]'
        )
    if command.overrides and "{overrides}" not in words:
        yield Problem(
            "command.train",
            "`command.train` has no {overrides}: `command.overrides` would not reach it",
            'train: [..., "{overrides}"]',
        )
    if command.metrics:
        yield from _source("command.metrics", command.metrics)


def _templates(command: Command) -> Iterator[Problem]:
    texts = {
        "train": (*command.prefix, *command.train),
        "resume": command.resume,
        "override": (command.override,),
        "checkpoint": (command.checkpoint,),
    }
    if command.metrics:
        texts["metrics.path"] = (command.metrics.path,)
    for key, words in texts.items():
        unknown = [name for word in words for name in _PLACEHOLDER.findall(word) if name not in PLACEHOLDERS[key]]
        if unknown:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS[key])
            yield Problem(f"command.{key}", f"`command.{key}` has {{{unknown[0]}}}, which is not a placeholder", known)
        if any("{overrides}" in word and word != "{overrides}" for word in words):
            yield Problem(
                f"command.{key}", f"{{overrides}} in `command.{key}` must be a separate argument", '"{overrides}"'
            )
    if "{value}" not in command.override:
        yield Problem("command.override", "`command.override` has no {value}", "override: --{key}={value}")


def _source(key: str, source: Source) -> Iterator[Problem]:
    if not source.path and source.reader != "stdout":
        yield Problem(f"{key}.path", f"`{key}.path` is missing", "path: '{out}/metrics.jsonl'")
    if source.pattern is None:
        return
    try:
        groups = re.compile(source.pattern).groupindex
    except re.error as error:
        yield Problem(f"{key}.pattern", f"`{key}.pattern` cannot be read: {error}", r"(?P<step>\d+)")
        return
    if source.step not in groups:
        yield Problem(f"{key}.pattern", f"`{key}.pattern` has no group `{source.step}`", f"(?P<{source.step}>\\d+)")
