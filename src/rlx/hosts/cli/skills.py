"""Install rlx's skills for coding agents, or remove them; asks nothing.

Claude Code reads `.claude/skills`, Codex and others `.agents/skills`, in a project or in the home. A file you edited is
never overwritten or removed. Codex also gets one marked block in AGENTS.md, which `uninstall` takes out to the byte.
The plug-in has the same skills, and a hook and the MCP server with them: install one or the other
(`rlx skills list` prints the plug-in's commands). `check` ends with 1 where something installed is not up to date.

Example: rlx skills install all
         rlx skills install claude --user --dry-run
         rlx skills uninstall codex
         rlx skills list
         rlx skills check
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import table
from rlx.runs import project

_WORDS = {"write": "written", "update": "updated", "same": "up to date", "kept": "kept, you edited it",
          "remove": "removed", "gone": "gone already"}  # fmt: skip


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="install|uninstall|list|check")
    for name, summary in (("install", "write the skills, or bring them up to date"), ("uninstall", "remove them")):
        action = actions.add_parser(name, help=summary)
        action.add_argument("host", nargs="?", choices=("claude", "codex", "all"), default="all", help="whose (all)")
        scope = action.add_mutually_exclusive_group()
        scope.add_argument("--project", action="store_true", help="in this project (the default)")
        scope.add_argument("--user", action="store_true", help="in the home, for every project")
        action.add_argument("--dry-run", action="store_true", help="say what would change, change nothing")
    actions.add_parser("list", help="name the skills, and the commands of the plug-in")
    actions.add_parser("check", help="say whether what is installed is up to date")


def run(args: argparse.Namespace) -> dict[str, Any]:
    data: dict[str, Any] = {"list": _list, "check": _check}.get(args.action, _change)(args)
    return {"action": args.action, **data}


def _change(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.hosts import install

    hosts = install.HOSTS if args.host == "all" else (args.host,)
    places = install.places(hosts, root=project.root(), is_user=args.user)
    plans = [install.planned(each) if args.action == "install" else install.planned_removal(each) for each in places]
    if not args.dry_run:
        for plan in plans:
            install.apply(plan)
    return {
        "is_dry_run": args.dry_run,
        "places": [
            {"host": plan.place.host, "folder": str(plan.place.folder), "changes": len(plan.changes),
             "files": [step.document(plan.place.base) for step in plan.steps]}
            for plan in plans
        ],
        "next": "rlx skills check" if args.action == "install" else "rlx skills list",
    }  # fmt: skip


def _list(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.hosts import shipped

    market = str(shipped.PLUGIN.parent)
    skills = [
        {"name": one.name, "description": one.description, "topics": [path.stem for path in one.references]}
        for one in shipped.skills()
    ]
    agents = [path.stem for _, path in shipped.agent_files()]
    return {"skills": skills, "agents": agents, "plugin": _plugin_commands(market), "next": "rlx skills install all"}


def _plugin_commands(market: str) -> dict[str, list[str]]:
    """Return the clients' own commands that install the plug-in out of this package."""
    from shlex import quote

    return {
        "claude": [f"claude plugin marketplace add {quote(market)}", "claude plugin install rlx@rlx"],
        "codex": [f"codex plugin marketplace add {quote(market)}", "codex plugin add rlx@rlx"],
    }


def _check(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.hosts import install

    root = project.root()
    every = [place for is_user in (False, True) for place in install.places(install.HOSTS, root=root, is_user=is_user)]
    found = [_state(place) for place in every if place.manifest.is_file()]
    is_current = all(one["is_current"] for one in found)
    return {"installed": found, "is_current": is_current, "exit_code": 0 if is_current else 1}


def _state(place: Any) -> dict[str, Any]:
    from rlx.hosts import install

    plan = install.planned(place)
    return {
        "host": place.host,
        "scope": "user" if place.is_user else "project",
        "folder": str(place.folder),
        "version": place.recorded().get("version"),
        "is_current": not plan.changes,
        "files": [step.document(place.base) for step in plan.steps if step.change != "same"],
    }


def render(data: dict[str, Any]) -> str:
    if data["action"] == "list":
        return _listed(data)
    return _checked(data) if data["action"] == "check" else _changed(data)


def _changed(data: dict[str, Any]) -> str:
    lines = []
    for place in data["places"]:
        would = " (dry run: nothing was changed)" if data["is_dry_run"] else ""
        lines.append(f"{place['host']}: {place['folder']}: {place['changes']} changed{would}")
        lines += [f"  {_WORDS[one['change']]}: {one['file']}" for one in place["files"] if one["change"] != "same"]
    return "\n".join([*lines, f"next: {data['next']}"])


def _listed(data: dict[str, Any]) -> str:
    rows = [[one["name"], one["description"]] for one in data["skills"]]
    lines = [table(["skill", "description"], rows), f"agents (Claude Code): {', '.join(data['agents'])}", ""]
    for host, commands in data["plugin"].items():
        lines += [f"plug-in for {host}: {command}" for command in commands]
    return "\n".join([*lines, f"next: {data['next']}"])


def _checked(data: dict[str, Any]) -> str:
    if not data["installed"]:
        return "nothing is installed here or in the home\nnext: rlx skills install all"
    lines = []
    for one in data["installed"]:
        state = "up to date" if one["is_current"] else f"not up to date (installed by {one['version']})"
        lines.append(f"{one['host']} ({one['scope']}): {state}: {one['folder']}")
        lines += [f"  {_due(step)}: {step['file']}" for step in one["files"]]
    old = [one for one in data["installed"] if not one["is_current"]]
    hosts = {one["host"] for one in old}
    scope = " --user" if any(one["scope"] == "user" for one in old) else ""
    again = f"rlx skills install {hosts.pop() if len(hosts) == 1 else 'all'}{scope}"
    return "\n".join([*lines, f"next: {again if old else 'rlx skills list'}"])


def _due(step: dict[str, str]) -> str:
    return {"write": "missing", "update": "old", "remove": "of an older version", "kept": "edited by you"}.get(
        step["change"], step["change"]
    )
