"""A run on disk: a frozen view that is read again whenever the run is opened."""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import files, plugins
from rlx.command import is_plain_word
from rlx.errors import ConfigError, FileDamaged, NotFound, Refused, UsageError, hint_for
from rlx.number_format import listed
from rlx.runs import metrics, process, project, untrusted_rows
from rlx.runs.status import COMPLETED, ENDED, SeedStatus, has_ended, run_status, seed_status

if TYPE_CHECKING:
    import pandas

SCRIPT_BACKEND = "script"
COMMAND_BACKEND = "command"
IMPORTED_BACKEND = "imported"
"""The backend of a finished run that came from another tool: rlx reads it and never trains it."""
SNAPSHOT = "config_snapshot.yaml"
METADATA = "metadata.json"
LABELS = "labels.json"
SUPERVISOR = "supervisor.json"
JOBS = "jobs.json"
"""Which executor trains the seeds of a run, and the job of each; absent if this machine's supervisor does."""
HEARTBEAT = "heartbeat"
LEASE = "seed"
"""The process that trains a seed holds the lock next to this name in the seed's folder."""


@dataclass(frozen=True)
class Seed:
    """One training seed of a run."""

    number: int
    folder: Path

    @cached_property
    def _events(self) -> untrusted_rows.Rows:
        return untrusted_rows.read(self.folder / untrusted_rows.EVENTS)

    @cached_property
    def _attempts(self) -> untrusted_rows.Rows:
        return untrusted_rows.read(self.folder / untrusted_rows.ATTEMPTS)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of this seed, up to the first damaged row."""
        return self._events.sound

    @property
    def attempts(self) -> list[dict[str, Any]]:
        return self._attempts.sound

    @property
    def damage(self) -> str:
        """The first problem with its files; empty if all files are sound."""
        return self._events.damage or self._attempts.damage or untrusted_rows.read(self.metrics_path).damage

    @cached_property
    def status(self) -> SeedStatus:
        is_alive = None
        age = None
        if not has_ended(self.events):  # signs of life cost more than all else: most seeds of a list need none
            worker = self.worker
            if worker:
                is_alive = process.is_alive(worker)
            if self.events and self.events[-1]["event"] not in ENDED and self.is_locked:
                is_alive = True
            age = self.heartbeat_age
        return seed_status(self.events, is_alive=is_alive, heartbeat_age=age, damage=self._events.damage)

    @property
    def worker(self) -> process.Process | None:
        """The process of the last attempt, as it registered itself; it may have ended."""
        starts = [event for event in self.events if event.get("event") == "started"]
        if not starts:
            return None
        return process.from_document(starts[-1].get("process"))

    @property
    def is_locked(self) -> bool:
        """Whether a process holds this seed's lock, as every process does that trains it."""
        return files.is_locked(self.folder / LEASE)

    @property
    def heartbeat(self) -> float | None:
        """The time of the last heartbeat; None if there never was one."""
        try:
            return (self.folder / HEARTBEAT).stat().st_mtime
        except OSError:
            return None

    @property
    def heartbeat_age(self) -> float | None:
        """Seconds since the last heartbeat, below zero if it lies in the future; None if there never was one."""
        heartbeat = self.heartbeat
        if heartbeat is None:
            return None
        return time.time() - heartbeat

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def metrics_path(self) -> Path:
        return self.folder / untrusted_rows.METRICS

    @cached_property
    def step(self) -> int:
        """The last known step: the step at its end, or else the newer one of its last event and last metrics row."""
        event = (self.events or [{}])[-1]
        step = int(event.get("step") or 0)
        if step and event["event"] in ENDED:
            return step
        row = metrics.last_row(self.metrics_path) or {"step": 0}
        return max(step, int(row["step"]))

    @cached_property
    def own_protocol(self) -> str | None:
        """The protocol fingerprint of the report that training made; None if it made none."""
        reports = [event for event in self.events if event.get("event") == "reported"]
        if not reports:
            return None
        return str(reports[-1].get("fingerprint"))

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
        document = _mapping(files.read_json(self.path / METADATA))
        if not isinstance(document.get("lineage") or {}, dict):
            raise FileDamaged(f"{self.name}/{METADATA}: `lineage` is not a mapping")
        return document

    @property
    def is_script(self) -> bool:
        """Whether another program trained it, such as the user's own script: rlx can neither resume nor open it."""
        return self.metadata.get("backend") in (SCRIPT_BACKEND, IMPORTED_BACKEND)

    @property
    def is_imported(self) -> bool:
        """Whether it came from another tool (`rlx import`)."""
        return self.metadata.get("backend") == IMPORTED_BACKEND

    @property
    def is_opaque(self) -> bool:
        """Whether another program wrote its checkpoints: rlx keeps those files and never opens them."""
        return self.metadata.get("backend") in (SCRIPT_BACKEND, COMMAND_BACKEND, IMPORTED_BACKEND)

    @property
    def study(self) -> str:
        """The study that launched this run; empty if it is a plain run."""
        lineage = _mapping(self.metadata.get("lineage"))
        if "job" not in lineage:
            return ""
        return str(lineage.get("study") or "")

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved config of this run."""
        from rlx.config import yaml_lines

        try:
            return yaml_lines.read(self.path / SNAPSHOT, kind=yaml_lines.RUN_SNAPSHOT).data
        except (ConfigError, NotFound) as error:
            hint = f"restore {self.name}/{SNAPSHOT} from a copy, or delete the run: rlx rm {self.name}"
            raise FileDamaged(f"{self.name}/{SNAPSHOT} cannot be read: {error.message}", hint=hint) from None

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
        seeds = []
        try:
            entries = os.scandir(self.path)
        except OSError:
            return ()
        with entries:
            for entry in entries:
                if not entry.name.startswith("seed_"):
                    continue
                digits = entry.name.removeprefix("seed_")
                if digits.isascii() and digits.isdigit() and _is_folder(entry):
                    seeds.append(Seed(int(digits), self.path / entry.name))
        return tuple(sorted(seeds, key=lambda seed: seed.number))

    @cached_property
    def deleted_seeds(self) -> tuple[int, ...]:
        """The seeds that have evaluations but no folder any more."""
        known = {seed.number for seed in self.seeds}
        evaluated = set()
        for path in (self.path / "eval").glob("*/seed_*_*.json"):
            digits = path.name.split("_")[1]
            if digits.isascii() and digits.isdigit():
                evaluated.add(int(digits))
        return tuple(sorted(evaluated - known))

    def seed(self, number: int) -> Seed:
        """Return one seed of this run."""
        for seed in self.seeds:
            if seed.number == number:
                return seed
        known = ", ".join(str(seed.number) for seed in self.seeds)
        raise NotFound(f"{self.name} has no seed {number}", hint=f"its seeds: {known}")

    @cached_property
    def supervisor(self) -> process.Process | None:
        """The process that supervises this run, as it registered itself; it may have ended."""
        try:
            return process.from_document(files.read_json(self.path / SUPERVISOR))
        except (OSError, ValueError):
            return None

    def supervisor_of(self, seed: int) -> process.Process | None:
        """Return the process that supervises a seed: its own one, if a scheduler runs each seed, or the run's."""
        try:
            return process.from_document(files.read_json(part_supervisor(self.path, seed)))
        except (OSError, ValueError):
            return self.supervisor

    @cached_property
    def is_supervised(self) -> bool:
        """Whether its supervisor lives: the lock decides, and the process table if the lock is free."""
        if self.supervisor is None:
            return False
        return files.is_locked(self.path / SUPERVISOR) or process.is_alive(self.supervisor) is True

    @cached_property
    def status(self) -> str:
        return run_status([seed.status.state for seed in self.seeds], is_supervised=self.is_supervised)

    def is_finished(self, seed: Seed) -> bool:
        """Say whether a seed completed and has its report; a seed that was killed in between lacks the report."""
        if seed.status.state != COMPLETED:
            return False
        return self.is_opaque or seed.own_protocol is not None or not (seed.checkpoints / "latest").is_dir()

    @property
    def planned_steps(self) -> int:
        """The planned steps per seed; 0 if unknown."""
        planned = self.metadata.get("total_timesteps")
        if "total_timesteps" not in self.metadata:  # an older run: reading its YAML is slow, so it comes second
            planned = _mapping(self.config.get("algo")).get("total_timesteps")
        if not isinstance(planned, int):
            return 0
        return planned

    @cached_property
    def own_protocol(self) -> str | None:
        """The protocol fingerprint of the reports of most seeds; None if there is no report."""
        counts = Counter(seed.own_protocol for seed in self.seeds if seed.own_protocol)
        return max(counts, key=lambda fingerprint: counts[fingerprint], default=None)

    def series(self, name: str) -> dict[int, metrics.Series]:
        """Return one metric of every seed as NumPy arrays."""
        return {seed.number: seed.series(name) for seed in self.seeds}

    def metric_names(self) -> list[str]:
        """Return the metrics any seed has logged."""
        return list(dict.fromkeys(name for seed in self.seeds for name in metrics.names(seed.rows)))

    def evaluations(self) -> list[dict[str, Any]]:
        """Return every stored evaluation document, with its `fingerprint` and file `name`."""
        paths = sorted((self.path / "eval").glob("*/*.json"))
        return [{**read_evaluation(path), "fingerprint": path.parent.name, "name": path.stem} for path in paths]

    def _repr_html_(self) -> str:
        return str(plugins.load(plugins.VIEWS, "run", kind="view")(self).html())

    def _repr_png_(self) -> bytes | None:
        png: bytes | None = plugins.load(plugins.VIEWS, "run", kind="view")(self).png()
        return png

    def to_pandas(self) -> pandas.DataFrame:
        """Return all metrics rows of all seeds as one table (needs pandas)."""
        import pandas

        table = []
        for seed in self.seeds:
            for row in seed.rows:
                numbers = {key: files.number(value) for key, value in row.items() if files.is_number(value)}
                table.append({"seed": seed.number, **row, **numbers})
        return pandas.DataFrame(table)


