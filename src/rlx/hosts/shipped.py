"""What the package ships for agents: skills with their references, and the agents of Claude Code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlx.errors import NotFound, did_you_mean

PLUGIN = Path(__file__).parent / "plugin"
_FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<body>.*)\Z", flags=re.S)


@dataclass(frozen=True)
class Skill:
    """One folder under `skills/`: SKILL.md and what it refers to."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def front(self) -> dict[str, str]:
        """The top-level keys of the front matter that hold text."""
        found = re.findall(r'^(\w+): "?(.*?)"?$', _parts(self.folder / "SKILL.md")[0], flags=re.M)
        return dict(found)

    @property
    def description(self) -> str:
        return self.front.get("description", "")

    @property
    def body(self) -> str:
        return _parts(self.folder / "SKILL.md")[1]

    @property
    def references(self) -> list[Path]:
        return sorted((self.folder / "references").glob("*.md"))


def skills() -> list[Skill]:
    """Return every skill, by name."""
    return [Skill(path.parent) for path in sorted((PLUGIN / "skills").glob("*/SKILL.md"))]


def skill_files() -> Iterator[tuple[str, Path]]:
    """Yield every file of every skill as (`NAME/SKILL.md`, path)."""
    folder = PLUGIN / "skills"
    for path in sorted(folder.rglob("*.md")):
        yield path.relative_to(folder).as_posix(), path


def agent_files() -> Iterator[tuple[str, Path]]:
    """Yield the agents of Claude Code as (`NAME.md`, path)."""
    for path in sorted((PLUGIN / "agents").glob("*.md")):
        yield path.name, path


@dataclass(frozen=True)
class Topic:
    """Something `rlx docs` prints: a skill's body, or one of its references."""

    name: str
    skill: str
    title: str
    path: Path

    @property
    def text(self) -> str:
        return _parts(self.path)[1].lstrip("\n")


def topics() -> list[Topic]:
    """Return every topic: the skills, then their references."""
    found = [Topic(skill.name, skill.name, _title(skill.folder / "SKILL.md"), skill.folder / "SKILL.md")
             for skill in skills()]  # fmt: skip
    return found + [Topic(path.stem, skill.name, _title(path), path) for skill in skills() for path in skill.references]


def topic(name: str) -> Topic:
    """Return one topic by its name."""
    known = {one.name: one for one in topics()}
    if name in known:
        return known[name]
    near = did_you_mean(name, list(known))
    raise NotFound(f"no topic `{name}`", hint=f"rlx docs {near}" if near else "rlx docs")


def _title(path: Path) -> str:
    line = next((line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# ")), "")
    return line.removeprefix("# ")


def _parts(path: Path) -> tuple[str, str]:
    """Return front matter and body of a Markdown file."""
    text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    match = _FRONT.match(text)
    return (match["front"], match["body"]) if match else ("", text)
