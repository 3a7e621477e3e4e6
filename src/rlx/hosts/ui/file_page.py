"""Files of a run or a study: listed by name, shown as text with line numbers, and films as films."""

from __future__ import annotations

import os
from pathlib import Path

from rlx import files
from rlx.errors import FileDamaged, NotFound
from rlx.hosts.cli.format import size
from rlx.hosts.cli.output import harmless
from rlx.hosts.ui.html import Html, Part, el, link, table, url
from rlx.hosts.ui.layout import Site, breadcrumb

MEDIA = {".mp4": "video/mp4", ".gif": "image/gif", ".png": "image/png"}
"""Files that are sent unchanged. An SVG can hold a script, so it is shown as text."""
LARGEST_SHOWN = 2_000_000
LARGEST_MEDIA = 200_000_000
MOST_LISTED = 2000


def inside(folder: Path, name: str) -> Path:
    """Return a plain file below a folder; a path that leads out of it, also by a link, does not exist."""
    missing = NotFound(f"no file `{name[:120]}` in {folder.name}", hint="open the list of files")
    if not name or "\x00" in name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise missing
    path = folder / name
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise missing from None
    if not real.is_relative_to(folder.resolve()) or not real.is_file():
        raise missing
    return real


def text_page(site: Site, folder: Path, name: str, crumbs: tuple[tuple[str, str], ...]) -> str:
    """Return a file as numbered lines; a link with #L12 marks one."""
    path = inside(folder, name)
    if path.stat().st_size > LARGEST_SHOWN:
        raise FileDamaged(f"{name} is larger than {size(LARGEST_SHOWN)}", hint=f"open it in an editor: {path}")
    content = files.read_bytes(path)
    if b"\x00" in content[:4096]:
        raise FileDamaged(f"{name} is not text", hint=f"it is here: {path}")
    lines = content.decode("utf-8", "replace").splitlines()
    rows = [_line(number, text) for number, text in enumerate(lines, start=1)]
    return site.page(name, breadcrumb(*crumbs), el("h1", name), el("pre", rows, class_="lines wrap"),
                     el("p", el("small", str(path))))  # fmt: skip


def _line(number: int, text: str) -> Html:
    return el("span", el("a", number, href=f"#L{number}"), harmless(text), id=f"L{number}")


def list_page(site: Site, folder: Path, base: tuple[str, ...], crumbs: tuple[tuple[str, str], ...]) -> str:
    """Return the files below a folder with their sizes."""
    rows: list[list[Part]] = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            relative = path.relative_to(folder).as_posix()
            if len(rows) < MOST_LISTED and path.is_file() and not path.is_symlink():
                rows.append([link(relative, url(*base, "file", path=relative)), size(path.stat().st_size)])
    return site.page("Files", breadcrumb(*crumbs), el("h1", f"Files of {folder.name}"),
                     el("section", table(["file", "size"], rows, right=(1,), caption="files")))  # fmt: skip


def media(folder: Path, name: str) -> tuple[Path, str]:
    """Return a film or picture and its type."""
    path = inside(folder, name)
    kind = MEDIA.get(path.suffix.lower())
    if kind is None or path.stat().st_size > LARGEST_MEDIA:
        raise NotFound(f"`{name[:120]}` is not a film or a picture", hint="open the list of files")
    return path, kind
