"""The frame of every page: head, navigation, and the same look in the dashboard and in a report."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from rlx.hosts.ui.html import Html, Part, el, link, url

STATIC = Path(__file__).parent / "static"
VENDOR = STATIC / "vendor"
"""uPlot and htmx, if `make ui` has put them here."""
UPLOT = "uPlot.iife.min.js"
PAGES = (("Runs", "/"), ("Studies", "/studies"), ("Sweeps", "/sweeps"), ("Machine", "/machine"))
LAB = ("Lab", "/lab")
DOCTYPE = "<!doctype html>\n"


@dataclass(frozen=True)
class Site:
    """What pages know about their server: the project's name, and the value that forms must send back."""

    project: str
    form_token: str = ""
    has_lab: bool = False

    def form(self, address: str, *parts: Part, **attributes: object) -> Html:
        """Return a form that changes something."""
        hidden = el("input", type="hidden", name="form_token", value=self.form_token)
        return el("form", hidden, *parts, method="post", action=address, **attributes)

    def page(self, title: str, *parts: Part, here: str = "/", live: str | None = None) -> str:
        """Return a whole page; `live` is the address that is asked for news of a run."""
        entries = []
        for label, address in (*PAGES[:1], LAB, *PAGES[1:]) if self.has_lab else PAGES:
            current = "page" if address == here else None
            entries.append(el("li", link(label, address, aria_current=current)))
        header = el(
            "header",
            link("Skip to the content", "#content", class_="skip"),
            link(["rlx ", el("span", self.project, class_="muted")], "/", class_="brand"),
            el("nav", el("ul", entries), aria_label="pages"),
        )
        head = [
            el("meta", charset="utf-8"),
            el("meta", name="viewport", content="width=device-width, initial-scale=1"),
            el("meta", name="color-scheme", content="light dark"),
            el("title", f"{title} – rlx"),
            el("link", rel="stylesheet", href="/static/app.css"),
            el("link", rel="icon", href="data:,"),
            _scripts(),
        ]
        kind: str | None = "still"  # without uPlot, charts are pictures
        if (VENDOR / UPLOT).is_file():
            kind = None
        body = el("body", header, el("main", parts, id="content"), _keys(), data_live=live, class_=kind)
        return DOCTYPE + el("html", el("head", head), body, lang="en")


def _scripts() -> list[Html]:
    """Return the scripts; the pages work without any of them."""
    parts = []
    if (VENDOR / "uPlot.min.css").is_file():
        parts.append(el("link", rel="stylesheet", href="/static/vendor/uPlot.min.css"))
    for name in (UPLOT, "htmx.min.js"):
        if (VENDOR / name).is_file():
            parts.append(el("script", src=f"/static/vendor/{name}", defer=True))
    return [*parts, el("script", src="/static/app.js", defer=True)]


def _keys() -> Html:
    keys = (("j / k", "next and previous row"), ("x", "select the row"), ("Enter", "open the row"),
            ("/", "filter"), ("c", "compare the selected runs"), ("?", "show these keys"))  # fmt: skip
    rows = [el("div", el("dt", el("kbd", key)), el("dd", what)) for key, what in keys]
    return el("dialog", el("h2", "Keys"), el("dl", rows, class_="facts"), id="keys")


def offline(title: str, *parts: Part) -> str:
    """Return a page that needs no server: style and script are inside, and its policy forbids every request."""
    look = (STATIC / "app.css").read_text(encoding="utf-8")
    code = (STATIC / "replay.js").read_text(encoding="utf-8")
    sources = f"style-src {_hash(look)}; script-src {_hash(code)}"
    policy = f"default-src 'none'; {sources}; img-src data:; media-src data:"
    head = [
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        el("link", rel="icon", href="data:,"),
        el("style", Html(look)),
    ]
    script = el("script", Html(code))
    return DOCTYPE + el(
        "html", el("head", head), el("body", el("main", parts, id="content"), script, class_="report"), lang="en"
    )


def _hash(text: str) -> str:
    """Return the hash of the only style or script that a report may use."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def problem(message: str, hint: str) -> Html:
    """Return an error with the command that leads on."""
    return el("div", el("h1", message), el("p", "hint: ", el("code", hint)) if hint else None, class_="problem")


def section(title: str, *parts: Part, identity: str | None = None) -> Html:
    return el("section", el("h2", title), *parts, id=identity)


def breadcrumb(*links: tuple[str, str]) -> Html:
    """Return the way to a page."""
    items = [el("li", link(label, address)) for label, address in links]
    return el("nav", el("ol", items), class_="crumbs", aria_label="breadcrumb")


def run_link(name: str) -> Html:
    return link(name, url("run", name))
