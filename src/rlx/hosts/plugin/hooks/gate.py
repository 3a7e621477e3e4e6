"""Before a coding agent's tool runs: deny training beside the door and edits outside an approved study's surface.

Standard library only, started as `python3 -I -S`; silent (exit 0, no output) wherever there is no approved study. It
reads `.rlx/active.json` and the study's `hook.json` (written by rlx at approve and amend, see `rlx.study.hook_view`).
A crash denies inside an approved study and is silent outside.

What is not covered: programs that write files by themselves, `python -c`, here-documents, aliases, scripts that start a
training, tools the host does not announce, a hook that timed out, and Codex before its user trusted the hook. Hooks are
advice to a polite agent; `rlx launch` enforces.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EDITORS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
PATCH_MARKS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
SHELLS = ("sh", "bash", "zsh", "dash", "ksh", "fish")
READERS = frozenset(
    "cat less more head tail grep egrep rg ag wc ls file stat diff cmp nl bat find git sha256sum md5sum ruff mypy "
    "black pyright flake8 pylint vim vi nano emacs code echo printf test [ cd".split()
)
READING_MODULES = frozenset("py_compile compileall ast tokenize mypy ruff black pyflakes pylint pytest".split())
WRITERS = frozenset("tee mv rm truncate patch unlink shred chmod".split())
COPIERS = frozenset("cp ln install rsync dd".split())
GIT_WRITES = frozenset("checkout restore apply mv rm clean reset".split())
PREFIXES = frozenset("env nohup time nice setsid exec command sudo stdbuf".split())
KEYWORDS = frozenset("{ } then do else if while until !".split())


class Study:
    """An approved study: its project's root and what `hook.json` says."""

    def __init__(self, root: str, name: str, view: dict[str, Any]) -> None:
        self.root = root
        self.name = name
        self.view = view
        self.worktrees = os.path.join(root, view.get("worktrees") or ".rlx")


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
        reason = f"rlx's hook failed ({type(error).__name__}: {error}), so nothing passes. Run: rlx doctor"
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
        return judge_command(str(given.get("command") or ""), here)
    if tool in EDITORS:
        paths = [str(given.get("file_path") or given.get("notebook_path") or "")]
    elif tool == "apply_patch":
        paths = patched(str(given.get("command") or given.get("input") or given.get("patch") or ""))
    else:
        return None
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
    """Return the nearest folder upwards that has an active study."""
    folder = os.path.realpath(place)
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
    try:
        with open(os.path.join(root, ".rlx", "tasks", task, "studies", name, "hook.json"), "rb") as stream:
            view = json.load(stream)
    except FileNotFoundError:
        return None
    expires = view.get("expires")
    is_live = view.get("approved") is True and (expires is None or time.time() < expires)
    return Study(root, name, view) if is_live else None


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
        head = os.path.basename(words[0])
        root = root_of(folder) or next(filter(None, (root_of(word) for word in words if word.startswith("/"))), None)
        if root is None:
            continue
        if is_approval(head, words):
            return "approving a contract is for a person, in a terminal of theirs: rlx study approve"
        study = study_of(root)
        if study is None:
            continue
        reason = judge_training(study, head, words, folder) or judge_writing(head, words, folder)
        if reason:
            return reason
    return None


def is_approval(head: str, words: list[str]) -> bool:
    """Say whether a command approves a contract: a person's act, whatever the study's state."""
    rest = [word for word in words if not word.startswith("-")]
    is_rlx = head == "rlx" or ("rlx" in words[:4] and head.startswith("python"))
    return is_rlx and "approve" in rest and "study" in rest


def judge_training(study: Study, head: str, words: list[str], folder: str) -> str | None:
    """Say that a command trains, where it does."""
    instead = f"In the study {study.name} train through the door: rlx launch CANDIDATE --phase trial --plan HASH"
    if head == "rlx":
        is_plain = len(words) > 1 and words[1] in ("train", "resume", "settle", "noise", "sweep")
        return f"`rlx {words[1]}` trains outside the contract's budget. {instead}" if is_plain else None
    if head in READERS or module_of(words) in READING_MODULES:
        return None
    for entry in study.view.get("train") or ():
        if any(names(word, entry, study, folder) for word in words):
            return f"`{entry}` is a training entry point. {instead} (the hash: rlx check candidate CANDIDATE --json)"
    return None


