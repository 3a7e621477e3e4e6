"""Scan a repository: collect its facts, choose its profile, list its defects and the open questions."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import plugins
from rlx.adopt.find.checkpoint_files import checkpoint_files
from rlx.adopt.find.defects import defects
from rlx.adopt.find.dependencies import frameworks, interpreters
from rlx.adopt.find.entry_points import entry_points
from rlx.adopt.find.launchers import launchers, local_sockets
from rlx.adopt.find.mdp_terms import mdp_terms
from rlx.adopt.find.metric_logs import metric_logs
from rlx.adopt.find.options.program_options import ProgramOptions, options_of_program
from rlx.adopt.profiles.profile import Profile
from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import Defect, ScanFact, ScanFacts
from rlx.errors import NotFound

KINDS = (
    "framework", "python", "interpreter", "train", "eval", "config system", "seed", "length", "logger", "log folder",
    "metric tag", "checkpoint", "reward term", "reward function", "termination", "curriculum", "randomisation",
    "launcher", "local sockets",
)  # fmt: skip
"""The kinds of facts, in the order of the report."""
MOST_PROGRAMS = 40


@dataclass(frozen=True)
class Scan:
    """The result of a scan."""

    root: Path
    profile: Profile
    facts: ScanFacts
    defects: tuple[Defect, ...]
    programs: dict[str, ProgramOptions]
    """The options of the programs that train, by their paths."""
    notes: tuple[str, ...]
    files: int
    seconds: float

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "folder": str(self.root),
            "profile": self.profile.name,
            "files": self.files,
            "seconds": round(self.seconds, 3),
            "facts": {kind: [fact.document() for fact in self.facts.of(kind)] for kind in KINDS},
            "options": {path: _options_document(options) for path, options in self.programs.items()},
            "defects": [defect.document() for defect in self.defects],
            "notes": list(self.notes),
        }


def _options_document(options: ProgramOptions) -> dict[str, Any]:
    rows = []
    for option in options.options:
        default: object = option.default
        if not isinstance(default, (str, int, float, bool, type(None))):
            default = repr(default)
        rows.append(
            {"key": option.key, "default": default, "type": option.type, "file": option.file, "line": option.line}
        )
    return {"system": options.system, "file": options.file, "line": options.line, "options": rows}


def scan(root: Path) -> Scan:
    """Scan a folder. Nothing of it is imported or run, and limits bound the time."""
    if not root.is_dir():
        raise NotFound(f"no folder {root}", hint="rlx adopt DIR")
    was_collecting = gc.isenabled()
    gc.disable()  # millions of syntax nodes without cycles: the collector would take half of the time
    try:
        return _scanned(root)
    finally:
        if was_collecting:
            gc.enable()


def _scanned(root: Path) -> Scan:
    started = time.monotonic()
    repository = ForeignRepository(root.resolve())
    facts = ScanFacts()
    for find in (
        frameworks,
        interpreters,
        entry_points,
        metric_logs,
        checkpoint_files,
        mdp_terms,
        launchers,
        local_sockets,
    ):
        facts.found += find(repository)
    profile = choose_profile(repository, facts)
    programs = _programs(repository, facts, profile)
    facts.found += _program_facts(programs, profile)
    facts.found += _framework_facts(profile, facts)
    found_defects = tuple(dict.fromkeys(defects(repository, facts, programs)))
    seconds = time.monotonic() - started
    return Scan(
        repository.root,
        profile,
        facts,
        found_defects,
        programs,
        tuple(repository.notes),
        len(repository.files),
        seconds,
    )


def choose_profile(repository: ForeignRepository, facts: ScanFacts) -> Profile:
    """Return the first profile whose marks match; the generic one matches always."""
    for name in plugins.PROFILES:
        profile: Profile = plugins.load(plugins.PROFILES, name, kind="profile")
        if profile.matches(repository, facts):
            return profile
    raise NotFound("no profile matches", hint="rlx adopt --help")


def _programs(repository: ForeignRepository, facts: ScanFacts, profile: Profile) -> dict[str, ProgramOptions]:
    paths = [fact.file for fact in facts.of("train")]
    paths.sort(key=lambda path: not (profile.train and path.endswith(profile.train)))
    programs = {}
    for path in paths[:MOST_PROGRAMS]:
        file = repository.by_path(path)
        if file is not None:
            programs[path] = options_of_program(repository, file)
    return programs


def _program_facts(programs: dict[str, ProgramOptions], profile: Profile) -> list[ScanFact]:
    """Return the config systems, seeds and lengths of the programs, each system and key once."""
    facts: dict[tuple[str, str], ScanFact] = {}
    for path, program in programs.items():
        for system, file, line in config_systems(program):
            key = ("config system", system)
            facts.setdefault(key, ScanFact(*key, file, line, detail=path))
        for option in program.options:
            if option.is_seed:
                found = ScanFact("seed", option.flag, option.file, option.line, value=option.default, detail=path)
                facts.setdefault(("seed", option.flag), found)
            elif is_length(option.key, profile):
                unit = length_unit(option.key, profile)
                found = ScanFact("length", option.flag, option.file, option.line, value=option.default, detail=unit)
                facts.setdefault(("length", option.flag), found)
    if not any(kind == "seed" for kind, _ in facts):
        for path, program in programs.items():
            for option in program.in_files:
                if option.is_seed:
                    found = ScanFact("seed", option.key, option.file, option.line, "medium", option.default, path)
                    facts.setdefault(("seed", option.key), found)
    return list(facts.values())


def config_systems(program: ProgramOptions) -> Iterator[tuple[str, str, int]]:
    """Yield the config systems of a program: its own, argparse next to Hydra as in Isaac Lab's scripts, YAML files."""
    if program.system != "none":
        yield program.system, program.file, program.line
    flags = [option for option in program.options if option.flag.startswith("--")]
    if program.system == "hydra" and flags:
        yield "argparse", flags[0].file, flags[0].line
    yield from program.others
    if program.yaml is not None:
        yield "yaml", *program.yaml


def is_length(key: str, profile: Profile) -> bool:
    """Return whether an option sets the length of a training."""
    return _plain(key) in {_plain(name) for name in profile.length.keys}


def length_unit(key: str, profile: Profile) -> str:
    """Return the unit of an option that sets the length, by its name, or else by the profile."""
    plain = _plain(key)
    for word, unit in (("iter", "iterations"), ("update", "iterations"), ("epoch", "iterations"),
                       ("episode", "episodes"), ("frame", "frames"), ("step", "environment steps")):  # fmt: skip
        if word in plain:
            if unit == "iterations" and profile.length.formula:
                return f"iterations ({profile.length.formula} environment steps)"
            return unit
    return profile.length.unit


def _plain(key: str) -> str:
    return key.lower().replace("-", "_")


def _framework_facts(profile: Profile, facts: ScanFacts) -> list[ScanFact]:
    """Return the metric names and checkpoints that a framework writes by itself."""
    known = {(fact.kind, fact.name) for fact in facts.found}
    train = facts.first("train")
    if train is None:
        return []
    rows = [("metric tag", tag) for tag in profile.logs.tags]
    if profile.checkpoint:
        rows.append(("checkpoint", profile.checkpoint))
    detail = f"written by {profile.name}"
    return [
        ScanFact(kind, name, train.file, train.line, "medium", detail=detail, is_of_framework=True)
        for kind, name in rows
        if (kind, name) not in known
    ]
