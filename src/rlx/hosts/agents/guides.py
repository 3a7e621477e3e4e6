"""The documentation pages that ship with rlx: in the source tree, or installed next to the package."""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path

import rlx

FOLDERS = ("", "tutorials", "guides", "concepts", "reference")


@dataclass(frozen=True)
class Guide:
    """One page: its name (`guides/rewards`), its title and its file."""

    name: str
    title: str
    path: Path


def folder() -> Path | None:
    """Return the folder with the pages, or None if this installation has none."""
    source = Path(rlx.__file__).resolve().parents[2] / "docs"
    installed = Path(sysconfig.get_path("data")) / "share" / "rlx" / "docs"
    return next((place for place in (source, installed) if (place / "index.md").is_file()), None)


def guides() -> list[Guide]:
    """Return every page, in the order of the map."""
    root = folder()
    if root is None:
        return []
    pages = []
    for name in FOLDERS:
        for path in sorted((root / name).glob("*.md")):
            title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ").strip()
            pages.append(Guide(path.relative_to(root).with_suffix("").as_posix(), title, path))
    return pages


def find_guide(topic: str) -> Guide | None:
    """Return the page with this name, with or without its folder."""
    for page in guides():
        if topic.removesuffix(".md") in (page.name, page.path.stem):
            return page
    return None
