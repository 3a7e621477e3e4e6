"""Which code a training attempt ran, as a short name, and how that differs from the code in the project now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from rlx import external_programs, files
from rlx.config.diff import diff
from rlx.errors import EvidenceInvalid
from rlx.evaluate import code_files
from rlx.evaluate.env_sources import changed_files
from rlx.number_format import listed
from rlx.runs import provenance
from rlx.runs.provenance import HARMLESS, HARMLESS_FOLDERS
from rlx.runs.run import Run

NO_GIT = "no git"
"""The code name of an attempt outside any repository whose files could not be hashed either."""
MOST_FILES = 5
"""How many changed files a message lists."""
_COMMIT = re.compile("[0-9a-f]{7,64}")


class CodeVersions:
    """Names for the code of attempts in one project. Commits that differ only in files no training reads are one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: dict[str, str] = {}
        self._contents: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._names_by_files: dict[str, str] = {}
        self._files: dict[str, Mapping[str, str]] = {}

    def name(self, attempt: Mapping[str, Any]) -> str:
        """Return the name of an attempt's code: its commit (the first seen with these contents) and its diff's hash.

        A hash over the code files separates what git cannot: untracked files, and everything outside git. An attempt
        that recorded which project files it runs is known by these alone, whatever else the project holds.
        """
        own = attempt.get("code_files")
        if isinstance(own, Mapping):
            return self._name_of_files(own, attempt)
        digest = attempt.get("code_sha256")
        git = attempt.get("git")
        if not git or not git.get("commit"):
            if digest:
                return f"code {str(digest)[:8]}"
            return NO_GIT
        name = self._commit_name(git)
        if digest and self._digests.setdefault(name, digest) != digest:
            return f"{name}~{str(digest)[:8]}"
        return name

    def _name_of_files(self, own: Mapping[str, str], attempt: Mapping[str, Any]) -> str:
        digest = code_files.digest(own)
        if digest not in self._names_by_files:
            git = attempt.get("git") or {}
            name = f"code {digest[:8]}"
            if git.get("commit"):
                name = self._commit_name(git)
            if name in self._files:
                name = f"{name}~{digest[:8]}"
            self._names_by_files[digest] = name
            self._files[name] = own
        return self._names_by_files[digest]

    def _commit_name(self, git: Mapping[str, Any]) -> str:
        commit = str(git["commit"])
        if commit not in self._contents:
            self._contents[commit] = self._content_hash(commit)
        name = self._names.setdefault(self._contents[commit], commit)[:12]
        diff_hash = git.get("code_diff_sha256", git.get("diff_sha256"))
        if diff_hash:
            return f"{name}+{str(diff_hash)[:8]}"
        return name

    def _content_hash(self, commit: str) -> str:
        """Return a hash over the commit's files that matter, or the commit itself if git does not know it."""
        listing = None
        if _COMMIT.fullmatch(commit):  # a run from elsewhere may name an option of git as its commit
            listing = external_programs.git("ls-tree", "-r", "--full-tree", commit, folder=self.folder)
        if listing is None:
            return commit
        lines = [line for line in listing.splitlines() if _matters(line.partition("\t")[2])]
        return files.sha256("\n".join(lines).encode())

    def changed(self, before: str, after: str) -> str:
        """Return the files that differ between two code names, as far as the attempts or git know them."""
        if before in self._files and after in self._files:
            sides = (self._files[before], self._files[after])
            return listed([change.key for change in diff(*sides)], most=MOST_FILES)
        commits = [re.split(r"[+~]", name)[0] for name in (before, after)]
        if not all(_COMMIT.fullmatch(commit) for commit in commits):
            return ""
        names = external_programs.git("diff", "--name-only", *commits, folder=self.folder) or ""
        return listed([name for name in names.splitlines() if _matters(name)], most=MOST_FILES)


def _matters(path: str) -> bool:
    return not path.endswith(HARMLESS) and not set(HARMLESS_FOLDERS).intersection(path.split("/")[:-1])


class CurrentCode:
    """The code and package versions that a training would run if it started now.

    With `is_reuse`, changed code does not count: the user says that it does not matter.
    """

    def __init__(self, root: Path, *, is_reuse: bool = False) -> None:
        self.root = root
        self.is_reuse = is_reuse
        self.codes = CodeVersions(root)

    @cached_property
    def _attempt(self) -> dict[str, Any]:
        return {
            "git": provenance.git_state(self.root),
            "code_sha256": provenance.code_hash(self.root),
            "versions": provenance.versions(),
        }

    def changes(self, run: Run) -> list[str]:
        """Return what has changed since the run's seeds were trained."""
        attempts = [attempt for seed in run.seeds for attempt in seed.attempts]
        return list(dict.fromkeys(change for attempt in attempts for change in self._changes_since(attempt, run)))

    def _changes_since(self, attempt: Mapping[str, Any], run: Run) -> Iterator[str]:
        current = self._attempt
        if "code_files" in attempt:
            current = {**current, **code_files.code_identity(run.config, root=self.root)}
        before = self.codes.name(attempt)
        now = self.codes.name(current)
        if before != now and not self.is_reuse:
            names = self.codes.changed(before, now) or ", ".join(changed_files(run.evaluations(), root=self.root))
            yield f"the project's code ({before} → {now}{': ' if names else ''}{names})"
        for change in diff(attempt.get("versions") or {}, self._attempt["versions"]):
            yield f"{change.key} {change.before} → {change.after}"

    def refuse_changed(self, run: Run, *, again: str) -> None:
        """Raise if more seeds of a run would not be replicates of its seeds. `again` is the command that retrains."""
        changes = self.changes(run)
        if changes:
            problem = f"{run.name} cannot be trained further, because these changed since: {', '.join(changes)}"
            hint = f"train again with the current code: {again}"
            if not self.is_reuse and not CurrentCode(self.root, is_reuse=True).changes(run):
                hint += "; or count the seeds together, if that change does not matter: --reuse"
            raise EvidenceInvalid(problem, hint=hint)
