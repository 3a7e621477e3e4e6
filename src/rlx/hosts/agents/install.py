"""Install the skills for Claude Code and Codex, update them, remove them.

A manifest next to the skills lists every installed file with its hash. rlx replaces or removes a file only if it still
has that hash (line ends aside), so files that a user edited stay. The manifest lists a file before it is written, so
that an interrupted installation can be finished or removed. Hooks and the MCP server come with the plug-in.
"""

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
from rlx.hosts.agents import agents_md, packaged_skills

SCHEMA = 1
MANIFEST = "rlx-skills.json"
HostName = Literal["claude", "codex"]
HOSTS: tuple[HostName, ...] = ("claude", "codex")
Change = Literal["write", "update", "same", "kept", "remove", "gone"]


@dataclass(frozen=True)
class InstallPlace:
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
        folder = codex_home() if self.is_user else self.base
        return folder / "AGENTS.md"

    def shipped(self) -> dict[str, Path]:
        """Return the packaged files that belong here: {path below the folder: file of the package}."""
        packaged = {f"skills/{name}": path for name, path in packaged_skills.skill_files()}
        if self.host == "claude":
            packaged |= {f"agents/{name}": path for name, path in packaged_skills.agent_files()}
        return packaged

    def recorded(self) -> dict[str, Any]:
        """Return the manifest; it is empty if nothing was installed."""
        if not self.manifest.is_file():
            return {}
        try:
            document: dict[str, Any] = files.read_json(self.manifest)
        except FileDamaged:
            document = {}
        if not _is_manifest(document):
            hint = "delete it and run `rlx skills install`: rlx recognises files that you did not edit"
            raise UsageError(f"{self.manifest} is damaged: rlx did not write it", hint=hint)
        return document


def _is_manifest(document: object) -> bool:
    """Return whether a manifest has files with hashes, all of them below its folder."""
    if not isinstance(document, dict) or not isinstance(document.get("files"), dict):
        return False
    note = document.get("agents_md") or {"gap": "", "is_created": False}
    if not isinstance(note, dict) or not isinstance(note.get("gap"), str) or "is_created" not in note:
        return False
    return all(_is_below(name) and isinstance(known, str) for name, known in document["files"].items())


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and path.parts[:1] in (("skills",), ("agents",))


def codex_home() -> Path:
    """Return the folder of Codex's user settings."""
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")


@dataclass(frozen=True)
class FileStep:
    """One file and how it changes."""

    path: Path
    change: Change
    content: bytes = b""

    def document(self, base: Path) -> dict[str, str]:
        path = self.path
        if path.is_relative_to(base):
            path = path.relative_to(base)
        return {"file": str(path), "change": self.change}


@dataclass(frozen=True)
class Plan:
    """All steps of an installation or a removal in one place; `manifest` None removes the manifest."""

    place: InstallPlace
    steps: tuple[FileStep, ...]
    manifest: dict[str, Any] | None = field(default=None)

    @property
    def changes(self) -> tuple[FileStep, ...]:
        return tuple(step for step in self.steps if step.change not in ("same", "kept", "gone"))


def places(hosts: Iterable[HostName] = HOSTS, *, root: Path, is_user: bool) -> list[InstallPlace]:
    """Return the places of these hosts, in the user's home or in a project."""
    return [InstallPlace(host, Path.home() if is_user else root, is_user) for host in hosts]


def planned(place: InstallPlace) -> Plan:
    """Return the steps of an installation, without taking them."""
    recorded = place.recorded()
    hashes: Mapping[str, str] = recorded.get("files", {})
    packaged = {name: path.read_bytes() for name, path in place.shipped().items()}
    steps = [_install_step(place.folder / name, content, hashes.get(name)) for name, content in packaged.items()]
    steps += [_removal_step(place.folder / name, known) for name, known in hashes.items() if name not in packaged]
    kept = {step.path for step in steps if step.change == "kept"}
    now = {name: _hash(content) for name, content in packaged.items() if place.folder / name not in kept}
    block, note = _block_step(place, recorded.get("agents_md"))
    document = {"schema": SCHEMA, "version": rlx.__version__, "files": now, "agents_md": note}
    return Plan(place, (*steps, *block), document)


