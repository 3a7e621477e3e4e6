"""A run as it is on disk: a frozen view, read afresh whenever it is opened."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import files
from rlx.errors import FileDamaged, NotFound, UsageError, did_you_mean
from rlx.runs import metrics, process, project, written
from rlx.runs.status import ENDED, SeedStatus, run_status, seed_status

if TYPE_CHECKING:
    import pandas

SCRIPT_BACKEND, COMMAND_BACKEND = "script", "command"
SNAPSHOT, METADATA, LABELS, SUPERVISOR = "config_snapshot.yaml", "metadata.json", "labels.json", "supervisor.json"


@dataclass(frozen=True)
class Seed:
    """One training seed of a run."""

    number: int
    folder: Path

    @cached_property
    def _events(self) -> written.Rows:
        return written.read(self.folder / written.EVENTS)

    @cached_property
    def _attempts(self) -> written.Rows:
        return written.read(self.folder / written.ATTEMPTS)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened to it, up to the damage where there is some."""
        return self._events.sound

    @property
    def attempts(self) -> list[dict[str, Any]]:
        return self._attempts.sound

    @property
    def damage(self) -> str:
        """What is wrong with its files, the first of them; empty where all read as they were written."""
        return self._events.damage or self._attempts.damage or written.read(self.metrics_path).damage

    @cached_property
    def status(self) -> SeedStatus:
        started = next((event for event in reversed(self.events) if event.get("event") == "started"), None)
        worker = process.from_document(started.get("process")) if started else None
        return seed_status(
            self.events,
            is_alive=process.is_alive(worker) if worker else None,
            heartbeat_age=self.heartbeat_age,
            damage=self._events.damage,
        )

    @property
    def heartbeat_age(self) -> float | None:
        """Seconds since the last sign of life; None where there never was one."""
        try:
            return max(0.0, time.time() - (self.folder / "heartbeat").stat().st_mtime)
        except OSError:
            return None

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def metrics_path(self) -> Path:
        return self.folder / written.METRICS

    @cached_property
    def step(self) -> int:
        """The last step that is known: where the seed ended, else the newest of its last event and last row."""
        event = self.events[-1] if self.events else {}
        told = int(event.get("step") or 0)
        if told and event["event"] in ENDED:
            return int(told)
        row = metrics.last_row(self.metrics_path)
        return max(told, int(row["step"]) if row else 0)

    @cached_property
    def own_protocol(self) -> str | None:
        """The fingerprint that training made its own report under; None where it has made none."""
        told = [event.get("fingerprint") for event in self.events if event.get("event") == "reported"]
        return str(told[-1]) if told else None

    def last(self, name: str) -> float | None:
        """Return the newest value of a metric."""
        return metrics.last_value(self.metrics_path, name)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        return metrics.rows(self.metrics_path)

    def series(self, name: str) -> metrics.Series:
        """Return one metric as NumPy arrays."""
        return metrics.series(self.rows, name)


