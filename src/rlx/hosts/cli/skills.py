"""Install rlx's skills for coding agents, or remove them. rlx asks nothing.

Claude Code reads `.claude/skills`, Codex and others `.agents/skills`, in a project or in the home folder. rlx never
overwrites or removes a file that you edited. Codex also gets a marked block in AGENTS.md, which `uninstall` removes.
The plug-in contains the same skills, a hook and the MCP server: install either the plug-in or the skills (`rlx skills
list` prints the plug-in's commands). If something installed is not up to date, the exit code of `check` is 1.

Example: rlx skills install all
         rlx skills install claude --user --dry-run
         rlx skills uninstall codex
         rlx skills list
         rlx skills check
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.output import labelled, table
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.hosts.agents.install import InstallPlace

_DONE = {"write": "written", "update": "updated", "kept": "kept, because you edited it", "remove": "removed",
         "gone": "already removed"}  # fmt: skip
_DUE = {"write": "missing", "update": "old", "kept": "edited by you", "remove": "of an older version"}


def arguments(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="install|uninstall|list|check")
    for name, summary in (("install", "write or update the skills"), ("uninstall", "remove them")):
        action = actions.add_parser(name, help=summary)
        action.add_argument("host", nargs="?", choices=("claude", "codex", "all"), default="all", help="(default: all)")
        scope = action.add_mutually_exclusive_group()
        scope.add_argument("--project", action="store_true", help="in this project (the default)")
        scope.add_argument("--user", action="store_true", help="in the home folder, for every project")
        action.add_argument("--dry-run", action="store_true", help="print the changes without making them")
    actions.add_parser("list", help="list the skills and the commands that install the plug-in")
    actions.add_parser("check", help="check whether the installed files are up to date")


def run(args: Args) -> Data:
    data: Data = {"list": _list, "check": _check}.get(args.action, _change)(args)
    return {"action": args.action, **data}


def _change(args: Args) -> Data:
    from rlx.hosts.agents import install

    hosts = install.HOSTS if args.host == "all" else (args.host,)
    plan_of = install.planned if args.action == "install" else install.planned_removal
    plans = [plan_of(place) for place in install.places(hosts, root=project.root(), is_user=args.user)]
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


def _list(args: Args) -> Data:
    from rlx.hosts.agents import packaged_skills

    skills = [
        {"name": skill.name, "description": skill.description, "topics": [path.stem for path in skill.references]}
        for skill in packaged_skills.skills()
    ]
    agents = [path.stem for _, path in packaged_skills.agent_files()]
    commands = packaged_skills.plugin_commands()
    return {"skills": skills, "agents": agents, "plugin": commands, "next": "rlx skills install all"}


def _check(args: Args) -> Data:
    from rlx.hosts.agents import install

    root = project.root()
    places = [*install.places(root=root, is_user=False), *install.places(root=root, is_user=True)]
    installed = [_state(place) for place in places if place.manifest.is_file()]
    is_current = all(state["is_current"] for state in installed)
    return {"installed": installed, "is_current": is_current, "exit_code": int(not is_current)}


def _state(place: InstallPlace) -> Data:
    from rlx.hosts.agents import install

    plan = install.planned(place)
    return {
        "host": place.host,
        "scope": "user" if place.is_user else "project",
        "folder": str(place.folder),
        "version": place.recorded().get("version"),
        "is_current": not plan.changes,
        "files": [step.document(place.base) for step in plan.steps if step.change != "same"],
    }


def render(data: Data) -> str:
    if data["action"] == "list":
        return _render_list(data)
    if data["action"] == "check":
        return _render_check(data["installed"])
    lines = []
    for place in data["places"]:
        note = " (dry run: nothing was changed)" if data["is_dry_run"] else ""
        lines.append(f"{place['host']}: {place['folder']}: {place['changes']} changed{note}")
        lines += [f"  {_DONE[file['change']]}: {file['file']}" for file in place["files"] if file["change"] in _DONE]
    return "\n".join([*lines, f"next: {data['next']}"])


def _render_list(data: Data) -> str:
    rows = [[skill["name"], skill["description"]] for skill in data["skills"]]
    commands = {f"plug-in for {host}": words for host, words in data["plugin"].items()}
    agents = f"agents (Claude Code): {', '.join(data['agents'])}"
    return f"{table(['skill', 'description'], rows)}\n{agents}\n\n{labelled({**commands, 'next': data['next']})}"


def _render_check(installed: list[Data]) -> str:
    if not installed:
        return "nothing is installed here or in the home folder\nnext: rlx skills install all"
    lines = []
    for place in installed:
        state = "up to date" if place["is_current"] else f"not up to date (installed by {place['version']})"
        lines.append(f"{place['host']} ({place['scope']}): {state}: {place['folder']}")
        lines += [f"  {_DUE.get(file['change'], file['change'])}: {file['file']}" for file in place["files"]]
    old = [place for place in installed if not place["is_current"]]
    if not old:
        return "\n".join([*lines, "next: rlx skills list"])
    hosts = {place["host"] for place in old}
    command = f"rlx skills install {hosts.pop() if len(hosts) == 1 else 'all'}"
    if any(place["scope"] == "user" for place in old):
        command += " --user"
    return "\n".join([*lines, f"next: {command}"])
