"""List environments with spaces, horizon and reward threshold: Gymnasium's registry and this project's own (envs/*.py).

PATTERN is a part of an id or a glob; case does not matter. Without --all, rlx lists only the newest version of each.

Example: rlx envs cartpole
"""

from rlx.hosts.cli.arguments import Args, Data, Parser, add_trust
from rlx.hosts.cli.format import figure
from rlx.hosts.cli.output import table


def arguments(parser: Parser) -> None:
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="a part of an id, or a glob such as 'Half*'")
    add_trust(parser)
    parser.add_argument("--all", action="store_true", help="list older versions too")


def run(args: Args) -> Data:
    from dataclasses import asdict

    from rlx.envs.registry import listing
    from rlx.runs import project

    makes_own = args.trust or project.is_own(project.root())
    rows = listing(args.pattern, root=project.tree(), include_old=args.all, makes_own=makes_own)
    in_project = (project.root() / project.MARKER).is_file()
    return {"envs": [asdict(row) for row in rows], "total": len(rows), "in_project": in_project}


def render(data: Data) -> str:
    usable = [env for env in data["envs"] if env["problem"] is None]
    blocks = _problems([env for env in data["envs"] if env["problem"] is not None])
    if usable:
        rows = [
            [env["id"], env["observation"], env["action"], figure(env["horizon"]), figure(env["threshold"])]
            for env in usable
        ]
        blocks.insert(0, table(("env", "observation", "action", "horizon", "threshold"), rows, right=(3, 4)))
        command = "rlx check env" if data["in_project"] else "rlx init demo --env"
        blocks.append(f"next: {command} {usable[0]['id']}")
    return "\n\n".join(blocks)


def _problems(envs: list[Data]) -> list[str]:
    """Group missing packages by the command that installs them; list other problems one by one."""
    missing: dict[str, list[str]] = {}
    broken = []
    for env in envs:
        if env["is_installed"]:
            broken.append(f"\n  {env['id']}: {env['problem']}")
        else:
            missing.setdefault(env["hint"] or env["problem"], []).append(env["id"])
    blocks = [f"not installed: {', '.join(ids)}\n  {hint}" for hint, ids in missing.items()]
    if broken:
        blocks.append("cannot be made:" + "".join(broken))
    return blocks