def planned_removal(place: InstallPlace) -> Plan:
    """Return the steps of a removal: installed files that were not edited, and the block in AGENTS.md."""
    recorded = place.recorded()
    steps = [_removal_step(place.folder / name, known) for name, known in recorded.get("files", {}).items()]
    return Plan(place, (*steps, *_unblock_step(place, recorded.get("agents_md"))))


def apply(plan: Plan) -> None:
    """Take the planned steps; raise one clear error if a file cannot be written."""
    try:
        _announce(plan)
        for step in plan.changes:
            _do(step)
        _write_manifest(plan)
        _prune(plan)
    except OSError as error:
        other = "--project" if plan.place.is_user else "--user"
        raise RlxError(
            f"cannot write to {error.filename or plan.place.folder}: {error.strerror}",
            hint=f"make it writable, or install elsewhere: rlx skills install {plan.place.host} {other}",
        ) from error


def _announce(plan: Plan) -> None:
    """Record the new files and the state of AGENTS.md in the manifest before the first change."""
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


def _do(step: FileStep) -> None:
    """Write or remove one file; a link stays a link, and a file keeps its permissions."""
    for left in step.path.parent.glob(f".{glob.escape(step.path.name)}.*.tmp"):  # left by an interrupted installation
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
    """Remove folders that are now empty, up to the host's own."""
    removed = [step.path for step in plan.steps if step.change in ("remove", "gone")]
    top = plan.place.folder
    folders = {above for path in removed for above in path.parents if above.is_relative_to(top)}
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()


def _install_step(path: Path, content: bytes, known: str | None) -> FileStep:
    if not os.path.lexists(path):
        return FileStep(path, "write", content)
    if not path.is_file():
        raise UsageError(f"{path} is not a file, and rlx does not replace it", hint="move it away, then run it again")
    current = _hash(path.read_bytes())
    if current == _hash(content):
        return FileStep(path, "same")
    if current == known:
        return FileStep(path, "update", content)
    return FileStep(path, "kept")


def _removal_step(path: Path, known: str) -> FileStep:
    if not path.is_file():
        return FileStep(path, "gone")
    return FileStep(path, "remove" if _hash(path.read_bytes()) == known else "kept")


def _block_step(place: InstallPlace, note: dict[str, Any] | None) -> tuple[list[FileStep], dict[str, Any] | None]:
    """Return the step that writes the block into AGENTS.md, and its entry in the manifest."""
    path = place.agents_file
    if path is None:
        return [], None
    is_there = path.is_file()
    text = _read(path) if is_there else ""
    skills = "~/.agents/skills" if place.is_user else ".agents/skills"
    placed = agents_md.upsert(text, agents_md.TEXT.replace("SKILLS", skills), name=path.name)
    change: Change = "write"
    if is_there:
        change = "same" if placed.text == text else "update"
    if note is None or agents_md.BEGIN not in text:
        note = {"is_created": not is_there, "gap": placed.gap}
    return [FileStep(path, change, placed.text.encode("utf-8", "surrogateescape"))], note


def _unblock_step(place: InstallPlace, note: dict[str, Any] | None) -> Iterator[FileStep]:
    path = place.agents_file
    if path is None or note is None or not path.is_file():
        return
    text = _read(path)
    rest = agents_md.remove(text, gap=note["gap"], name=path.name)
    if not rest and note["is_created"]:
        yield FileStep(path.resolve(), "remove")
    elif rest != text:
        yield FileStep(path, "update", rest.encode("utf-8", "surrogateescape"))


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _hash(content: bytes) -> str:
    """Return the hash of a text; line ends do not matter."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