def deleted_note(run: Run) -> str:
    """Say which seeds were evaluated and have no folder any more. Returns an empty text if there are none."""
    if not run.deleted_seeds:
        return ""
    names = ", ".join(map(str, run.deleted_seeds))
    noun = "seed" if len(run.deleted_seeds) == 1 else "seeds"
    return f"the folder of {noun} {names} is gone: its evaluations are kept, and they do not count"


def part_supervisor(path: Path, seed: int) -> Path:
    """Return the file of the supervisor that has one seed of a run."""
    return path / f"supervisor_{seed}.json"


def read_labels(path: Path) -> dict[str, Any]:
    """Return a run's tags and note; empty ones if it has no labels file."""
    try:
        document = files.read_json(path / LABELS)
    except FileNotFoundError:
        document = {}
    if isinstance(document, dict):
        tags = document.get("tags", [])
        note = document.get("note", "")
        if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) and isinstance(note, str):
            return {"schema": 1, "tags": tags, "note": note}
    raise FileDamaged(f"{path.name}/{LABELS} does not hold tags and a note")


_EVALUATION_TYPES = {"protocol": dict, "episodes": list, "step": int, "purpose": str, "scenarios": dict}


def read_evaluation(path: Path) -> dict[str, Any]:
    """Return a stored evaluation. Raises `FileDamaged` if the document does not have its types."""
    document = files.read_json(path)
    is_sound = isinstance(document, dict)
    if is_sound:
        is_sound = all(isinstance(document[key], kind) for key, kind in _EVALUATION_TYPES.items() if key in document)
        is_sound &= all(files.is_number(document[key]) for key in ("mean", "score", "time") if key in document)
    if not is_sound or not all(isinstance(row, dict) for row in document.get("episodes", ())):
        raise FileDamaged(f"{path.parent.name}/{path.name} is not an evaluation")
    return _mapping(document)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _mapping(document: object) -> dict[str, Any]:
    """Return a document that was read from a run folder if it is a mapping, else an empty one."""
    if isinstance(document, dict):
        return document
    return {}


