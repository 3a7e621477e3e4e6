"""The documents are true: every command is documented, every printed command line parses, generated pages are fresh."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rlx.hosts.cli.commands import COMMANDS, module_name
from rlx.hosts.cli.parser import parser_of

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
SCRIPTS = [*(ROOT / "examples").rglob("*.sh")]


def command_lines() -> list[tuple[str, str]]:
    """Return every `rlx …` line inside a code block of a page or in an example script."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S):
            found += [(page.name, line) for line in lines_in(block)]
    for script in SCRIPTS:
        found += [(script.name, line) for line in lines_in(script.read_text(encoding="utf-8"))]
    return found


def lines_in(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    lines = [re.sub(r"^\$ ", "", line.strip()) for line in joined.splitlines()]
    parts = [part.strip() for line in lines for part in re.split(r"&&|\|\||;", line.split("  #")[0])]
    parts = [re.sub(r"^(step|\[.*?\])\s+", "", part) for part in parts]
    return [part for part in parts if part.startswith("rlx ")]


def words_of(line: str) -> list[str]:
    """Return what `rlx` gets to see of a shell line: no comment, no redirection."""
    plain = re.sub(r"\s\d?>>?\s*\S+", "", line.split("  #")[0])
    return shlex.split(plain)[1:]


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_every_printed_command_line_parses(page: str, line: str) -> None:
    words = words_of(line)
    if words[0] in ("--help", "--version"):
        return
    parser_of(words[0]).parse_args(words[1:])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example_that_parses(command: str) -> None:
    __import__(module_name(command))
    text = sys.modules[module_name(command)].__doc__ or ""
    examples = re.findall(r"^(?:Examples?:)?\s+?(rlx .*)$|^Examples?: (rlx .*)$", text, flags=re.M)
    lines = [one or other for one, other in examples]
    assert lines, f"rlx {command} --help shows no example"
    for line in lines:
        words = words_of(line)
        assert words[0] == command
        parser_of(command).parse_args(words[1:])


def test_generated_pages_are_fresh() -> None:
    words = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_link_between_pages_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                broken.append(f"{page.name} → {target}")
    assert broken == []
