"""Write docs/reference from the code; `--check` fails where a page is stale."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rlx.hosts.cli.commands import COMMANDS, GROUPS
from rlx.hosts.cli.parser import parser_of

REFERENCE = Path(__file__).parent / "reference"


def cli() -> str:
    """Return the page of every command, from its parser."""
    os.environ["COLUMNS"] = "110"
    parts = ["# Commands\n", "Generated from the code by `make docs`.\n"]
    for group in GROUPS:
        parts.append(f"## {group}\n")
        for name in (name for name, (of, _) in COMMANDS.items() if of == group):
            parts.append(f"### rlx {name}\n\n```text\n{parser_of(name).format_help().rstrip()}\n```\n")
    return "\n".join(parts)


def config() -> str:
    """Return the page of every config key, from the schema."""
    from rlx.config.reference import page

    return page()


def main(argv: list[str]) -> int:
    """Write the pages, or with `--check` compare them with what is there."""
    pages = {"cli.md": cli(), "config.md": config()}
    stale = [name for name, text in pages.items() if not _is_current(REFERENCE / name, text)]
    if "--check" in argv:
        for name in stale:
            print(f"docs/reference/{name} is stale: make docs", file=sys.stderr)
        return 1 if stale else 0
    REFERENCE.mkdir(exist_ok=True)
    for name in stale:
        (REFERENCE / name).write_text(pages[name], encoding="utf-8")
    return 0


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