def open(reference: str) -> Run:
    """Open a run of the project around the current folder, by name or path."""
    return find(reference, root=project.root())


def names(root: Path) -> list[str]:
    """Return the names of all runs of a project, oldest number first within a name."""
    try:
        folders = [path for path in project.runs_folder(root).iterdir() if is_plain_word(path.name)]
        return sorted(path.name for path in folders if is_run_folder(path) and not is_unfinished(path))
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_run_folder(path: Path) -> bool:
    """Return whether a folder is a run; a run that lost its metadata still counts."""
    return any(os.path.lexists(path / name) for name in (METADATA, SNAPSHOT))  # False for a name that no file can have


def is_unfinished(path: Path) -> bool:
    """Return whether a process creates or deletes a run in this folder, or was killed while it did."""
    return path.name.startswith(".")


def is_pattern(text: str) -> bool:
    """Return whether a text is a pattern such as `cartpole_*` and not a name."""
    return any(sign in text for sign in "*?[")


def _matching(reference: str, known: list[str]) -> list[str]:
    if not is_pattern(reference):
        return [name for name in known if reference in name]
    from fnmatch import fnmatchcase

    return [name for name in known if fnmatchcase(name, reference)]


def find_all(reference: str, *, root: Path) -> list[Run]:
    """Open every run that a pattern matches, in the order of their names, or the one run of any other reference."""
    if not is_pattern(reference):
        return [find(reference, root=root)]
    matching = _matching(reference, names(root))
    if not matching:
        raise NotFound(f"no run matches `{reference}`", hint="rlx ls")
    return [find(name, root=root) for name in matching]


