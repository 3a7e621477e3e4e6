"""Before a coding agent's tool runs: deny training beside the door and edits outside an approved study's surface.

Standard library only, started as `python3 -I -S`; silent (exit 0, no output) wherever there is no approved study. It
reads `.rlx/active.json` and the study's `hook.json` (written by rlx at approve and amend, see `rlx.study.hook_view`).
A crash denies inside an approved study and is silent outside.

What is not covered: programs that train or write files by themselves (`python -c`, a script of their own), copies of a
training script, aliases, tools the host does not announce, a hook that timed out, and Codex before its user trusted the
hook. Hooks are advice to a polite agent; `rlx launch` enforces.
"""

from __future__ import annotations

import json
import os
import sys
import time

sys.dont_write_bytecode = True  # the host keeps a hash of this folder
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shell_line import RUNNERS, WRAPPERS, commands  # type: ignore[import-not-found]  # noqa: E402

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
WRITERS = frozenset("tee mv rm truncate patch unlink shred chmod".split())
COPIERS = frozenset("cp ln install rsync".split())
GIT_WRITES = frozenset("checkout restore apply mv rm clean reset".split())
IN_PLACE = frozenset("sed perl ruby".split())
REDIRECTIONS = (">", ">>", ">|", "&>", "&>>", "<>", ">&")
STARTING_WORDS = ("run_path", "run_module", "exec(", "subprocess", "os.system", "os.exec", "import_module")
TOOLS_THAT_WRITE = tuple("write edit create move rename delete remove replace insert append patch update save".split())
PATH_KEYS = ("path", "file_path", "filepath", "filename", "file", "target", "destination", "dest", "new_path")
COMMAND_KEYS = ("command", "cmd", "script")
OWN_TOOLS = ("mcp__rlx__", "mcp__plugin_rlx_rlx__")


class Study:
    """An approved study: its project's root and what `hook.json` says."""

    def __init__(self, root: str, name: str, view: dict[str, Any]) -> None:
        self.root = root
        self.name = name
        self.view = view
        self.worktrees = os.path.join(root, view.get("worktrees") or ".rlx")


class Unreadable(Exception):
    """A study was approved here, and what the hook needs to know of it is gone."""


def main() -> int:
    """Judge the call on stdin; print a denial, or nothing."""
    text = sys.stdin.buffer.read()
    here = os.getcwd()
    try:
        call = json.loads(text)
        here = str(call.get("cwd") or here)
        reason = judge(call, here)
    except Exception as error:  # noqa: BLE001  a crash must not open the door inside a study, nor close it outside
        if not is_governed(here):
            return 0
        said = error if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"
        reason = f"rlx's hook failed ({said}), so nothing passes. For a person, in a terminal: rlx doctor"
    if reason:
        print(json.dumps(denial(reason)))
    return 0


def denial(reason: str) -> dict[str, Any]:
    """Return what both hosts read as `deny`."""
    said = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": said}


def is_governed(here: str) -> bool:
    """Say whether a folder is inside an approved study, or inside one whose state cannot be read."""
    root = root_of(here)
    try:
        return root is not None and study_of(root) is not None
    except Exception:  # noqa: BLE001  it is there and cannot be read: closed
        return True


def judge(call: dict[str, Any], here: str) -> str | None:
    """Return why a tool call is denied, or None."""
    tool, given = call.get("tool_name"), call.get("tool_input") or {}
    if tool == "Bash":
        return judge_shell(given.get("command"), here)
    if tool in EDITORS:
        paths = [str(given.get("file_path") or given.get("notebook_path") or "")]
    elif tool == "apply_patch":
        paths = patched(str(given.get("command") or given.get("input") or given.get("patch") or ""))
    elif str(tool).startswith("mcp__"):
        return judge_foreign_tool(str(tool), given, here)
    else:
        return None
    return judge_edits(paths, here)


