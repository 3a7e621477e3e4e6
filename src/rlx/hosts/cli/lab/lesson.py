"""Record what an attempt taught. Evidence is FILE#path.to.value, in a JSON file of the lab.

A lesson that calls a value missing is refused if the value exists (exit code 4).

Example: rlx lab lesson c003 --text "a longer rollout halves the spread" --evidence FILE#figures.return
         rlx lab lesson c003 --text "no margin was measured" --missing FILE#figures.margin
"""

from __future__ import annotations

from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.output import labelled


def arguments(parser: Parser) -> None:
    parser.add_argument("candidate", metavar="CANDIDATE", help="a candidate of this rung")
    parser.add_argument("--text", required=True, metavar="TEXT", help="what was learned")
    parser.add_argument("--evidence", action="append", default=[], metavar="FILE#PATH", help="a value that supports it")
    parser.add_argument("--missing", action="append", default=[], metavar="FILE#PATH", help="a value that is missing")


def run(args: Args) -> Data:
    from rlx.loop.lab.lab_folder import Lab
    from rlx.loop.lab.lesson import record_lesson

    lab = Lab.open()
    attempt = record_lesson(lab, args.candidate, args.text, evidence=args.evidence, missing=args.missing)
    return {"lab": lab.name, **attempt.document()}


def render(data: Data) -> str:
    return labelled({"attempt": data["row"], "lesson": data["lesson"]})
