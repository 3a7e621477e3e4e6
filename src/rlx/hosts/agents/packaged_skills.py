"""The packaged skills with their references, the agents of Claude Code, and the topics of `rlx docs`."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlx.errors import NotFound, did_you_mean

PLUGIN = Path(__file__).parents[1] / "plugin"
_FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<body>.*)\Z", flags=re.S)


@dataclass(frozen=True)
class Skill:
    """One folder under `skills/`: SKILL.md and its references."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def front(self) -> dict[str, str]:
        """The top-level keys of the front matter that hold text."""
        return dict(re.findall(r'^(\w+): "?(.*?)"?$', _parts(self.folder / "SKILL.md")[0], flags=re.M))

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


def plugin_commands() -> dict[str, list[str]]:
    """Return the clients' own commands that install the plug-in from this package."""
    market = shlex.quote(str(PLUGIN.parent))
    return {
        "claude": [f"claude plugin marketplace add {market}", "claude plugin install rlx@rlx"],
        "codex": [f"codex plugin marketplace add {market}", "codex plugin add rlx@rlx"],
    }


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
    files = [(skill.name, skill.name, skill.folder / "SKILL.md") for skill in skills()]
    files += [(path.stem, skill.name, path) for skill in skills() for path in skill.references]
    return [Topic(name, skill, _title(path), path) for name, skill, path in files]


def topic(name: str) -> Topic:
    """Return one topic by its name."""
    known = {topic.name: topic for topic in topics()}
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
