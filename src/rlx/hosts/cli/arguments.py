"""Arguments that several commands share, and how their values are read."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlx import TYPE_CHECKING, plugins
from rlx.errors import UsageError, hint_for
from rlx.runs import project
from rlx.runs.run import Run, find, find_all, is_pattern, names

if TYPE_CHECKING:
    from rlx.compare.question import ComparisonQuestion
    from rlx.study.study_folder import Study

Parser = argparse.ArgumentParser
Args = argparse.Namespace
Data = dict[str, Any]
"""What a command returns: `--json` prints it, `render` spells it."""
EXECUTOR_VARIABLE = "RLX_EXECUTOR"
PICTURE_KINDS = (".png", ".svg", ".pdf")


def add_run(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="the name of a run")


def add_runs(parser: Parser) -> None:
    """Add a run, or a pattern that stands for several: the command answers for each of them."""
    parser.add_argument("run", metavar="RUN", help="the name of a run, or a pattern: 'cartpole_*'")


def find_run(name: str) -> Run:
    """Return a run of this project."""
    run, colon, checkpoint = name.rpartition(":")
    if colon and not Path(name).exists() and run in names(project.root()):
        message = f"`{name}` names a policy, and this command takes a whole run"
        raise UsageError(message, hint=f"use {run}; eval, video, replay, explain and export take {run}:{checkpoint}")
    return find(name, root=project.root())


def find_runs(references: Iterable[str]) -> list[Run]:
    """Return runs of this project; a pattern such as `cartpole_*` stands for every run that it matches."""
    runs: dict[Path, Run] = {}
    for reference in references:
        for run in find_all(reference, root=project.root()) if is_pattern(reference) else [find_run(reference)]:
            runs.setdefault(run.path, run)
    return list(runs.values())


def for_each_run(reference: str, answer: Callable[[Run], Data]) -> Data:
    """Return the answer for a run. For a pattern that matches several, return all answers under `runs`.

    The exit code of several answers is the highest one.
    """
    runs = find_runs([reference])
    if len(runs) == 1:
        return answer(runs[0])
    answers = [answer(run) for run in runs]
    data: Data = {"runs": answers}
    codes = [row["exit_code"] for row in answers if "exit_code" in row]
    if codes:
        data["exit_code"] = max(codes)
    return data


def render_each(render: Callable[[Data], str], data: Data, *, between: str = "\n\n\n") -> str:
    """Spell the answer for one run, or those for several."""
    if "runs" not in data:
        return render(data)
    return between.join(render(row) for row in data["runs"])


def add_trust(parser: Parser) -> None:
    help_text = "run code from elsewhere: what a stored run, or a project that was made elsewhere, names"
    parser.add_argument("--trust", action="store_true", help=help_text)


def obey_trust(args: Args) -> None:
    """Let this command run code from outside the project's tree only if it was asked to."""
    from rlx.evaluate.stored_code import trust_stored_code

    trust_stored_code(is_trusted=args.trust)


def add_study(parser: Parser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="a study (default: the active one)")


def add_candidate(parser: Parser, *, also: str = "") -> None:
    parser.add_argument("candidate", metavar="CANDIDATE", help=f"the id of a candidate{also}")
    add_study_option(parser)


def add_study_option(parser: Parser) -> None:
    parser.add_argument("--study", metavar="STUDY", help="a study (default: the active one)")


def find_study(name: str | None) -> Study:
    """Return a study of this project by its name; None is the active one."""
    from rlx.study import study_folder

    return study_folder.find_study(project.root(), name)


