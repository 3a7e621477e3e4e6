"""`--notify CMD`: run a person's own command when a run has ended, whatever the end is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Parser
from rlx.hosts.cli.output import say
from rlx.runs.run import Run

EXAMPLE = """--notify 'notify-send "{run} is {state}"'"""


def add_notify(parser: Parser) -> None:
    help_text = "run this command at the end; {run} and {state} are filled in"
    parser.add_argument("--notify", type=read_command, metavar="CMD", help=help_text)


def read_command(text: str) -> tuple[str, ...]:
    """Split a command into its words. No shell runs it."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--notify {text}: {error}", hint=EXAMPLE) from None
    if not words:
        raise UsageError("--notify: no command is given", hint=EXAMPLE)
    return tuple(words)


@contextmanager
def notified(command: tuple[str, ...] | None, path: Path) -> Iterator[None]:
    """Run the command when the block ends, also if it was interrupted or failed."""
    try:
        yield
    finally:
        if command:
            notify(command, Run(path))


def notify(command: tuple[str, ...], run: Run) -> None:
    """Run the command with the run's name and state. A command that fails is a note, not an error of the run."""
    from rlx.external_programs import run_notice

    facts = {"run": run.name, "state": run.status}
    words = []
    for word in command:
        for name, value in facts.items():
            word = word.replace(f"{{{name}}}", value)
        words.append(word)
    problem = run_notice(words, environment={f"RLX_{name.upper()}": value for name, value in facts.items()})
    if problem:
        say(f"note: --notify {shlex.join(command)} failed: {problem}")
