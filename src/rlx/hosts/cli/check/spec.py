"""Check every section of a spec against the real environment, with rule, card and source per finding.

rlx plays the environment: a defect that the spec declares away is still found. If there is a finding of severity high,
or one of severity medium about a section of the spec, the exit code is 1.

Example: rlx check spec
         rlx check spec specs/boss.yaml --seconds 10
"""

from __future__ import annotations

import shlex
from pathlib import Path

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_trust, obey_trust
from rlx.hosts.cli.format import counted, timespan
from rlx.hosts.cli.output import labelled
from rlx.hosts.cli.render_findings import paint_severity


def arguments(parser: Parser) -> None:
    parser.add_argument("spec", nargs="?", type=Path, default=Path("spec.yaml"), metavar="SPEC", help="spec.yaml")
    parser.add_argument("--seconds", default="4", metavar="TIME", help="play at most this long (default: %(default)s)")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.design.check_spec import check_spec
    from rlx.design.problem_spec import read_playable_spec
    from rlx.runs import project

    obey_trust(args)
    seconds = timespan(args.seconds)
    if seconds <= 0:
        raise UsageError(f"--seconds {args.seconds}: must be above 0", hint="--seconds 4")
    root = project.tree()
    checked = check_spec(read_playable_spec(args.spec, root=root), root=root, seconds=seconds)
    name = shlex.quote(str(args.spec))
    command = (
        f"rlx spec config {name}" if checked.is_sound else f"rlx check spec {name}, after you have fixed the findings"
    )
    return {
        "spec": str(args.spec),
        "env": checked.case.spec.env.id,
        "is_sound": checked.is_sound,
        "findings": checked.document(),
        "rules": len(checked.silent) + len({finding.rule for finding in checked.findings}),
        "unchecked": [{"what": what, "why": why} for what, why in checked.unchecked],
        "next": command,
        "exit_code": int(not checked.is_sound),
    }


def render(data: Data) -> str:
    state = "has findings to fix"
    if data["is_sound"]:
        state = "sound as far as it was checked" if data["unchecked"] else "sound"
    blocks = [labelled({data["spec"]: f"{state}; {counted(len(data['findings']), 'finding')} on {data['env']}"})]
    for finding in data["findings"]:
        lines = [f"{paint_severity(finding)}  {finding['rule']}: {finding['claim']}"]
        lines += [f"      try: {text}" for text in finding["try"]]
        if finding["cards"]:
            lines.append(f"      card: {', '.join(finding['cards'])}")
        lines += [f"      source: {text}" for text in finding["sources"][:2]]
        blocks.append("\n".join(lines))
    unchecked = [f"{row['what']}: {row['why']}" for row in data["unchecked"]]
    blocks.append(labelled({"not checked": unchecked, "next": data["next"]}))
    return "\n\n".join(blocks)
