"""HTML as values: every text is escaped unless it is `Html`, so no name, note or log line can become markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote, urlencode

from rlx.number_format import NOTHING, figure

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
    tag = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        if value is not True:
            word += f'="{escape(str(value), quote=True)}"'
        tag.append(word)
    start = f"<{' '.join(tag)}>"
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
    identity: str | None = None, stacks: bool = False,
) -> Html:  # fmt: skip
    """Return a table that scrolls inside its box on a narrow screen; the columns in `right` hold numbers.

    With `stacks`, for rows with sentences, a narrow screen shows each row as a list of labelled values.
    """

    def cell(name: str, column: int, part: Part, **attributes: object) -> Html:
        classes = []
        if column in right:
            classes.append("n")
        if part in _BLANK:
            classes.append("blank")
        return el(name, part, class_=" ".join(classes) or None, **attributes)

    labels: list[str | None] = [None] * len(header)
    if stacks:
        labels = [part if isinstance(part, str) else None for part in header]

    def row_of(parts: Sequence[Part]) -> Html:
        return el("tr", [cell("td", column, part, data_label=labels[column]) for column, part in enumerate(parts)])

    head = el("tr", [cell("th", column, part, scope="col") for column, part in enumerate(header)])
    label = el("caption", caption, class_="hidden") if caption else None
    content = el("table", label, el("thead", head), el("tbody", [row_of(row) for row in rows]), id=identity,
                 class_="stacks" if stacks else None)  # fmt: skip
    return el("div", content, class_="scroll", tabindex="0", role="region", aria_label=caption or "table")


_BLANK = ("", NOTHING)


def facts(values: Iterable[tuple[str, Part]], *, kind: str = "facts") -> Html:
    """Return labelled values; None and empty values are left out. `facts wide` puts each on a line of its own."""
    shown = [(label, value) for label, value in values if value not in (None, "", [])]
    return el("dl", [el("div", el("dt", label), el("dd", value)) for label, value in shown], class_=kind)


_MARKS = {
    "completed": "✓", "running": "▶", "failed": "✕", "lost": "✕", "broken": "✕", "interrupted": "‖",
    "better": "▲", "worse": "▼", "inconclusive": "≈", "invalid": "✕", "confirmed": "✓", "rejected": "▼",
    "finished": "✓", "dropped": "–", "advanced": "▲", "approved": "✓", "settled": "✓", "open": "○",
    "keep": "▲", "discard": "▼", "crash": "✕", "refused": "–",
}  # fmt: skip


def empty(*parts: Part) -> Html:
    """Return what a page shows if it has nothing to show yet: what is missing, and the command that makes it."""
    return el("section", parts, class_="empty")


def words(value: object) -> str:
    """Spell a stored value for people; unknown parts of lists and mappings are left out."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {words(part)}" for key, part in value.items() if part is not None)
    if isinstance(value, (list, tuple)):
        return ", ".join(words(part) for part in value if part is not None)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return figure(value)
    return str(value)


def state(word: str) -> Html:
    """Return a run's or candidate's state: a word with a mark, never colour alone."""
    mark = _MARKS.get(word, "•")
    kind = word if word in _MARKS else "other"
    return el("span", el("span", mark, aria_hidden="true"), " ", word, class_=f"state {kind}")
