"""The `rlx` command: finds the command's module, runs it, prints its data, and turns errors into exit codes."""

from __future__ import annotations

import importlib
import os
import sys

from rlx import TYPE_CHECKING, __version__
from rlx.errors import Interrupted, Refused, RlxError, UsageError, did_you_mean
from rlx.hosts.cli.commands import COMMANDS, GROUPS, module_name
from rlx.hosts.cli.output import harmless, has_colour, plain

if TYPE_CHECKING:
    import argparse
    from typing import Any, NoReturn

SCHEMA = 1


def main() -> NoReturn:
    """Run the command line of this process."""
    for number, name in ((1, "stdout"), (2, "stderr")):  # closed by `>&-`: what is printed goes nowhere
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, os.fdopen(number, "w"))
    if sys.argv[1:2] == ["train"]:
        from rlx.launch.interpreter import start_anew

        start_anew()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # names a terminal cannot show
    sys.exit(call(sys.argv[1:]))


def call(argv: list[str]) -> int:
    """Run one command and return its exit code; the only place that prints errors."""
    try:
        return _answered(argv)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _answered(argv: list[str]) -> int:
    """Run one command; whatever ends it otherwise is told as errors are, as JSON where that is asked for."""
    as_json = "--json" in argv
    try:
        return _dispatch(argv)
    except RlxError as error:
        return _report(error, as_json=as_json)
    except KeyboardInterrupt:
        return _report(Interrupted("interrupted"), as_json=as_json)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, a read-only folder: the user's world, not our bug
        where = f": {error.filename}" if error.filename else ""
        return _report(RlxError(f"{error.strerror or error}{where}", hint="rlx doctor"), as_json=as_json)
    except Exception as error:  # noqa: BLE001  the CLI's top: a bug is reported, never shown as a raw traceback
        return _report_bug(error, as_json=as_json)


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview() if len(argv) < 2 else _parser(known(argv[1])).format_help())
        return 0
    if argv[0] in ("-V", "--version"):
        sys.stdout.write(
            f'{{"schema": {SCHEMA}, "version": "{__version__}"}}\n' if "--json" in argv else f"rlx {__version__}\n"
        )
        return 0
    if argv[0] == "--complete":  # called by the shell's completion, see `rlx completion`
        from rlx.hosts.cli.completion import candidates

        sys.stdout.write("".join(f"{candidate}\n" for candidate in candidates(argv[1:])))
        return 0
    command = known(argv[0])
    module = importlib.import_module(module_name(command))
    args = _parser(command).parse_args(argv[1:])
    data = module.run(args)
    if data is not None:
        _print(module, data, as_json=args.json)
    return exit_code(data)


def exit_code(data: object) -> int:
    """Return the exit code a command's data asks for (`exit_code`), 0 else."""
    return int(data.get("exit_code", 0)) if isinstance(data, dict) else 0


def _print(module: Any, data: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        from rlx.files import encode

        shown = {key: value for key, value in data.items() if key != "exit_code"}
        sys.stdout.write(encode({"schema": SCHEMA, **shown}).decode() + "\n")
    else:
        text = module.render(plain(data))
        sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
    sys.stdout.flush()


def known(command: str) -> str:
    """Return the command's name, or say which one was meant."""
    if command in COMMANDS:
        return command
    near = did_you_mean(command, list(COMMANDS))
    raise UsageError(f"unknown command `{command}`", hint=f"did you mean `rlx {near}`?" if near else "rlx --help")


def _parser(command: str) -> argparse.ArgumentParser:
    from rlx.hosts.cli.parser import parser_of  # argparse only where it is needed

    return parser_of(command)


def overview() -> str:
    """Return what `rlx --help` prints."""
    lines = [
        "rlx: config → train → evaluate → compare → diagnose → decide → iterate",
        "",
        "usage: rlx COMMAND [ARGUMENTS] [--json]      rlx COMMAND --help shows an example",
    ]
    width = max(map(len, COMMANDS))
    for group in GROUPS:
        lines += ["", f"{group}:"]
        lines += [f"  {name:{width}s}  {summary}" for name, (of, summary) in COMMANDS.items() if of == group]
    return "\n".join([*lines, "", "start here: rlx init demo --env CartPole-v1", ""])


def _report(error: RlxError, *, as_json: bool = False) -> int:
    if as_json:
        from rlx.files import encode

        reasons = {"reasons": list(error.reasons)} if isinstance(error, Refused) and error.reasons else {}
        document = {
            "schema": SCHEMA, "error": error.message, "kind": type(error).__name__, "hint": error.hint, **reasons,
        }  # fmt: skip
        _write(encode(document).decode() + "\n")
    red, end = ("\x1b[31m", "\x1b[0m") if has_colour(sys.stderr) else ("", "")
    print(f"{red}error:{end} {harmless(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"\nhint: {harmless(error.hint)}", file=sys.stderr)
    return error.exit_code


def _write(text: str) -> None:
    """Print an error's data; where stdout itself is what is full, stderr tells it alone."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_bug(error: Exception, *, as_json: bool) -> int:
    import traceback

    if os.environ.get("RLX_DEBUG"):
        traceback.print_exception(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"  # noqa: PTH119
    return _report(RlxError(f"{type(error).__name__}: {error} (at {where}; this is a bug in rlx or a plug-in)",
                            hint="run it again with RLX_DEBUG=1 for the whole traceback"), as_json=as_json)  # fmt: skip