def judge_shell(command: object, here: str) -> str | None:
    """Judge what a shell is told to run: a text, or a list of words."""
    text = " ".join(map(str, command)) if isinstance(command, list) else str(command or "")
    return judge_command(text, here) or judge_edits(patched(text), here)


def judge_foreign_tool(tool: str, given: dict[str, Any], here: str) -> str | None:
    """Judge a tool of another MCP server by its name and its arguments, as far as these say what it does."""
    if tool.startswith(OWN_TOOLS):
        return None
    for key in COMMAND_KEYS:
        reason = judge_shell(given[key], here) if isinstance(given.get(key), (str, list)) else None
        if reason:
            return reason
    if not any(word in tool.rpartition("__")[2].lower() for word in TOOLS_THAT_WRITE):
        return None
    return judge_edits([given[key] for key in PATH_KEYS if isinstance(given.get(key), str)], here)


def judge_edits(paths: list[str], here: str) -> str | None:
    """Say why one of these files may not be edited."""
    reasons = (judge_edit(absolute(path, here)) for path in paths if path)
    return next((reason for reason in reasons if reason), None)


def patched(patch: str) -> list[str]:
    """Return the files that a patch of Codex's touches."""
    lines = (line.strip() for line in patch.splitlines())
    return [line[len(mark) :].strip() for line in lines for mark in PATCH_MARKS if line.startswith(mark)]


def absolute(path: str, here: str) -> str:
    """Return a path as the file system sees it: links followed, so that none leads around the surface."""
    return os.path.realpath(os.path.join(here, os.path.expanduser(path)))


