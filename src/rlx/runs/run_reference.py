"""References to checkpoints: `RUN`, `RUN:checkpoint`, or the path of a checkpoint folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlx.errors import NotFound, UsageError
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.run import METADATA, Run, find, own_path


@dataclass(frozen=True)
class Reference:
    """A run with an optional seed and checkpoint, or a checkpoint folder outside any run."""

    run: Run | None
    seed: int | None = None
    checkpoint: str | None = None
    path: Path | None = None

    def checkpoints(self, *, default: str, seed: int | None = None) -> dict[int | None, Path]:
        """Return the checkpoint path per seed; for a folder outside any run the only key is None."""
        paths, absent = self.present(default=default, seed=seed)
        if absent:
            raise absent[0]
        return paths

    def present(self, *, default: str, seed: int | None = None) -> tuple[dict[int | None, Path], list[NotFound]]:
        """Return the checkpoint paths of the seeds that have one, and an error for each other seed, if any has."""
        if self.run is None or self.path is not None:
            if seed is not None and seed != self.seed:
                raise UsageError(
                    f"--seed {seed} cannot be combined with a checkpoint's path", hint="name the run instead"
                )
            return {self.seed: self.path or Path()}, []
        name = self.checkpoint or default
        seeds = self.run.seeds
        if seed is not None:
            seeds = (self.run.seed(seed),)
        if not seeds:
            raise NotFound(f"{self.run.name} has no seeds yet")
        paths: dict[int | None, Path] = {}
        absent = []
        for member in seeds:
            known = checkpoints.names(member.checkpoints)
            if name in known:
                paths[member.number] = member.checkpoints / name
            else:
                absent.append(self._absent(name, member.number, known))
        if not paths:
            raise absent[0]
        return paths, absent

    def best_seed(self) -> int | None:
        """Return the seed whose final policy scored highest in its report, or the first seed without any report."""
        if self.run is None or self.path is not None or not self.run.seeds:
            return None
        scores: dict[int, float] = {}
        for document in self.run.evaluations():
            score = document.get("score", document.get("mean"))
            is_report = document.get("purpose") == "report" and isinstance(document.get("seed"), int)
            if is_report and isinstance(score, (int, float)) and score == score:
                scores[document["seed"]] = max(float(score), scores.get(document["seed"], float("-inf")))
        known = {seed.number for seed in self.run.seeds}
        measured = {seed: score for seed, score in scores.items() if seed in known}
        if not measured:
            return self.run.seeds[0].number
        return max(measured, key=lambda seed: measured[seed])

    def _absent(self, name: str, seed: int, known: list[str]) -> NotFound:
        assert self.run is not None
        hint = f"it has: {', '.join(known)}"
        if not known:
            hint = f"it has none yet: rlx info {self.run.name}"
        return NotFound(f"seed {seed} of {self.run.name} has no checkpoint `{name}`", hint=hint)


def resolve(text: str, root: Path) -> Reference:
    """Return the reference that `RUN`, `RUN:checkpoint` or the path of a checkpoint stands for."""
    path = Path(text)
    if (path / checkpoints.MANIFEST).is_file():
        return _at(path.resolve(), root)
    if (path / METADATA).is_file() or ":" not in text:
        return Reference(find(text, root=root))
    name, _, checkpoint = text.rpartition(":")
    if not name or not checkpoint:
        raise UsageError(f"`{text}`: not a run and a checkpoint", hint="RUN:best, RUN:latest or RUN:step_5000")
    return Reference(find(name, root=root), checkpoint=checkpoint)


def _at(path: Path, root: Path) -> Reference:
    """Return the reference for a checkpoint folder, with the run and seed around it if there are any."""
    seed = path.parent.parent
    run = seed.parent
    number = seed.name.removeprefix("seed_")
    if path.parent.name == "checkpoints" and number.isdigit() and (run / METADATA).is_file():
        own = own_path(run, root)
        return Reference(Run(own), seed=int(number), checkpoint=path.name, path=own / path.relative_to(run))
    return Reference(None, checkpoint=path.name, path=path)
