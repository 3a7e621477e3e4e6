"""Write docs/reference and the plug-in's manifests from the code; `--check` fails if a file is stale."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

from rlx.hosts.agents import manifests
from rlx.hosts.cli.commands import COMMANDS, GROUPS
from rlx.hosts.cli.parser import parser_of

ROOT = Path(__file__).parent.parent


def cli() -> str:
    """Return the page that lists every command, from its parser."""
    os.environ["COLUMNS"] = "110"
    parts = ["# Commands\n", "Generated from the code by `make docs`.\n"]
    for group in GROUPS:
        parts.append(f"## {group}\n")
        for name in (name for name, (of, _) in COMMANDS.items() if of == group):
            parts.append(f"### rlx {name}\n\n```text\n{parser_of(name).format_help().rstrip()}\n```\n")
    return "\n".join(parts)


def config() -> str:
    """Return the page that lists every config key, from the schema."""
    from rlx.config.docs_page import page

    return page()


def topics() -> str:
    """Return the page that lists the design topics with their cards, check, recipe and command."""
    from rlx.design.topic_table import table_rows

    lines = [
        "# Design topics\n",
        "Generated from the code by `make docs`. `rlx docs TOPIC --run` runs a topic's recipes.\n",
    ]
    lines += ["| topic | cards | check | recipe | command |", "|---|---|---|---|---|"]
    for row in table_rows():
        lines.append(f"| {row['topic']} | {row['cards']} | {row['check']} | {row['recipe']} | `{row['command']}` |")
    return "\n".join(lines) + "\n"


def version() -> str:
    """Return the version from pyproject.toml."""
    project: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["version"]


def main(argv: list[str]) -> int:
    """Write the files; with `--check`, only compare them."""
    written = {
        "docs/reference/cli.md": cli(),
        "docs/reference/config.md": config(),
        "docs/reference/topics.md": topics(),
        **manifests.files(ROOT, version()),
    }
    stale = [name for name, text in written.items() if not _is_current(ROOT / name, text)]
    if "--check" in argv:
        for name in stale:
            print(f"{name} is stale: make docs", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(written[name], encoding="utf-8")
    return 0


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
