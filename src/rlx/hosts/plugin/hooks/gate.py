"""Remind a coding agent of the study's rules before it runs a tool.

Inside an approved study it denies commands that train directly and edits outside the surface. Elsewhere it is silent:
exit code 0 and no output. It uses only the standard library and is started as `python3 -I -S`. It reads
`.rlx/active.json` and the study's `hook.json` (see `rlx.study.hook_file`). If the hook fails, it denies inside an
approved study.

The hook is a reminder. The launch path and the ledger enforce the rules. The hook reads one command line in its
ordinary forms (see `shell_line`). It cannot see what scripts, Makefiles, `python -c`, aliases, variables, `eval`,
here-documents or other programs do, copies of a training script, tools that the host does not announce, or a hook that
timed out. Codex skips it until its user trusts it.
"""

from __future__ import annotations

import json
import os
import sys
import time

sys.dont_write_bytecode = True  # the host keeps a hash of this folder
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shell_line import RUNNERS, commands  # type: ignore[import-not-found]  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EDITORS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
PATCH_MARKS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
READERS = frozenset(
    "cat less more head tail grep egrep rg ag wc ls file stat diff cmp nl bat find git sha256sum md5sum ruff mypy "
    "black pyright flake8 pylint vim vi nano emacs code echo printf test [ cd".split()
)
READING_MODULES = frozenset("py_compile compileall ast tokenize mypy ruff black pyflakes pylint pytest".split())
TRAINING_VERBS = ("train", "resume", "settle", "noise", "sweep")
WRITERS = frozenset("tee mv rm truncate patch unlink".split())
COPIERS = frozenset("cp ln install rsync".split())
GIT_WRITES = frozenset("checkout restore apply mv rm clean reset".split())
REDIRECTIONS = (">", ">>", ">|", "&>", "&>>", ">&")
WRITING_TOOL_WORDS = tuple("write edit create move rename delete remove replace insert append patch update".split())
PATH_KEYS = ("path", "file_path", "notebook_path", "filename", "file", "target", "destination", "new_path")
COMMAND_KEYS = ("command", "cmd", "script")
OWN_TOOLS = ("mcp__rlx__", "mcp__plugin_rlx_rlx__")


class ApprovedStudy:
    """An approved study: its project's root and the content of `hook.json`."""

    def __init__(self, root: str, name: str, view: dict[str, Any]) -> None:
        self.root = root
        self.name = name
        self.view = view
        self.worktrees = os.path.join(root, view.get("worktrees") or ".rlx")


class Unreadable(Exception):
    """The study was approved, and its `hook.json` is missing."""


def main() -> int:
    """Judge the call on stdin; print a denial, or nothing."""
    text = sys.stdin.buffer.read()
    folder = os.getcwd()
    try:
        call = json.loads(text)
        folder = str(call.get("cwd") or folder)
        reason = judge(call, folder)
    except Exception as error:  # noqa: BLE001  a bug must not allow a training inside a study, nor hinder work outside
        if not is_governed(folder):
            return 0
        cause = f"{type(error).__name__}: {error}"
        reason = f"rlx's hook failed ({cause}), so it denies every call. Ask a person to run: rlx doctor"
    if reason:
        answer = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
        print(json.dumps({"hookSpecificOutput": answer}))
    return 0


def is_governed(folder: str) -> bool:
    """Return whether a folder is inside an approved study, or inside one whose state cannot be read."""
    root = root_of(folder)
    try:
        return root is not None and study_of(root) is not None
    except (OSError, ValueError, AttributeError, TypeError, Unreadable):
        return True


def judge(call: dict[str, Any], folder: str) -> str | None:
    """Return why a tool call is denied, or None."""
    tool = str(call.get("tool_name"))
    arguments = call.get("tool_input") or {}
    if tool == "Bash":
        return judge_shell(arguments.get("command"), folder)
    if tool == "apply_patch":
        return judge_edits(patched(str(arguments.get("command") or arguments.get("input") or "")), folder)
    if tool in EDITORS:
        return judge_edits([arguments.get("file_path") or arguments.get("notebook_path")], folder)
    if not tool.startswith("mcp__") or tool.startswith(OWN_TOOLS):
        return None
    return judge_foreign_tool(tool, arguments, folder)


def judge_foreign_tool(tool: str, arguments: dict[str, Any], folder: str) -> str | None:
    """Judge a tool of another MCP server by its name and its arguments."""
    for key in COMMAND_KEYS:
        reason = judge_shell(arguments.get(key), folder)
        if reason:
            return reason
    if not any(word in tool.rpartition("__")[2].lower() for word in WRITING_TOOL_WORDS):
        return None
    return judge_edits([arguments.get(key) for key in PATH_KEYS], folder)