def add_settings(parser: Parser, *, of: str = "the config") -> None:
    help_text = f"set a key of {of}; may be repeated"
    parser.add_argument("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help=help_text)


def add_metric(parser: Parser) -> None:
    """Add the option that judges a logged metric."""
    score = "judge the last logged value of this metric instead of rlx's evaluations"
    parser.add_argument("--metric", metavar="TAG[:lower]", help=score)


def add_question(parser: Parser) -> None:
    """Add the options that change what a comparison asks."""
    add_metric(parser)
    parser.add_argument("--budget-question", action="store_true", help="budgets may differ: does training longer help?")
    add_reuse(parser)


def add_reuse(parser: Parser) -> None:
    reuse = "count seeds together although the project's code changed in between; the result says so"
    parser.add_argument("--reuse", action="store_true", help=reuse)


def read_metric(args: Args) -> ComparisonQuestion:
    """Return the question that `--metric` asks, the standard one without it."""
    from rlx.compare.question import ComparisonQuestion

    metric = args.metric
    is_lower_better = bool(metric) and metric.endswith(":lower")
    if metric is not None:
        metric = metric.removesuffix(":lower").removesuffix(":higher")
    if metric == "":
        raise UsageError("--metric: no metric is named", hint="--metric rollout/return_mean")
    return ComparisonQuestion(metric, is_lower_better)


def read_question(args: Args) -> ComparisonQuestion:
    return replace(read_metric(args), budgets_may_differ=args.budget_question, is_reuse=args.reuse)


def add_executor(parser: Parser) -> None:
    """Add the option that says where jobs run."""
    names = ", ".join(plugins.EXECUTORS)
    parser.add_argument("--executor", metavar="NAME", help=f"where jobs run: {names} (default: rlx.toml, or local)")


@contextlib.contextmanager
def executor_named(name: str | None) -> Iterator[None]:
    """Let this executor start the jobs of a command; None leaves the choice to `rlx.toml`."""
    before = os.environ.get(EXECUTOR_VARIABLE)
    if name is not None:
        if name not in plugins.EXECUTORS:
            known = list(plugins.EXECUTORS)
            raise UsageError(f"unknown executor `{name}`", hint=hint_for(name, known, otherwise=", ".join(known)))
        os.environ[EXECUTOR_VARIABLE] = name
    try:
        yield
    finally:
        if name is not None:
            os.environ.pop(EXECUTOR_VARIABLE, None)
        if before is not None:
            os.environ[EXECUTOR_VARIABLE] = before


def add_picture(parser: Parser, *, where: str) -> None:
    kinds = ", ".join(PICTURE_KINDS)
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help=f"the picture: {kinds} (default: {where})")


def refuse_picture(out: Path | None) -> None:
    """Raise if a picture cannot be written in this format."""
    if out is not None and out.suffix.lower() not in PICTURE_KINDS:
        hint = f"use a name that ends in {', '.join(PICTURE_KINDS)}"
        raise UsageError(f"rlx cannot write a picture as `{out.suffix or out.name}`", hint=hint)


def refuse_below_one(args: Args, *options: str) -> None:
    """Raise if one of these options has a value below 1."""
    for option in options:
        value = getattr(args, option)
        if value is not None and value < 1:
            raise UsageError(f"--{option} {value}: must be at least 1", hint=f"--{option} 1")


def parse_seeds(text: str) -> int | tuple[int, ...]:
    """Read `5` as a count, and `0,7` or `0,` as a list of training seeds."""
    parts = [part.strip() for part in text.split(",")]
    numbers = [part for part in parts if part]
    if not numbers or not all(part.isascii() and part.isdigit() for part in numbers):
        raise UsageError(f"--seeds {text}: not a count or a list of seeds", hint="--seeds 5, --seeds 0,7 or --seeds 0,")
    if len(parts) > 1:
        if len(set(numbers)) != len(numbers):
            raise UsageError(f"--seeds {text}: a seed is listed twice", hint="list each seed once")
        return tuple(map(int, numbers))
    if int(text) < 1:
        raise UsageError("--seeds 0: must be at least 1", hint="--seeds 1, or `--seeds 0,` for the seed 0")
    return int(text)


def env_name(text: str) -> str:
    """Return the id or reference of an environment as the user typed it. An empty one is refused."""
    if not text.strip():
        raise UsageError("an environment needs an id", hint="rlx envs lists them")
    return text
