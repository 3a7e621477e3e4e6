"""The `rlx` command: import the command's module, run it, print its data, and turn errors into exit codes."""

from __future__ import annotations

import errno
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
    for number, name in ((1, "stdout"), (2, "stderr")):  # a stream that `>&-` closed prints nowhere
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, os.fdopen(number, "w"))
    if sys.argv[1:2] == ["train"]:
        from rlx.launch.processes.reexec import reexec

        reexec()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # for terminals without Unicode
    sys.exit(call(sys.argv[1:]))


def call(argv: list[str]) -> int:
    """Run one command and return its exit code; only this function prints errors."""
    try:
        return _run_and_report(argv)
    except BrokenPipeError:
        _silence_stdout()
        return 0


def _run_and_report(argv: list[str]) -> int:
    as_json = "--json" in argv
    try:
        return _dispatch(argv)
    except RlxError as error:
        return _report(error, as_json=as_json)
    except KeyboardInterrupt:
        return _report(Interrupted("interrupted"), as_json=as_json)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk or a read-only folder is not a bug
        return _report(_as_rlx_error(error), as_json=as_json)
    except Exception as error:  # noqa: BLE001  the top of the CLI: a bug is reported, never shown as a raw traceback
        return _report_bug(error, as_json=as_json)


def _as_rlx_error(error: OSError) -> RlxError:
    message = str(error.strerror or error)
    hint = "rlx doctor"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = "the disk is full"
        hint = "free some space, then run the same command again"
    if error.filename:
        message += f": {error.filename}"
    return RlxError(message, hint=hint)


def _dispatch(argv: list[str]) -> int:
    first = (argv or ["--help"])[0]
    if first in ("-h", "--help", "help"):
        sys.stdout.write(_parser(known(argv[1])).format_help() if len(argv) > 1 else overview())
    elif first in ("-V", "--version"):
        text = f"rlx {__version__}\n"
        if "--json" in argv:
            text = f'{{"schema": {SCHEMA}, "version": "{__version__}"}}\n'
        sys.stdout.write(text)
    elif first == "--complete":  # called by the shell's completion, see `rlx completion`
        from rlx.hosts.cli.completion import candidates

        sys.stdout.write("".join(f"{candidate}\n" for candidate in candidates(argv[1:])))
    else:
        return _run_command(known(first), argv[1:])
    return 0


def _run_command(command: str, argv: list[str]) -> int:
    module = importlib.import_module(module_name(command))
    args = _parser(command).parse_args(argv)
    if getattr(args, "executor", None) is None:
        data = module.run(args)
    else:
        from rlx.hosts.cli.arguments import executor_named

        with executor_named(args.executor):
            data = module.run(args)
    if data is not None:
        _print(module, data, as_json=args.json)
    return exit_code(data)


def exit_code(data: object) -> int:
    """Return the `exit_code` of a command's data, or 0."""
    if not isinstance(data, dict):
        return 0
    return int(data.get("exit_code", 0))


def _print(module: Any, data: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        from rlx.files import encode

        printed = {key: value for key, value in data.items() if key != "exit_code"}
        text = encode({"schema": SCHEMA, **printed}).decode()
    else:
        text = module.render(plain(data))
    if text and not text.endswith("\n"):
        text += "\n"
    sys.stdout.write(text)
    sys.stdout.flush()


def known(command: str) -> str:
    """Return the command's name, or raise with the nearest one."""
    if command in COMMANDS:
        return command
    near = did_you_mean(command, list(COMMANDS))
    raise UsageError(f"unknown command `{command}`", hint=f"did you mean `rlx {near}`?" if near else "rlx --help")


def _parser(command: str) -> argparse.ArgumentParser:
    from rlx.hosts.cli.parser import parser_of  # argparse is slow to import

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


def _report(error: RlxError, *, as_json: bool) -> int:
    if as_json:
        _print_error_document(error)
    label = "error:"
    if has_colour(sys.stderr):
        label = "\x1b[31merror:\x1b[0m"
    print(f"{label} {harmless(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"\nhint: {harmless(error.hint)}", file=sys.stderr)
    return error.exit_code


def _print_error_document(error: RlxError) -> None:
    from rlx.files import encode

    document = {"schema": SCHEMA, "error": error.message, "kind": type(error).__name__, "hint": error.hint}
    if isinstance(error, Refused) and error.reasons:
        document["reasons"] = list(error.reasons)
    try:
        sys.stdout.write(encode(document).decode() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:  # stdout is on the full disk: stderr alone has the error
        _silence_stdout()


def _silence_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_bug(error: Exception, *, as_json: bool) -> int:
    import traceback

    if os.environ.get("RLX_DEBUG"):
        traceback.print_exception(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"  # noqa: PTH119
    message = f"{type(error).__name__}: {error} (at {where}; this is a bug in rlx or a plug-in)"
    return _report(RlxError(message, hint="set RLX_DEBUG=1 and run it again to see the traceback"), as_json=as_json)