def judge_shell(command: object, folder: str) -> str | None:
    """Judge what a shell is asked to run: a text, or a list of words."""
    if isinstance(command, list):
        command = " ".join(map(str, command))
    if not isinstance(command, str):
        return None
    return judge_command(command, folder) or judge_edits(patched(command), folder)


def patched(patch: str) -> list[str]:
    """Return the files that a Codex patch changes."""
    lines = [line.strip() for line in patch.splitlines()]
    return [line[len(mark) :].strip() for line in lines for mark in PATCH_MARKS if line.startswith(mark)]


def absolute(path: str, folder: str) -> str:
    """Return the real path of a file: links are followed, so that no link leads around the surface."""
    return os.path.realpath(os.path.join(folder, os.path.expanduser(path)))


def root_of(place: str) -> str | None:
    """Return the nearest folder upwards that has an active study; a worktree of a study belongs to its project."""
    folder = os.path.realpath(place).partition("/.rlx/tasks/")[0] or "/"
    while not os.path.isfile(os.path.join(folder, ".rlx", "active.json")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def study_of(root: str) -> ApprovedStudy | None:
    """Return the project's active study if it is approved and the approval has not expired."""
    with open(os.path.join(root, ".rlx", "active.json"), "rb") as stream:
        active = json.load(stream)
    task = active.get("task")
    name = active.get("study")
    if not task or not name:
        return None
    folder = os.path.join(root, ".rlx", "tasks", task, "studies", name)
    try:
        with open(os.path.join(folder, "hook.json"), "rb") as stream:
            view = json.load(stream)
    except FileNotFoundError:
        if was_approved(folder):
            raise Unreadable(f"hook.json of the study {name} is missing; rlx study use {name} writes it") from None
        return None
    expires = view.get("expires")
    if view.get("approved") is not True or (expires is not None and time.time() >= expires):
        return None
    return ApprovedStudy(root, name, view)


def was_approved(folder: str) -> bool:
    """Return whether a study's ledger has an approval."""
    try:
        with open(os.path.join(folder, "ledger.jsonl"), "rb") as stream:
            return any(b'\\"event\\":\\"approved\\"' in row.replace(b" ", b"") for row in stream)
    except FileNotFoundError:
        return False


def judge_edits(paths: list[Any], folder: str) -> str | None:
    """Return why one of these files may not be edited."""
    reasons = (judge_edit(absolute(path, folder)) for path in paths if path and isinstance(path, str))
    return next(filter(None, reasons), None)


def judge_edit(path: str) -> str | None:
    """Return why a file may not be edited: it belongs to rlx, is protected, is outside the surface or the worktrees."""
    root = root_of(os.path.dirname(path))
    study = root and study_of(root)
    if not study:
        return None
    inside = within(path, study.worktrees)
    if inside is not None:
        return judge_worktree_edit(study, inside)
    relative = within(path, study.root)
    if relative is None:
        return None
    if relative == "rlx.toml" or relative.split("/")[0] == ".rlx":
        return f"{relative} is rlx's own record of the study {study.name}. Read it with: rlx status --json"
    if matches(relative, study.view.get("protected")):
        return f"{relative} is protected in the study {study.name}. Ask what you may edit: rlx next --json"
    if matches(relative, study.view.get("surface")):
        return f"Edit {relative} in a candidate's worktree, not here. Run: rlx propose -f candidate.json --json"
    if not os.path.exists(path) or matches(relative, study.view.get("open")):
        return None
    return f"{relative} is outside the surface of the study {study.name}. Ask what you may edit: rlx next --json"


def judge_worktree_edit(study: ApprovedStudy, inside: str) -> str | None:
    """Return why a file of a worktree may not be edited."""
    candidate, _, relative = inside.partition("/")
    if candidate in ("baseline", "rehearsal"):
        return f"Do not edit the worktree of {candidate}. Make a candidate: rlx propose -f candidate.json --json"
    is_protected = matches(relative, study.view.get("protected"))
    if relative and matches(relative, study.view.get("surface")) and not is_protected:
        return None
    return (
        f"{relative or inside} is outside the surface of the study {study.name}, and rlx launch would refuse it. "
        f"Run: rlx check candidate {candidate} --json"
    )


def within(path: str, folder: str) -> str | None:
    """Return a path relative to a folder, or None if it is not inside."""
    folder = os.path.realpath(folder)
    if not f"{path}/".startswith(f"{folder}/"):
        return None
    return path[len(folder) + 1 :]


def matches(relative: str, patterns: list[str] | None) -> bool:
    """Return whether a path is one of these files, is in one of these folders, or fits one of these globs."""
    from fnmatch import fnmatchcase

    for pattern in patterns or ():
        pattern = pattern.rstrip("/")
        if relative == pattern or relative.startswith(pattern + "/") or fnmatchcase(relative, pattern):
            return True
        if pattern.startswith("**/") and fnmatchcase(relative, pattern[3:]):
            return True
    return False


def judge_command(command: str, folder: str) -> str | None:
    """Return why a shell command may not run: it trains directly, approves, or writes a file that may not be edited."""
    if root_of(folder) is None and "/" not in command:
        return None
    for words, place in commands(command, folder):
        program, words = as_rlx(words)
        named = [os.path.join(place, os.path.expanduser(word)) for word in words if "/" in word]
        root = next(filter(None, map(root_of, [place, *named])), None)
        if root is None:
            continue
        if program == "rlx" and {"study", "approve"} <= set(words) and "--help" not in words:
            return "Only a person approves a contract, in a terminal of their own: rlx study approve"
        study = study_of(root)
        if study is None:
            continue
        reason = judge_training(study, program, words, place) or judge_edits(written(program, words, place), place)
        if reason:
            return reason
    return None


def as_rlx(words: list[str]) -> tuple[str, list[str]]:
    """Return the program's name and the words; `python -m rlx` and `uv tool run rlx` become `rlx`."""
    program = os.path.basename(words[0])
    if program.startswith("python") or program in RUNNERS:
        for index, word in enumerate(words):
            if os.path.basename(word) == "rlx":
                return "rlx", words[index:]
    return program, words


def judge_training(study: ApprovedStudy, program: str, words: list[str], folder: str) -> str | None:
    """Return why a command is denied if it trains."""
    instead = f"In the study {study.name} train with: rlx launch CANDIDATE --phase trial --plan HASH"
    if program == "rlx":
        verb = next((word for word in words[1:] if not word.startswith("-")), "")
        if verb not in TRAINING_VERBS or "--help" in words or "-h" in words:
            return None
        return f"`rlx {verb}` trains outside the contract's budget. {instead}"
    module = ""
    if program.startswith("python") and "-m" in words[:-1]:
        module = words[words.index("-m") + 1]
    if program in READERS or module.split(".")[0] in READING_MODULES:
        return None
    for entry in study.view.get("train") or ():
        if runs_module(module, entry) or any(names_entry(word, entry, study, folder) for word in words):
            return f"`{entry}` is a training entry point. {instead} (the hash: rlx check candidate CANDIDATE --json)"
    return None


def runs_module(module: str, entry: str) -> bool:
    """Return whether `python -m MODULE` runs a training entry."""
    dotted = entry[:-3].replace("/", ".") if entry.endswith(".py") else entry
    return bool(module) and f".{dotted}".endswith(f".{module}")


def names_entry(word: str, entry: str, study: ApprovedStudy, folder: str) -> bool:
    """Return whether a word of a command is a training entry: its file, also in a worktree, or its program."""
    if "/" not in entry and "." not in entry:
        return os.path.basename(word) == entry
    path = absolute(word.rpartition("=")[2], folder)
    in_worktree = within(path, study.worktrees)
    if in_worktree is not None:
        return in_worktree.partition("/")[2] == entry
    return within(path, study.root) == entry


def written(program: str, words: list[str], folder: str) -> list[str]:
    """Return the files that a command writes: by a redirection, or by a program that is known to write."""
    from glob import glob

    targets = [words[index + 1] for index, word in enumerate(words[:-1]) if word in REDIRECTIONS]
    operands = [word for word in words[1:] if not word.startswith("-")]
    if program in COPIERS and operands:
        *sources, target = operands
        targets.append(target)
        if os.path.isdir(absolute(target, folder)):
            targets[-1:] = [os.path.join(target, os.path.basename(source.rstrip("/"))) for source in sources]
    is_in_place = program == "sed" and any(word.startswith(("-i", "-Ei", "-ni", "--in-place")) for word in words)
    is_git_write = program == "git" and not GIT_WRITES.isdisjoint(operands[:1])
    if program in WRITERS or is_in_place or is_git_write:
        for operand in operands:
            targets += glob(os.path.join(folder, os.path.expanduser(operand)))
    return targets


if __name__ == "__main__":
    sys.exit(main())