def root_of(place: str) -> str | None:
    """Return the nearest folder upwards that has an active study; of what lies in a `.rlx/tasks`, above that."""
    folder = os.path.realpath(place).partition("/.rlx/tasks/")[0] or "/"
    while True:
        if os.path.isfile(os.path.join(folder, ".rlx", "active.json")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def study_of(root: str) -> Study | None:
    """Return the project's active study if it is approved and the approval has not expired."""
    with open(os.path.join(root, ".rlx", "active.json"), "rb") as stream:
        active = json.load(stream)
    task, name = active.get("task"), active.get("study")
    if not task or not name:
        return None
    folder = os.path.join(root, ".rlx", "tasks", task, "studies", name)
    try:
        with open(os.path.join(folder, "hook.json"), "rb") as stream:
            view = json.load(stream)
    except FileNotFoundError:
        if was_approved(folder):
            raise Unreadable(f"hook.json of the study {name} is gone: rlx study use {name} writes it") from None
        return None
    expires = view.get("expires")
    is_live = view.get("approved") is True and (expires is None or time.time() < expires)
    return Study(root, name, view) if is_live else None


def was_approved(folder: str) -> bool:
    """Say whether a study's ledger has an approval, whatever became of it since."""
    try:
        with open(os.path.join(folder, "ledger.jsonl"), "rb") as stream:
            return any(b'\\"event\\":\\"approved\\"' in row.replace(b" ", b"") for row in stream)
    except FileNotFoundError:
        return False


def judge_edit(path: str) -> str | None:
    """Say why a file may not be edited: it is the study's own, protected, outside the surface, or not in a worktree."""
    root = root_of(os.path.dirname(path))
    study = study_of(root) if root else None
    if study is None:
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
        return f"{relative} is protected in the study {study.name}. Ask what may be edited: rlx next --json"
    if matches(relative, study.view.get("surface")):
        return (
            f"{relative} is edited in a candidate's worktree, not here: what runs is the worktree. "
            "Run: rlx propose -f candidate.json --json"
        )
    if not os.path.exists(path) or matches(relative, study.view.get("open")):
        return None
    return f"{relative} is outside the surface of the study {study.name}. Ask what may be edited: rlx next --json"


def judge_worktree_edit(study: Study, inside: str) -> str | None:
    """Say why a file of a candidate's worktree may not be edited."""
    candidate, _, relative = inside.partition("/")
    if candidate in ("baseline", "rehearsal"):
        return f"the worktree of {candidate} stays as it is. Make a candidate: rlx propose -f candidate.json --json"
    surface, protected = study.view.get("surface"), study.view.get("protected")
    if relative and matches(relative, surface) and not matches(relative, protected):
        return None
    return (
        f"{relative or inside} is outside the surface of the study {study.name}, and the launch would be refused. "
        f"See why: rlx check candidate {candidate} --json"
    )


def within(path: str, folder: str) -> str | None:
    """Return a path relative to a folder, or None where it is not inside."""
    folder = os.path.realpath(folder)
    if path == folder:
        return ""
    return path[len(folder) + 1 :] if path.startswith(folder + "/") else None


def matches(relative: str, patterns: list[str] | None) -> bool:
    """Say whether a path is one of these files, in one of these folders, or fits one of these globs."""
    from fnmatch import fnmatchcase

    for pattern in patterns or ():
        plain = pattern.rstrip("/")
        if relative == plain or relative.startswith(plain + "/") or fnmatchcase(relative, plain):
            return True
        if plain.startswith("**/") and fnmatchcase(relative, plain[3:]):
            return True
    return False


def judge_command(command: str, here: str) -> str | None:
    """Say why a shell command may not run: it trains beside the door, approves, or writes where edits are denied."""
    if root_of(here) is None and "/" not in command:
        return None
    for words, folder in commands(command, here):
        head, words = as_rlx(words)
        places = (os.path.join(folder, os.path.expanduser(word)) for word in words if "/" in word)
        root = root_of(folder) or next(filter(None, map(root_of, places)), None)
        if root is None:
            continue
        if head == "rlx" and is_approval(words):
            return "approving a contract is for a person, in a terminal of theirs: rlx study approve"
        study = study_of(root)
        if study is None:
            continue
        reason = judge_training(study, head, words, folder) or judge_writing(head, words, folder)
        if reason:
            return reason
    return None


def as_rlx(words: list[str]) -> tuple[str, list[str]]:
    """Return the program's name and the words; rlx as `rlx …`, also where Python or another program starts it."""
    head = os.path.basename(words[0])
    if head == "rlx" or head.startswith("python") or head in RUNNERS or head in WRAPPERS:
        for at, word in enumerate(words):
            if os.path.basename(word) == "rlx":
                return "rlx", words[at:]
    return head, words


def is_approval(words: list[str]) -> bool:
    """Say whether a command of rlx approves a contract: a person's act, whatever the study's state."""
    rest = [word for word in words if not word.startswith("-")]
    return "approve" in rest and "study" in rest and "--help" not in words


def judge_training(study: Study, head: str, words: list[str], folder: str) -> str | None:
    """Say that a command trains, where it does."""
    instead = f"In the study {study.name} train through the door: rlx launch CANDIDATE --phase trial --plan HASH"
    if head == "rlx":
        verb = next((word for word in words[1:] if not word.startswith("-")), "")
        is_training = verb in TRAINING_VERBS and "--help" not in words and "-h" not in words
        return f"`rlx {verb}` trains outside the contract's budget. {instead}" if is_training else None
    if head in READERS or module_of(words) in READING_MODULES:
        return None
    for entry in study.view.get("train") or ():
        if any(names(word, entry, study, folder) for word in words) or starts_in_python(words, entry):
            return f"`{entry}` is a training entry point. {instead} (the hash: rlx check candidate CANDIDATE --json)"
    return None


def module_of(words: list[str]) -> str:
    """Return the module that `python -m` runs."""
    place = words.index("-m") + 1 if "-m" in words else len(words)
    return words[place].split(".")[0] if place < len(words) and words[0].find("python") >= 0 else ""


def dotted_of(entry: str) -> str:
    """Return the module that a file is."""
    return entry[:-3].replace("/", ".") if entry.endswith(".py") else entry


def starts_in_python(words: list[str], entry: str) -> bool:
    """Say whether `python -m MODULE` or `python -c TEXT` runs a training entry, by its name."""
    if "python" not in os.path.basename(words[0]):
        return False
    dotted = dotted_of(entry)
    for flag, following in zip(words, [*words[1:], ""]):
        module = following if flag == "-m" else flag[2:] if flag.startswith("-m") else ""
        if module and (dotted == module or dotted.endswith("." + module)):
            return True
        if flag == "-c" and starts_in_text(following, entry, dotted):
            return True
    return False


def starts_in_text(text: str, entry: str, dotted: str) -> bool:
    """Say whether a Python text imports a training entry, or names it beside something that starts programs."""
    import re

    if re.search(rf"\b(?:import|from)\s+{re.escape(dotted)}\b", text):
        return True
    return (entry in text or dotted in text) and any(word in text for word in STARTING_WORDS)


def names(word: str, entry: str, study: Study, folder: str) -> bool:
    """Say whether a word of a command stands for a training entry: its file, a glob of it, its module, its program."""
    if "/" not in entry and "." not in entry:
        return os.path.basename(word) == entry
    dotted = dotted_of(entry)
    if word == dotted or (dotted.startswith("src.") and word == dotted[4:]):
        return True
    path = absolute(word.rpartition("=")[2], folder)
    for top in (study.root, study.worktrees):
        relative = within(path, top)
        if relative is None:
            continue
        inner = relative.split("/", 1)[-1] if top == study.worktrees else relative
        if inner == entry:
            return True
        if any(mark in word for mark in "*?["):
            from fnmatch import fnmatch

            if fnmatch(entry, inner):
                return True
    return False


def judge_writing(head: str, words: list[str], folder: str) -> str | None:
    """Say that a command writes a file that may not be edited: by a redirection, or by a program known to write."""
    targets = [words[at + 1] for at, word in enumerate(words[:-1]) if word in REDIRECTIONS]
    return judge_edits([*targets, *operands(head, words, folder)], folder)


def operands(head: str, words: list[str], folder: str) -> list[str]:
    """Return the files that a program known to write is told to write."""
    plain = [word for word in words[1:] if not word.startswith("-")]
    if head in COPIERS:
        return copied(words, plain, folder)
    if head == "dd":
        return [word[3:] for word in plain if word.startswith("of=")]
    if head in ("curl", "wget", "sort"):
        return [following for flag, following in zip(words, words[1:]) if flag in ("-o", "-O", "--output")]
    is_in_place = head in IN_PLACE and any(is_in_place_flag(word) for word in words[1:])
    is_git = head == "git" and bool(GIT_WRITES & set(plain[:1]))
    if head in WRITERS or is_in_place or is_git:
        return [path for word in plain for path in existing(word, folder)]
    return []


def is_in_place_flag(word: str) -> bool:
    """Say whether an option makes sed or perl write the file itself: -i, -i.bak, -ni, -pi, --in-place."""
    return word.startswith("--in-place") or (word[:1] == "-" and word[1:2] != "-" and "i" in word.partition(".")[0])


def copied(words: list[str], plain: list[str], folder: str) -> list[str]:
    """Return the files that a copy makes: the target, or the sources' names inside it where it is a folder."""
    target = dict(zip(words, words[1:])).get("-t") or (plain[-1] if plain else "")
    sources = [word for word in plain if word != target]
    if os.path.isdir(absolute(target, folder)):
        return [os.path.join(target, os.path.basename(source.rstrip("/"))) for source in sources]
    return [target]


def existing(word: str, folder: str) -> list[str]:
    """Return the files that a word of a command stands for."""
    path = os.path.join(folder, os.path.expanduser(word))
    if any(mark in word for mark in "*?["):
        from glob import glob

        return glob(path)
    return [word] if os.path.lexists(path) else []


if __name__ == "__main__":
    sys.exit(main())
