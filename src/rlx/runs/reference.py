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
        if self.run is None or self.path is not None:
            if seed is not None and seed != self.seed:
                raise UsageError(f"--seed {seed} does not go with a checkpoint's path", hint="name the run instead")
            return {self.seed: self.path or Path()}
        name = self.checkpoint or default
        seeds = self.run.seeds if seed is None else (self.run.seed(seed),)
        if not seeds:
            raise NotFound(f"{self.run.name} has no seeds yet")
        return {one.number: self._checkpoint(one.checkpoints, name, one.number) for one in seeds}

    def _checkpoint(self, folder: Path, name: str, seed: int) -> Path:
        known = checkpoints.names(folder)
        if name not in known:
            assert self.run is not None
            hint = f"it has: {', '.join(known)}" if known else f"it has none yet: rlx info {self.run.name}"
            raise NotFound(f"seed {seed} of {self.run.name} has no checkpoint `{name}`", hint=hint)
        return folder / name


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