@dataclass(frozen=True)
class Run:
    """One execution of an experiment, with one or more training seeds inside."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def metadata(self) -> dict[str, Any]:
        document = files.read_json(self.path / METADATA)
        return document if isinstance(document, dict) else {}

    @property
    def is_script(self) -> bool:
        """Whether a script of one's own trains it: rlx can neither train it further nor open its checkpoints."""
        return self.metadata.get("backend") == SCRIPT_BACKEND

    @property
    def is_opaque(self) -> bool:
        """Whether its checkpoints are another program's files, which rlx keeps and never opens."""
        return self.metadata.get("backend") in (SCRIPT_BACKEND, COMMAND_BACKEND)

    @property
    def study(self) -> str:
        """The study that launched it; empty where none did."""
        lineage = self.metadata.get("lineage")
        return str(lineage.get("study") or "") if isinstance(lineage, dict) and "job" in lineage else ""

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved config this run was made from."""
        import yaml

        loaded = yaml.safe_load(files.read_bytes(self.path / SNAPSHOT).decode())
        return loaded if isinstance(loaded, dict) else {}

    @cached_property
    def labels(self) -> dict[str, Any]:
        return read_labels(self.path)

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self.labels["tags"])

    @property
    def note(self) -> str:
        return str(self.labels["note"])

    @cached_property
    def seeds(self) -> tuple[Seed, ...]:
        folders = {_seed_number(folder): folder for folder in self.path.glob("seed_*")}
        return tuple(Seed(number, folders[number]) for number in sorted(n for n in folders if n is not None))

    def seed(self, number: int) -> Seed:
        """Return one seed of this run."""
        for seed in self.seeds:
            if seed.number == number:
                return seed
        known = ", ".join(str(seed.number) for seed in self.seeds)
        raise NotFound(f"{self.name} has no seed {number}", hint=f"its seeds: {known}")

    @cached_property
    def supervisor(self) -> process.Process | None:
        """The process that trains this run, as it wrote itself down; it may be gone."""
        try:
            return process.from_document(files.read_json(self.path / SUPERVISOR))
        except (OSError, ValueError):
            return None

    @cached_property
    def is_supervised(self) -> bool:
        return self.supervisor is not None and process.is_alive(self.supervisor) is True

    @cached_property
    def status(self) -> str:
        return run_status([seed.status.state for seed in self.seeds], is_supervised=self.is_supervised)

    @property
    def planned_steps(self) -> int:
        """The steps each seed is to train, 0 where nobody said; from the identity first, since reading YAML costs."""
        algo = self.config.get("algo") if "total_timesteps" not in self.metadata else self.metadata
        planned = algo.get("total_timesteps") if isinstance(algo, dict) else None
        return planned if isinstance(planned, int) else 0

    @cached_property
    def own_protocol(self) -> str | None:
        """The fingerprint of the report protocol that training used, on most seeds; None where nothing was recorded."""
        told = Counter(seed.own_protocol for seed in self.seeds if seed.own_protocol)
        return max(told, key=lambda fingerprint: told[fingerprint], default=None)

    def series(self, name: str) -> dict[int, metrics.Series]:
        """Return one metric of every seed as NumPy arrays."""
        return {seed.number: seed.series(name) for seed in self.seeds}

    def metric_names(self) -> list[str]:
        """Return the metrics any seed has logged."""
        return list(dict.fromkeys(name for seed in self.seeds for name in metrics.names(seed.rows)))

    def evaluations(self) -> list[dict[str, Any]]:
        """Return every stored evaluation document, with its `fingerprint` and file `name`."""
        found = []
        for path in sorted((self.path / "eval").glob("*/*.json")):
            found.append({**files.read_json(path), "fingerprint": path.parent.name, "name": path.stem})
        return found

    def to_pandas(self) -> pandas.DataFrame:
        """Return all metrics rows of all seeds as one table (needs pandas)."""
        import pandas

        every = [{"seed": seed.number, **row} for seed in self.seeds for row in seed.rows]
        return pandas.DataFrame([{key: value if key == "seed" or not files.is_number(value) else files.number(value)
                                  for key, value in row.items()} for row in every])  # fmt: skip


def read_labels(path: Path) -> dict[str, Any]:
    """Return a run's tags and note; empty ones where it has none."""
    try:
        document = files.read_json(path / LABELS)
    except FileNotFoundError:
        document = {}
    tags, note = (document.get("tags", []), document.get("note", "")) if isinstance(document, dict) else (None, None)
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags) or not isinstance(note, str):
        raise FileDamaged(f"{path.name}/{LABELS} does not hold tags and a note")
    return {"schema": 1, "tags": tags, "note": note}


def _seed_number(folder: Path) -> int | None:
    digits = folder.name.removeprefix("seed_")
    return int(digits) if digits.isascii() and digits.isdigit() else None


def open(reference: str) -> Run:
    """Open a run of the project around the current folder, by name or path."""
    return find(reference, root=project.root())


def names(root: Path) -> list[str]:
    """Return the names of all runs of a project, oldest number first within a name."""
    try:
        return sorted(path.name for path in project.runs_folder(root).iterdir() if (path / METADATA).is_file())
    except FileNotFoundError:
        return []


def find(reference: str, *, root: Path) -> Run:
    """Open a run by name, by path, or by a part of its name that only one run has; never guesses."""
    for path in (project.runs_folder(root) / reference, Path(reference)):
        if os.path.isfile(path / METADATA):  # noqa: PTH113  says no, where Path raises, to a name no file can have
            return Run(path.resolve())
    known = names(root)
    matching = [name for name in known if reference in name]
    if len(matching) == 1:
        return Run((project.runs_folder(root) / matching[0]).resolve())
    if matching:
        shown = ", ".join(matching[-8:]) + (f" (and {len(matching) - 8} more)" if len(matching) > 8 else "")
        raise UsageError(f"`{reference}` could be any of {len(matching)} runs", hint=f"name one: {shown}")
    near = did_you_mean(reference, known)
    hint = f"did you mean `{near}`?" if near else "rlx ls" if known else "train one first: rlx train CONFIG"
    raise NotFound(f"no run `{reference}`", hint=hint)