def own_path(path: Path, root: Path) -> Path:
    """Return a run's path without links, except that `runs` itself may be one, for example to a larger disk."""
    resolved = path.resolve()
    runs = project.runs_folder(root.resolve())
    if resolved.parent == runs.resolve():
        return runs / resolved.name
    return resolved


def _refuse_odd_name(run: Run) -> None:
    """Refuse a folder from elsewhere whose name a shell would not read as itself: rlx prints names in commands."""
    if not is_plain_word(run.name):
        place = shlex.quote(str(run.path))
        hint = f"rename the folder: mv -- {place} {shlex.quote(str(run.path.parent / 'NEW_NAME'))}"
        raise Refused(f"the run {shlex.quote(run.name)} has a name that a shell reads as more than a name", hint=hint)


def find(reference: str, *, root: Path) -> Run:
    """Open a run by name, by path, or by a part of its name or a pattern that matches one run only."""
    for path in (project.runs_folder(root) / reference, Path(reference)):
        if is_run_folder(path) and not is_unfinished(path):
            run = Run(own_path(path, root))
            _refuse_odd_name(run)
            return run
    known = names(root)
    matching = _matching(reference, known)
    if len(matching) == 1:
        return Run(own_path(project.runs_folder(root) / matching[0], root))
    if matching:
        hint = f"name one of them: {listed(matching[::-1])}"  # the newest first
        raise UsageError(f"`{reference}` matches {len(matching)} runs", hint=hint)
    if not known:
        raise NotFound(f"no run `{reference}`", hint="train one first: rlx train CONFIG")
    raise NotFound(f"no run `{reference}`", hint=hint_for(reference, known, otherwise="rlx ls"))