def module_of(words: list[str]) -> str:
    """Return the module that `python -m` runs."""
    place = words.index("-m") + 1 if "-m" in words else len(words)
    return words[place].split(".")[0] if place < len(words) and words[0].find("python") >= 0 else ""


def names(word: str, entry: str, study: Study, folder: str) -> bool:
    """Say whether a word of a command stands for a training entry: its file, a glob of it, its module, its program."""
    if "/" not in entry and "." not in entry:
        return os.path.basename(word) == entry
    dotted = entry[:-3].replace("/", ".") if entry.endswith(".py") else entry
    if word == dotted or (dotted.startswith("src.") and word == dotted[4:]):
        return True
    path = os.path.normpath(os.path.join(folder, word))
    for top in (study.root, study.worktrees):
        relative = within(path, top) if path.startswith("/") else None
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
    targets = [words[at + 1] for at, word in enumerate(words[:-1]) if word in (">", ">>", ">|", "&>", "&>>", "<>")]
    reasons = (judge_edit(absolute(target, folder)) for target in [*targets, *operands(head, words, folder)])
    return next((reason for reason in reasons if reason), None)


def operands(head: str, words: list[str], folder: str) -> list[str]:
    """Return the files that a program known to write is told to write."""
    plain = [word.rpartition("=")[2] for word in words[1:] if not word.startswith("-")]
    if head in COPIERS:
        return plain[-1:]
    is_in_place = head in ("sed", "perl") and any(word.startswith(("-i", "--in-place")) for word in words)
    is_git = head == "git" and bool(GIT_WRITES & set(plain[:1]))
    if head in WRITERS or is_in_place or is_git:
        return [word for word in plain if os.path.lexists(os.path.join(folder, os.path.expanduser(word)))]
    return []


def commands(text: str, here: str) -> list[tuple[list[str], str]]:
    """Return the simple commands of a shell line as (words, folder), with `cd` followed and `sh -c` opened."""
    found: list[tuple[list[str], str]] = []
    words: list[str] = []
    folder = here
    for word in [*tokens(text), ";"]:
        if word not in KEYWORDS and not set(word) <= set("();|&"):
            words.append(word)
            continue
        words, said = [], stripped(words)
        if not said:
            continue
        found.append((said, folder))
        if said[0] == "cd" and len(said) > 1:
            folder = os.path.normpath(os.path.join(folder, os.path.expanduser(said[1])))
        inner = script_of(said)
        if inner:
            found += commands(inner, folder)
    return found


def tokens(text: str) -> list[str]:
    """Split a shell line into words and operators; what does not parse is split at blanks."""
    import shlex

    lexer = shlex.shlex(text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an open quote, as in a here-document
        return text.split()


def stripped(words: list[str]) -> list[str]:
    """Return a command without assignments and programs that only start another one."""
    at = 0
    while at < len(words):
        word = words[at]
        is_assignment = "=" in word and word.split("=")[0].isidentifier()
        if is_assignment or os.path.basename(word) in PREFIXES:
            at += 1
        elif os.path.basename(word) == "timeout":
            at += 1
            while at < len(words) and (words[at].startswith("-") or words[at][:1].isdigit()):
                at += 1
        else:
            break
    return words[at:]


def script_of(words: list[str]) -> str | None:
    """Return the text that a shell is told to run."""
    if os.path.basename(words[0]) not in SHELLS:
        return None
    for flag, script in zip(words[1:], words[2:]):
        if flag.startswith("-") and not flag.startswith("--") and flag.endswith("c"):
            return str(script)
    return None


if __name__ == "__main__":
    sys.exit(main())
