"""Put the skills where Claude Code and Codex find them, keep them up to date, take them away again.

Every file that is written stands with its hash in a manifest beside it. A file is replaced or removed only where it
still has that hash (line ends aside): what a user edited stays. The manifest knows of a file before it is there, so
that an installation that was killed can be finished or taken back. Hooks and the MCP server come with the plug-in.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import rlx
from rlx import files
from rlx.errors import FileDamaged, RlxError, UsageError
from rlx.hosts import agents_block, shipped

SCHEMA = 1
MANIFEST = "rlx-skills.json"
HostName = Literal["claude", "codex"]
HOSTS: tuple[HostName, ...] = ("claude", "codex")
Change = Literal["write", "update", "same", "kept", "remove", "gone"]


@dataclass(frozen=True)
class Place:
    """A host's folder in a home or a project."""

    host: HostName
    base: Path
    is_user: bool

    @property
    def folder(self) -> Path:
        return self.base / (".claude" if self.host == "claude" else ".agents")

    @property
    def manifest(self) -> Path:
        return self.folder / MANIFEST

    @property
    def agents_file(self) -> Path | None:
        """The AGENTS.md that gets the block: Codex reads it, Claude Code does not."""
        if self.host != "codex":
            return None
        return codex_home() / "AGENTS.md" if self.is_user else self.base / "AGENTS.md"

    def shipped(self) -> dict[str, Path]:
        """Return what belongs here: {path below the folder: the package's file}."""
        found = {f"skills/{name}": path for name, path in shipped.skill_files()}
        if self.host == "claude":
            found |= {f"agents/{name}": path for name, path in shipped.agent_files()}
        return found

    def recorded(self) -> dict[str, Any]:
        """Return the manifest; empty where nothing was installed."""
        if not self.manifest.is_file():
            return {}
        try:
            document: dict[str, Any] = files.read_json(self.manifest)
        except FileDamaged:
            document = {}
        if not _is_manifest(document):
            raise UsageError(
                f"{self.manifest} is not what rlx wrote",
                hint="delete it and run `rlx skills install`: files that are as shipped are taken for installed",
            )
        return document


def _is_manifest(document: object) -> bool:
    """Say whether a manifest names files by hashes, all of them below its folder."""
    hashes = document.get("files") if isinstance(document, dict) else None
    note = document.get("agents_md") if isinstance(document, dict) else None
    return (
        isinstance(hashes, dict)
        and all(_is_below(name) and isinstance(known, str) for name, known in hashes.items())
        and (note is None or (isinstance(note, dict) and isinstance(note.get("gap"), str) and "is_created" in note))
    )


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and path.parts[:1] in (("skills",), ("agents",))


def codex_home() -> Path:
    """Return where Codex keeps what is a user's."""
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")


@dataclass(frozen=True)
class Step:
    """One file and what happens to it."""

    path: Path
    change: Change
    content: bytes = b""

    def document(self, base: Path) -> dict[str, str]:
        shown = self.path.relative_to(base) if self.path.is_relative_to(base) else self.path
        return {"file": str(shown), "change": self.change}


@dataclass(frozen=True)
class Plan:
    """Everything an installation or a removal does at one place; `manifest` None removes it."""

    place: Place
    steps: tuple[Step, ...]
    manifest: dict[str, Any] | None = field(default=None)

    @property
    def changes(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.change not in ("same", "kept", "gone"))


def places(hosts: Iterable[HostName], *, root: Path, is_user: bool) -> list[Place]:
    """Return the folders of these hosts, in the user's home or in a project."""
    return [Place(host, Path.home() if is_user else root, is_user) for host in hosts]


def planned(place: Place) -> Plan:
    """Say what an installation changes, without changing anything."""
    recorded = place.recorded()
    hashes: Mapping[str, str] = recorded.get("files", {})
    wanted = {name: path.read_bytes() for name, path in place.shipped().items()}
    steps = [_wanted(place.folder / name, content, hashes.get(name)) for name, content in wanted.items()]
    steps += [_unwanted(place.folder / name, known) for name, known in hashes.items() if name not in wanted]
    kept = {step.path for step in steps if step.change == "kept"}
    now = {name: _hash(content) for name, content in wanted.items() if place.folder / name not in kept}
    block, note = _block_step(place, recorded.get("agents_md"))
    document = {"schema": SCHEMA, "version": rlx.__version__, "files": now, "agents_md": note}
    return Plan(place, (*steps, *block), document)


