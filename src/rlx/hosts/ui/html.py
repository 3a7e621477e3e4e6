"""HTML as values: every text is escaped unless it is `Html`, so no name, note or log line can become markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote, urlencode

VOID = frozenset({"br", "img", "input", "link", "meta", "line", "rect", "path", "polyline", "polygon", "circle"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Part = object
"""A text, a number, `Html`, None (nothing), or an iterable of parts."""


def text(part: Part) -> str:
    """Return a part as HTML."""
    if isinstance(part, Html):
        return str(part)
    if part is None or part is False:
        return ""
    if isinstance(part, Iterable) and not isinstance(part, str):
        return "".join(map(text, part))
    return escape(str(part).encode("utf-8", "replace").decode(), quote=True)


def el(name: str, /, *parts: Part, **attributes: object) -> Html:
    """Return an element. `class_` stands for `class`, an underscore in an attribute for a dash.

    An attribute that is None or False is left out, True has no value.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        if value is not True:
            word += f'="{escape(str(value), quote=True)}"'
        words.append(word)
    start = f"<{' '.join(words)}>"
    if name in VOID:
        if name in ("line", "rect", "path", "polyline", "polygon", "circle"):
            return Html(start[:-1] + "/>")
        return Html(start)
    return Html(f"{start}{''.join(map(text, parts))}</{name}>")


def url(*segments: str, **query: object) -> str:
    """Return an address on this server; segments and values are encoded, an empty value is left out."""
    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    pairs = []
    for key, value in query.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        pairs += [(key, str(item)) for item in values if item not in (None, "", False)]
    if pairs:
        path += "?" + urlencode(pairs)
    return path


def link(label: Part, address: str, **attributes: object) -> Html:
    """Return a link to an address that `url` built."""
    return el("a", label, href=address, **attributes)


def table(
    header: Sequence[Part], rows: Iterable[Sequence[Part]], *, right: Sequence[int] = (), caption: str = "",
    identity: str | None = None,
) -> Html:  # fmt: skip
    """Return a table that scrolls inside its box on a narrow screen; the columns in `right` hold numbers."""

    def cell(name: str, column: int, part: Part, **attributes: object) -> Html:
        return el(name, part, class_="n" if column in right else None, **attributes)

    head = el("tr", [cell("th", column, part, scope="col") for column, part in enumerate(header)])
    body = [el("tr", [cell("td", column, part) for column, part in enumerate(row)]) for row in rows]
    label = el("caption", caption, class_="hidden") if caption else None
    content = el("table", label, el("thead", head), el("tbody", body), id=identity)
    return el("div", content, class_="scroll", tabindex="0", role="region", aria_label=caption or "table")


def facts(values: Iterable[tuple[str, Part]]) -> Html:
    """Return labelled values; None and empty values are left out."""
    shown = [(label, value) for label, value in values if value not in (None, "", [])]
    return el("dl", [el("div", el("dt", label), el("dd", value)) for label, value in shown], class_="facts")


_MARKS = {
    "completed": "✓", "running": "▶", "failed": "✕", "lost": "✕", "broken": "✕", "interrupted": "‖",
    "better": "▲", "worse": "▼", "inconclusive": "≈", "invalid": "✕", "confirmed": "✓", "rejected": "▼",
    "finished": "✓", "dropped": "–", "advanced": "▲", "approved": "✓", "settled": "✓", "open": "○",
    "keep": "▲", "discard": "▼", "crash": "✕", "refused": "–",
}  # fmt: skip


def empty(*parts: Part) -> Html:
    """Return what a page shows if it has nothing to show yet: what is missing, and the command that makes it."""
    return el("section", parts, class_="empty")


def state(word: str) -> Html:
    """Return a run's or candidate's state: a word with a mark, never colour alone."""
    mark = _MARKS.get(word, "•")
    kind = word if word in _MARKS else "other"
    return el("span", el("span", mark, aria_hidden="true"), " ", word, class_=f"state {kind}")
