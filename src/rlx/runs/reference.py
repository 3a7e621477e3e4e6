"""What a person points at: `RUN`, `RUN:checkpoint`, or the path of a checkpoint folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlx.errors import NotFound, UsageError
from rlx.runs import checkpoint as checkpoints
from rlx.runs.run import METADATA, Run, find


@dataclass(frozen=True)
class Reference:
    """A run and, where they were named, one of its seeds and checkpoints; or a checkpoint folder outside any run."""

    run: Run | None
    seed: int | None = None
    checkpoint: str | None = None
    path: Path | None = None

    def checkpoints(self, *, default: str, seed: int | None = None) -> dict[int | None, Path]:
        """Return the checkpoint of every seed meant; the only key is None for a folder outside any run."""
        found, absent = self.present(default=default, seed=seed)
        if absent:
            raise absent[0]
        return found

    def present(self, *, default: str, seed: int | None = None) -> tuple[dict[int | None, Path], list[NotFound]]:
        """Return the checkpoints of the seeds that have it, and an error for each that has not; raises without any."""
        if self.run is None or self.path is not None:
            if seed is not None and seed != self.seed:
                raise UsageError(f"--seed {seed} does not go with a checkpoint's path", hint="name the run instead")
            return {self.seed: self.path or Path()}, []
        name = self.checkpoint or default
        seeds = self.run.seeds if seed is None else (self.run.seed(seed),)
        if not seeds:
            raise NotFound(f"{self.run.name} has no seeds yet")
        known = {one.number: checkpoints.names(one.checkpoints) for one in seeds}
        absent = [self._absent(name, number, names) for number, names in known.items() if name not in names]
        if len(absent) == len(seeds):
            raise absent[0]
        return {one.number: one.checkpoints / name for one in seeds if name in known[one.number]}, absent

    def _absent(self, name: str, seed: int, known: list[str]) -> NotFound:
        assert self.run is not None
        hint = f"it has: {', '.join(known)}" if known else f"it has none yet: rlx info {self.run.name}"
        return NotFound(f"seed {seed} of {self.run.name} has no checkpoint `{name}`", hint=hint)


def resolve(text: str, root: Path) -> Reference:
    """Find what `RUN`, `RUN:checkpoint` or a checkpoint's path means; never guesses."""
    path = Path(text)
    if (path / checkpoints.MANIFEST).is_file():
        return _at(path.resolve())
    if (path / METADATA).is_file() or ":" not in text:
        return Reference(find(text, root=root))
    name, _, checkpoint = text.rpartition(":")
    if not name or not checkpoint:
        raise UsageError(f"`{text}`: not a run and a checkpoint", hint="RUN:best, RUN:latest or RUN:step_5000")
    return Reference(find(name, root=root), checkpoint=checkpoint)


def _at(path: Path) -> Reference:
    """Return the run and seed around a checkpoint folder, where there are some."""
    seed, run = path.parent.parent, path.parent.parent.parent
    number = seed.name.removeprefix("seed_")
    if path.parent.name == "checkpoints" and number.isdigit() and (run / METADATA).is_file():
        return Reference(Run(run), seed=int(number), checkpoint=path.name, path=path)
    return Reference(None, checkpoint=path.name, path=path)
