"""Print everything that an agent with an empty memory needs, in at most 8 kB.

The brief has the mission, the rules, the state of the search, the ten largest effects, the newest attempts and the open
ideas that findings suggest. --media also draws the head's worst and median episode into one picture and names its file.

Example: rlx lab brief
         rlx lab brief --media
"""

from __future__ import annotations

from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.output import say


def arguments(parser: Parser) -> None:
    parser.add_argument("--media", action="store_true", help="draw a contact sheet of the head, and name its file")


def run(args: Args) -> Data:
    from rlx.loop.lab.brief import brief
    from rlx.loop.lab.brief_media import head_sheet
    from rlx.loop.lab.lab_folder import Lab

    lab = Lab.open()
    if not args.media:
        return {"lab": lab.name, "brief": brief(lab), "sheet": None}
    say("drawing the head's worst and median episode …")
    sheet = head_sheet(lab)
    picture = str(sheet.path) if sheet.path else f"no picture: {sheet.problem}"
    return {"lab": lab.name, "brief": brief(lab, picture=picture), "sheet": sheet.path and str(sheet.path)}


def render(data: Data) -> str:
    return str(data["brief"]).rstrip("\n")
