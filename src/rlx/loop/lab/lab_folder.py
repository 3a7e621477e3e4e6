"""A lab's folder: the files of the person and the agent, the study of every rung, and the lock of the driver.

A lab is a project of its own. Each rung of its ladder is one study with one ledger, so that no score of one rung can
meet a score of another. The newest study is the current rung.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlx.errors import NotFound, UsageError
from rlx.loop.lab import lab_config
from rlx.loop.lab.lab_config import LabConfig, Rung
from rlx.runs import project
from rlx.study.study_folder import Study

CANDIDATE = "candidate"
SURFACE = (f"{CANDIDATE}/env.py", f"{CANDIDATE}/train.py")
"""The only files that an agent may change."""
EVALUATOR = "evaluator"
PROGRAM = "program.md"
APPROVE_HINT = "look at the lab; if you trust it: rlx lab approve"
"""The hint if a lab came from elsewhere, so that nothing may run what it names."""
RUNGS = f"{EVALUATOR}/rungs"


@dataclass(frozen=True)
class Lab:
    """One lab, by its folder; studies and attempts are read from disk at each call."""

    root: Path

    @classmethod
    def open(cls, root: Path | None = None) -> Lab:
        """Return the lab of a folder (default: the project around the current folder)."""
        lab = cls(project.root(root))
        if not lab.config_path.is_file():
            raise NotFound(f"{lab.root.name} is not a lab: it has no {lab_config.FILE}", hint="rlx lab new NAME")
        return lab

    @property
    def config_path(self) -> Path:
        return self.root / lab_config.FILE

    @property
    def program_path(self) -> Path:
        return self.root / PROGRAM

    @property
    def folder(self) -> Path:
        """What rlx stores about the lab as a whole. Everything here can be derived from the ledgers again."""
        return self.root / ".rlx" / "labs" / self.name

    @property
    def lock_path(self) -> Path:
        """The path that one driver holds with `files.locked`."""
        return self.folder / "driver"

    @cached_property
    def config(self) -> LabConfig:
        return lab_config.read(self.config_path)

    @property
    def name(self) -> str:
        return self.config.lab

    def study_at(self, rung: Rung) -> Study:
        """Return the study of a rung, whether or not it exists yet."""
        name = f"{self.name}-{rung.slug}"
        return Study(self.root, name, name)

    @property
    def begun(self) -> list[Rung]:
        """The rungs that have a study, from the lowest to the current one."""
        return [rung for rung in self.config.ladder if self.study_at(rung).contract_path.is_file()]

    @property
    def rung(self) -> Rung:
        """The current rung: the highest that has a study."""
        begun = self.begun
        if not begun:
            raise NotFound(f"lab {self.name} has no study", hint="rlx lab approve")
        return begun[-1]

    @property
    def study(self) -> Study:
        """The study of the current rung."""
        return self.study_at(self.rung)

    @property
    def next_rung(self) -> Rung | None:
        """The rung above the current one; None at the top."""
        above = self.config.ladder[self.config.ladder.index(self.rung) + 1 :]
        return above[0] if above else None

    def rung_named(self, text: str) -> Rung:
        """Return the rung that is written as `32/8`."""
        for rung in self.config.ladder:
            if text in (rung.name, rung.slug):
                return rung
        names = ", ".join(rung.name for rung in self.config.ladder)
        raise UsageError(f"the ladder has no rung `{text}`", hint=f"one of {names}")
