"""Show, check or compare configs, or print their JSON Schema.

A config is a YAML file or `catalog:NAME`. For show and diff it may also be a run, which stands for its config.

Example: rlx config show configs/cartpole.yaml -s algo.gamma=0.9
         rlx config check configs/cartpole.yaml catalog:pendulum
         rlx config diff configs/cartpole.yaml cartpole_ppo_001
         rlx config schema > rlx.schema.json
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import NotFound, RlxError
from rlx.hosts.cli import schema
from rlx.hosts.cli.arguments import Args, Data, Parser, add_settings, add_trust, find_run, obey_trust
from rlx.hosts.cli.format import NOTHING

if TYPE_CHECKING:
    from rlx.config.load import CheckedConfig
    from rlx.config.schema import Experiment
    from rlx.train.choose_backend import BackendChoice


def arguments(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|check|diff|schema")
    show = actions.add_parser("show", help="print a config with every default filled in")
    show.add_argument("config", help="a YAML file, catalog:NAME, or a run")
    check = actions.add_parser("check", help="list every problem of configs; if there is an error, the exit code is 2")
    check.add_argument("configs", nargs="+", metavar="config", help="a YAML file or catalog:NAME")
    check.add_argument("--no-env", action="store_true", help="do not make the environment")
    add_settings(show)
    add_settings(check)
    add_trust(show)
    add_trust(check)
    diff = actions.add_parser("diff", help="print the keys in which two configs differ")
    diff.add_argument("before", help="a YAML file, catalog:NAME, or a run")
    diff.add_argument("after", help="the same")
    actions.add_parser("schema", help="print the JSON Schema of a config file, for editors")


def run(args: Args) -> Data:
    if args.action in ("show", "check"):
        obey_trust(args)
    if args.action == "schema":
        return {"action": args.action, "json_schema": schema.json_schema("config")}
    return {"action": args.action, **_ACTIONS[args.action](args)}


def render(data: Data) -> str:
    return _TEXTS[data["action"]](data)


def _show(args: Args) -> Data:
    from rlx.config.load import config_hash, group_hash, parse

    config = _resolved(args.config, overrides=args.set)
    choice = _choice(parse(config, source=args.config), args.config)
    hashes = {"config_hash": config_hash(choice.experiment), "group_hash": group_hash(choice.experiment)}
    return {"config": config, "backend": choice.experiment.backend, "reason": choice.reason, **hashes}


def _choice(experiment: Experiment, reference: str) -> BackendChoice:
    """Return the backend that training would choose; it stays open if the environment cannot be made here."""
    from rlx.config.load import document
    from rlx.envs.make import inspect
    from rlx.evaluate.stored_code import refuse_code_of_foreign_project, refuse_stored_code, stored_experiment
    from rlx.runs import project
    from rlx.train.choose_backend import AUTO, FROM_CONFIG, BackendChoice, choose

    if experiment.backend != AUTO:
        return BackendChoice(experiment, FROM_CONFIG, ())
    root = project.root_of(Path(reference))
    try:
        if _is_run(reference):
            stored_experiment(find_run(reference), root=root)
        refuse_stored_code(Path(reference), root=root)
        refuse_code_of_foreign_project(document(experiment), root=root)
        return choose(experiment, inspect(experiment.env, root=root))
    except RlxError as error:
        return BackendChoice(experiment, f"chosen when training starts; {error.message}", ())


def _show_text(data: Data) -> str:
    from rlx.config.load import dump_data

    return f"{dump_data(data['config'])}# backend {data['backend']}: {data['reason']}\n"


def _resolved(reference: str, *, overrides: Iterable[str] = ()) -> Data:
    """Return the resolved config of a file, a catalog entry or a run."""
    from rlx.config.load import document, read
    from rlx.config.yaml_lines import near_files
    from rlx.runs.run import SNAPSHOT

    path = Path(reference)
    if _is_run(reference):
        try:
            run = find_run(reference)
            path = run.path / SNAPSHOT
            if not path.is_file():
                _ = run.config  # raises an error that names what is missing
        except NotFound as error:
            hint = f"{near_files(path)} Runs: {error.hint}"
            raise NotFound(f"no config file and no run `{reference}`", hint=hint) from None
    return document(read(path, overrides=list(overrides)))


def _is_run(reference: str) -> bool:
    """Say whether a reference means a run, not a file or a catalog entry."""
    path = Path(reference)
    return not reference.startswith("catalog:") and path.suffix not in (".yaml", ".yml") and not path.is_file()


def _check(args: Args) -> Data:
    entries = []
    exit_code = 0
    for reference in args.configs:
        entry, code = _check_one(reference, args.set, with_env=not args.no_env)
        entries.append(entry)
        exit_code = exit_code or code
    return {"configs": entries, "exit_code": exit_code}


def _check_one(reference: str, overrides: list[str], *, with_env: bool) -> tuple[Data, int]:
    from rlx.config import devices
    from rlx.config.load import check
    from rlx.diagnose.early_stop import stop_problems

    backend: dict[str, str] = {}
    try:
        checked = check(Path(reference), overrides=overrides, devices=devices.present())
        experiment = checked.experiment
        if experiment is not None:
            checked = checked.also(tuple(stop_problems(experiment.stop)))
            if with_env:
                checked, backend = _with_env(checked, experiment, Path(reference))
    except RlxError as error:  # the file itself, or the environment
        problem = {"message": error.message, "hint": error.hint, "is_error": True}
        return {"config": reference, "is_fine": False, "problems": [problem]}, error.exit_code
    problems = [
        {"place": str(problem.place), "key": problem.problem.key, "message": str(problem), "hint": problem.problem.hint,
         "is_error": problem.problem.is_error}
        for problem in checked.problems
    ]  # fmt: skip
    is_fine = not checked.errors
    return {"config": reference, "is_fine": is_fine, "problems": problems, **backend}, 2 * (not is_fine)


def _with_env(checked: CheckedConfig, experiment: Experiment, path: Path) -> tuple[CheckedConfig, dict[str, str]]:
    """Make the environment once and choose the backend, as training would."""
    from rlx.envs.make import inspect
    from rlx.evaluate.scenarios import scenario_problems
    from rlx.evaluate.stored_code import refuse_stored_code
    from rlx.runs import project
    from rlx.train.choose_backend import as_configured, choose, makes_env

    if makes_env(experiment):
        root = project.root_of(path)
        refuse_stored_code(path, root=root)
        choice = choose(experiment, inspect(experiment.env, root=root))
        checked = checked.also((*choice.problems, *scenario_problems(experiment, root=root)))
    else:
        choice = as_configured(experiment)
    return checked, {"backend": choice.experiment.backend, "reason": choice.reason}


def _check_text(data: Data) -> str:
    lines = []
    for entry in data["configs"]:
        for problem in entry["problems"]:
            label = "error" if problem["is_error"] else "note"
            lines.append(f"{label}: {problem['message']}")
            if problem["hint"]:
                lines.append(f"  hint: {problem['hint']}")
        if entry["is_fine"]:
            lines.append(f"{entry['config']}: fine")
            if "backend" in entry:
                lines.append(f"  backend {entry['backend']}: {entry['reason']}")
    return "\n".join(lines)


def _diff(args: Args) -> Data:
    from rlx.config.diff import diff

    before = _resolved(args.before)
    after = _resolved(args.after)
    if before["backend"] != after["backend"]:
        before = _with_backend(before, args.before)
        after = _with_backend(after, args.after)
    rows = [{"key": row.key, "before": row.before, "after": row.after} for row in diff(before, after)]
    return {"before": args.before, "after": args.after, "changes": rows}


def _with_backend(config: Data, reference: str) -> Data:
    """Replace `auto` by the backend that training would choose, so that the two do not differ."""
    from rlx.config.load import parse

    return {**config, "backend": _choice(parse(config, source=reference), reference).experiment.backend}


def _diff_text(data: Data) -> str:
    from rlx.hosts.cli.output import table

    if not data["changes"]:
        return "no difference"
    rows = [[row["key"], _value(row["before"]), _value(row["after"])] for row in data["changes"]]
    return table(["key", data["before"], data["after"]], rows)


def _value(value: object) -> str:
    from rlx.files import encode

    if value is None:
        return NOTHING
    if isinstance(value, str):
        return value
    return encode(value).decode()


_ACTIONS = {"show": _show, "check": _check, "diff": _diff}
_TEXTS = {"show": _show_text, "check": _check_text, "diff": _diff_text, "schema": schema.render}
