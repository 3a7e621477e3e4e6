"""Show, check or compare configs, or print their JSON Schema.

A config is a YAML file, `catalog:NAME`, or (for show and diff) a run, which stands for its config.

Example: rlx config show configs/cartpole.yaml -s algo.gamma=0.9
         rlx config check configs/cartpole.yaml catalog:pendulum
         rlx config diff configs/cartpole.yaml cartpole_ppo_001
         rlx config schema > rlx.schema.json
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import NotFound, RlxError

if TYPE_CHECKING:
    from rlx.config.load import Checked
    from rlx.config.schema import Experiment
    from rlx.train.choose import Choice


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|check|diff|schema")
    show = actions.add_parser("show", help="print a config with every default filled in")
    show.add_argument("config", help="a YAML file, catalog:NAME, or a run")
    check = actions.add_parser("check", help="say everything that is wrong with configs; exit 2 where something is")
    check.add_argument("configs", nargs="+", metavar="config", help="a YAML file or catalog:NAME")
    check.add_argument("--no-env", action="store_true", help="do not make the environment")
    for command in (show, check):
        command.add_argument("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="override a key")
    diff = actions.add_parser("diff", help="print the keys in which two configs differ")
    diff.add_argument("before", help="a YAML file, catalog:NAME, or a run")
    diff.add_argument("after", help="the same")
    actions.add_parser("schema", help="print the JSON Schema of a config file, for editors")


def run(args: argparse.Namespace) -> dict[str, Any]:
    data: dict[str, Any] = _ACTIONS[args.action](args)
    return {"action": args.action, **data}


def render(data: dict[str, Any]) -> str:
    text: str = _TEXTS[data["action"]](data)
    return text


def _show(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.config.load import config_hash, group_hash, parse

    config = _resolved(args.config, overrides=args.set)
    choice = _choice(parse(config, source=args.config), Path(args.config))
    hashes = {"config_hash": config_hash(choice.experiment), "group_hash": group_hash(choice.experiment)}
    return {"config": config, "backend": choice.experiment.backend, "reason": choice.reason, **hashes}


def _choice(experiment: Experiment, path: Path) -> Choice:
    """Return what training would choose; an environment that cannot be made here leaves that open."""
    from rlx.envs.make import inspect
    from rlx.runs import project
    from rlx.train.choose import AUTO, TOLD, Choice, choose

    if experiment.backend != AUTO:
        return Choice(experiment, TOLD, ())
    try:
        return choose(experiment, inspect(experiment.env, root=project.root_of(path)))
    except RlxError as error:
        return Choice(experiment, f"chosen when it trains; {error.message}", ())


def _show_text(data: dict[str, Any]) -> str:
    from rlx.config.load import dump_data

    return f"{dump_data(data['config'])}# backend {data['backend']}: {data['reason']}\n"


def _resolved(reference: str, *, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """Return the resolved config of a file, a catalog entry or a run."""
    from rlx.config.load import document, read

    path = Path(reference)
    if reference.startswith("catalog:") or path.suffix in (".yaml", ".yml") or path.is_file():
        return document(read(path, overrides=list(overrides)))
    return _of_run(reference, list(overrides))


def _of_run(reference: str, overrides: list[str]) -> dict[str, Any]:
    from rlx.config.load import document, read
    from rlx.runs import project
    from rlx.runs.run import SNAPSHOT, find

    try:
        snapshot = find(reference, root=project.root()).path / SNAPSHOT
    except NotFound as error:
        from rlx.config.yaml_lines import near_files

        near = near_files(Path(reference))
        hint = near if near.startswith("did you mean") else error.hint
        raise NotFound(f"no config file and no run `{reference}`", hint=hint) from None
    return document(read(snapshot, overrides=overrides))


def _check(args: argparse.Namespace) -> dict[str, Any]:
    checked = [_check_one(name, args.set, with_env=not args.no_env) for name in args.configs]
    codes = [code for _, code in checked if code]
    return {"configs": [entry for entry, _ in checked], "exit_code": codes[0] if codes else 0}


def _check_one(reference: str, overrides: list[str], *, with_env: bool) -> tuple[dict[str, Any], int]:
    from rlx.config import devices
    from rlx.config.load import check
    from rlx.diagnose.stopping import stop_problems

    try:
        checked = check(Path(reference), overrides=overrides, devices=devices.present())
        backend: dict[str, str] = {}
        if checked.experiment is not None:
            checked = checked.also(tuple(stop_problems(checked.experiment.stop)))
        if with_env and checked.experiment is not None:
            checked, backend = _with_env(checked, checked.experiment, Path(reference))
    except RlxError as error:  # the file itself, or the environment
        problem = {"message": error.message, "hint": error.hint, "is_error": True}
        return {"config": reference, "is_fine": False, "problems": [problem]}, error.exit_code
    problems = [
        {"place": str(found.place), "key": found.problem.key, "message": str(found), "hint": found.problem.hint,
         "is_error": found.problem.is_error}
        for found in checked.found
    ]  # fmt: skip
    entry = {"config": reference, "is_fine": not checked.errors, "problems": problems, **backend}
    return entry, 2 if checked.errors else 0


def _with_env(checked: Checked, experiment: Experiment, path: Path) -> tuple[Checked, dict[str, str]]:
    """Make the environment once and choose the backend, as training would."""
    from rlx.envs.make import inspect
    from rlx.evaluate.scenarios import scenario_problems
    from rlx.runs import project
    from rlx.train.choose import as_told, choose, makes_env

    if not makes_env(experiment):
        choice = as_told(experiment)
        return checked, {"backend": choice.experiment.backend, "reason": choice.reason}
    root = project.root_of(path)
    choice = choose(experiment, inspect(experiment.env, root=root))
    problems = (*choice.problems, *scenario_problems(experiment, root=root))
    return checked.also(problems), {"backend": choice.experiment.backend, "reason": choice.reason}


def _check_text(data: dict[str, Any]) -> str:
    lines = []
    for entry in data["configs"]:
        for problem in entry["problems"]:
            lines.append(f"{'error' if problem['is_error'] else 'note'}: {problem['message']}")
            lines += [f"  hint: {problem['hint']}"] if problem["hint"] else []
        if entry["is_fine"]:
            lines.append(f"{entry['config']}: fine")
            lines += [f"  backend {entry['backend']}: {entry['reason']}"] if "backend" in entry else []
    return "\n".join(lines)


def _diff(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.config.diff import diff

    before, after = _resolved(args.before), _resolved(args.after)
    if before["backend"] != after["backend"]:
        before, after = _with_backend(before, args.before), _with_backend(after, args.after)
    changes = diff(before, after)
    rows = [{"key": change.key, "before": change.before, "after": change.after} for change in changes]
    return {"before": args.before, "after": args.after, "changes": rows}


def _with_backend(config: dict[str, Any], reference: str) -> dict[str, Any]:
    """Return a config that names the backend training would choose: `auto` and what it stands for do not differ."""
    from rlx.config.load import parse

    return {**config, "backend": _choice(parse(config, source=reference), Path(reference)).experiment.backend}


def _diff_text(data: dict[str, Any]) -> str:
    from rlx.hosts.cli.output import table

    if not data["changes"]:
        return "no difference"
    rows = [[row["key"], _word(row["before"]), _word(row["after"])] for row in data["changes"]]
    return table(["key", data["before"], data["after"]], rows)


def _word(value: object) -> str:
    from rlx.files import encode

    return "–" if value is None else value if isinstance(value, str) else encode(value).decode()


def _schema(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.config.json_schema import json_schema

    return {"json_schema": json_schema()}


def _schema_text(data: dict[str, Any]) -> str:
    from rlx.files import encode_pretty

    return encode_pretty(data["json_schema"]).decode()


_ACTIONS = {"show": _show, "check": _check, "diff": _diff, "schema": _schema}
_TEXTS = {"show": _show_text, "check": _check_text, "diff": _diff_text, "schema": _schema_text}
