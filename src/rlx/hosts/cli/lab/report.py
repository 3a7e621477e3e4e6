"""Write the morning page of a lab: what ran, what it cost, what was confirmed, what was learned and what is next.

Every number has a link to the file that it comes from. The page is Markdown, in .rlx/labs/NAME/report.md.

Example: rlx lab report
"""

from __future__ import annotations

from rlx.hosts.cli.arguments import Args, Data, Parser


def arguments(_parser: Parser) -> None:
    """It has no options."""


def run(_args: Args) -> Data:
    from rlx.loop.lab.lab_folder import Lab
    from rlx.loop.lab.morning_report import describe_lab, write_report

    lab = Lab.open()
    path = write_report(lab)
    text = path.read_text(encoding="utf-8")
    return {**describe_lab(lab), "report": path.relative_to(lab.root).as_posix(), "text": text}


def render(data: Data) -> str:
    text: str = data["text"]
    return f"{text.rstrip()}\n\nreport: {data['report']}"
