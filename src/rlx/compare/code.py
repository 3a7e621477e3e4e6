"""Which code an attempt ran, as one word, and what differs between two of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlx import files, tools
from rlx.compare.objections import NO_GIT
from rlx.runs.provenance import HARMLESS, HARMLESS_FOLDERS

SHOWN = 5


class Codes:
    """The code of attempts in one project; commits that differ in nothing a training runs are one code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: dict[str, str] = {}
        self._contents: dict[str, str] = {}
        self._digests: dict[str, str] = {}

    def name(self, attempt: Mapping[str, Any]) -> str:
        """Return the name of an attempt's code: its commit (the first seen with these contents) and its diff's hash.

        The hash over the code files tells apart what git does not: untracked files, and everything outside git.
        """
        digest = attempt.get("code_sha256")
        git = attempt.get("git")
        if not git or not git.get("commit"):
            return f"code {str(digest)[:8]}" if digest else NO_GIT
        name = self._committed(git)
        is_other = digest and self._digests.setdefault(name, digest) != digest
        return f"{name}~{str(digest)[:8]}" if is_other else name

    def _committed(self, git: Mapping[str, Any]) -> str:
        commit = str(git["commit"])
        if commit not in self._contents:
            self._contents[commit] = self._content(commit)
        first = self._names.setdefault(self._contents[commit], commit)
        diff = git.get("code_diff_sha256", git.get("diff_sha256"))
        return first[:12] + (f"+{str(diff)[:8]}" if diff else "")

    def _content(self, commit: str) -> str:
        """Return a hash over the files of a commit that matter; the commit itself where it is not to be found."""
        listing = tools.git("ls-tree", "-r", "--full-tree", commit, folder=self.folder)
        if listing is None:
            return commit
        return files.sha256("\n".join(line for line in listing.splitlines() if _matters(_path(line))).encode())

    def changed(self, before: str, after: str) -> str:
        """Return the files that differ between two named codes, as far as git still knows them."""
        commits = [re.split(r"[+~]", name)[0] for name in (before, after)]
        is_known = all(" " not in commit for commit in commits)
        names = tools.git("diff", "--name-only", *commits, folder=self.folder) if is_known else None
        found = [name for name in (names or "").splitlines() if _matters(name)]
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        return ", ".join(found[:SHOWN]) + more


def _path(line: str) -> str:
    return line.partition("\t")[2]


def _matters(path: str) -> bool:
    return not path.endswith(HARMLESS) and not set(HARMLESS_FOLDERS).intersection(path.split("/")[:-1])
