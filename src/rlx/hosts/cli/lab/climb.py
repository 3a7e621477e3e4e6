"""Go to the next rung of the budget ladder. The baseline and the accepted candidate run again there.

While a driver runs, rlx refuses this command: the driver climbs by itself.

Scores of different rungs are never compared: each rung is a study of its own. The study below stops. The new one is
approved by the same person if lab.yaml asks for no more than an asserted approval.

Example: rlx lab climb
"""

from __future__ import annotations

from rlx.hosts.cli.arguments import Args, Data, Parser, add_executor
from rlx.hosts.cli.output import labelled, say
from rlx.hosts.cli.progress import follow


def arguments(parser: Parser) -> None:
    parser.add_argument("--seconds", type=float, default=3600.0, metavar="N", help="wait at most so long (%(default)s)")
    add_executor(parser)


def run(args: Args) -> Data:
    from rlx.launch import launch
    from rlx.loop.lab import driver
    from rlx.loop.lab.climb import climb
    from rlx.loop.lab.lab_folder import Lab

    lab = Lab.open()
    wait = launch.wait if args.json else follow
    with driver.held(lab):  # a session that began at this rung must not be tried at the next one
        carried = climb(lab, say=say, seconds=args.seconds, follow=wait)
    return {"lab": lab.name, "rung": lab.rung.name, "carried": carried.document() if carried else None}


def render(data: Data) -> str:
    carried = "the head is the baseline, so nothing else runs again"
    if data["carried"]:
        carried = f"{data['carried']['row']}: {data['carried']['status']}"
    return labelled({"rung": data["rung"], "accepted candidate": carried, "next": "rlx lab brief"})