def planned_removal(place: Place) -> Plan:
    """Say what a removal changes: what was installed and not edited, and the block in AGENTS.md."""
    recorded = place.recorded()
    steps = [_unwanted(place.folder / name, known) for name, known in recorded.get("files", {}).items()]
    return Plan(place, (*steps, *_unblock_step(place, recorded.get("agents_md"))))


def apply(plan: Plan) -> None:
    """Do what was planned; one clear error where the place cannot be written to."""
    try:
        _announce(plan)
        for step in plan.changes:
            _do(step)
        _write_manifest(plan)
        _prune(plan)
    except OSError as error:
        where = "the home" if plan.place.is_user else "the project"
        other = "--project" if plan.place.is_user else "--user"
        raise RlxError(
            f"cannot write to {error.filename or plan.place.folder}: {error.strerror}",
            hint=f"make {where} writable, or install elsewhere: rlx skills install {plan.place.host} {other}",
        ) from error


def _announce(plan: Plan) -> None:
    """Write down which files will be new and how AGENTS.md was, before either is touched."""
    if plan.manifest is None or not plan.changes:
        return
    place = plan.place
    before = place.recorded() or {**plan.manifest, "files": {}}
    new = {step.path.relative_to(place.folder).as_posix() for step in plan.changes
           if step.change == "write" and step.path.is_relative_to(place.folder)}  # fmt: skip
    coming = {name: known for name, known in plan.manifest["files"].items() if name in new}
    announced = {**before, "files": {**before["files"], **coming}, "agents_md": plan.manifest["agents_md"]}
    if announced != place.recorded():
        place.manifest.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(place.manifest, announced)


def _do(step: Step) -> None:
    """Write or remove one file; a link stays a link, and a file keeps its permissions."""
    for left in step.path.parent.glob(f".{glob.escape(step.path.name)}.*.tmp"):  # by one that was killed
        left.unlink(missing_ok=True)
    if step.change == "remove":
        step.path.unlink(missing_ok=True)
        return
    step.path.parent.mkdir(parents=True, exist_ok=True)
    path = step.path.resolve()
    mode = path.stat().st_mode & 0o7777 if path.exists() else None
    files.write_atomic(path, step.content)
    if mode is not None:
        path.chmod(mode)


def _write_manifest(plan: Plan) -> None:
    path = plan.place.manifest
    if plan.manifest is None:
        path.unlink(missing_ok=True)
    elif plan.place.recorded() != plan.manifest:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, plan.manifest)


def _prune(plan: Plan) -> None:
    """Remove the folders that a removal left empty, up to the host's own."""
    removed = [step.path for step in plan.steps if step.change in ("remove", "gone")]
    top = plan.place.folder
    folders = {above for path in removed for above in path.parents if above.is_relative_to(top)}
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()


def _wanted(path: Path, content: bytes, known: str | None) -> Step:
    if not os.path.lexists(path):
        return Step(path, "write", content)
    if not path.is_file():
        raise UsageError(f"{path} is in the way: not a file", hint="move it away, then run it again")
    found = _hash(path.read_bytes())
    if found == _hash(content):
        return Step(path, "same")
    return Step(path, "update", content) if found == known else Step(path, "kept")


def _unwanted(path: Path, known: str) -> Step:
    if not path.is_file():
        return Step(path, "gone")
    return Step(path, "remove" if _hash(path.read_bytes()) == known else "kept")


def _block_step(place: Place, note: dict[str, Any] | None) -> tuple[list[Step], dict[str, Any] | None]:
    """Return the step that puts the block into AGENTS.md, and what the manifest says of it."""
    path = place.agents_file
    if path is None:
        return [], None
    is_there = path.is_file()
    text = _read(path) if is_there else ""
    skills = "~/.agents/skills" if place.is_user else ".agents/skills"
    placed = agents_block.upsert(text, agents_block.TEXT.replace("SKILLS", skills), name=path.name)
    change: Change = "same" if placed.text == text and is_there else "update" if is_there else "write"
    if note is None or agents_block.BEGIN not in text:
        note = {"is_created": not is_there, "gap": placed.gap}
    return [Step(path, change, placed.text.encode("utf-8", "surrogateescape"))], note


def _unblock_step(place: Place, note: dict[str, Any] | None) -> Iterator[Step]:
    path = place.agents_file
    if path is None or note is None or not path.is_file():
        return
    text = _read(path)
    rest = agents_block.remove(text, gap=note["gap"], name=path.name)
    if not rest and note["is_created"]:
        yield Step(path.resolve(), "remove")
    elif rest != text:
        yield Step(path, "update", rest.encode("utf-8", "surrogateescape"))


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _hash(content: bytes) -> str:
    """Return the hash of a text, whatever its line ends."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
