"""The pages of sweeps: the confirmed gain first, then lanes, parallel coordinates, importance, costs and trials.

Everything comes from `rlx sweep ls` and `rlx sweep show`. A version of rlx without that command has no sweeps.
"""

from __future__ import annotations

from typing import Any

from rlx.errors import NotFound
from rlx.hosts.cli.commands import COMMANDS
from rlx.hosts.cli.document import document
from rlx.hosts.cli.format import NOTHING, duration, figure, number_or_text, percent, setting, signed
from rlx.hosts.ui.html import Html, Part, el, empty, facts, link, state, table, url
from rlx.hosts.ui.layout import Site, breadcrumb, run_link, section
from rlx.hosts.ui.sweep_charts import importance_bars, parallel_coordinates, pareto_chart, race_lanes

Data = dict[str, Any]
MOST_TRIALS = 300


def read_sweeps() -> list[Data]:
    """Return one row per sweep of the project."""
    if "sweep" not in COMMANDS:
        return []
    return list(document("sweep", "ls")["sweeps"])


def sweep_list(site: Site) -> str:
    """Return all sweeps."""
    rows: list[list[Part]] = []
    for sweep in read_sweeps():
        rows.append([link(sweep["sweep"], url("sweep", sweep["sweep"])), state(sweep["state"]), sweep["base"],
                     f"{sweep['trials']:,}/{sweep['planned']:,}", figure(sweep["best"]),
                     sweep["result"] or NOTHING])  # fmt: skip
    header = ["sweep", "state", "base", "trials", "best", "result"]
    body = el("section", table(header, rows, right=(3, 4), caption="sweeps"))
    if not rows:
        command = "rlx sweep configs/NAME.yaml -p algo.learning_rate=log:1e-5:1e-2"
        body = empty(el("p", "No sweep yet."), el("p", "Search for a better config: ", el("code", command)))
    return site.page("Sweeps", el("h1", "Sweeps"), body, here="/sweeps")


def sweep_page(site: Site, name: str) -> str:
    """Return one sweep."""
    data = read_sweep(name)
    parts = [breadcrumb(("Sweeps", "/sweeps"), (name, url("sweep", name))), el("h1", name), *sweep_parts(data)]
    return site.page(name, parts, here="/sweeps")


def read_sweep(name: str) -> Data:
    """Return a sweep by its full name, as `rlx sweep show` prints it."""
    if name not in [row["sweep"] for row in read_sweeps()]:
        raise NotFound(f"no sweep `{name[:80]}`", hint="rlx sweep ls")
    return document("sweep", "--", "show", name)


def sweep_parts(data: Data, *, with_links: bool = True) -> list[Html]:
    """Return what a sweep found, how, and at what cost; a report has no links."""
    is_lower = bool(data["plan"].get("is_lower_better"))
    cost = [f"{figure(data['cost'])} full trainings", el("small", f"in {duration(data['seconds'])}")]
    figures = facts([
        ("state", state(data["state"])), ("trials", f"{len(data['trials']):,} of {data['plan']['trials']:,}"),
        ("cost of the search", cost), ("base", str(data["base"])), ("failed trials", str(data["failed"])),
        ("best config", data["best_config"] or NOTHING),
    ])  # fmt: skip
    return [
        confirmation_part(data, with_links=with_links),
        el("div", figures, class_="headline"),
        el("div", section("Parallel coordinates", parallel_coordinates(data["trials"], is_lower_better=is_lower)),
           section("Halving and race", race_lanes(data["trials"], data["plan"])), class_="columns"),
        el("div", section("Importance", importance_bars(data["importance"])),
           section("Score and cost", pareto_chart(data["trials"], data["pareto"])), class_="columns"),
        section("Trials", _trials(data, with_links=with_links)),
    ]  # fmt: skip


def confirmation_part(data: Data, *, with_links: bool = True) -> Html:
    """Return the confirmed gain, and how much better the winner looked in the search."""
    confirmation = data["confirmation"]
    winner = ", ".join(f"{key} = {setting(value)}" for key, value in data["winner_values"].items())
    if not confirmation:
        words = f"The winner is not confirmed on fresh seeds yet. Winner so far: {winner or NOTHING}"
        return el("div", el("p", words), class_="verdict other")
    is_confirmed = bool(confirmation.get("is_confirmed"))
    word = "confirmed" if is_confirmed else "inconclusive"
    label = state("confirmed" if is_confirmed else "not confirmed")
    lines: list[Part] = [el("p", el("strong", label), winner), el("p", confirmation.get("line"))]
    if confirmation.get("optimism") is not None:
        claimed = figure((data["winner"] or {}).get("score"))
        fresh = figure(confirmation.get("score"))
        lines.append(el("p", f"Optimism {signed(confirmation['optimism'])}: the search saw {claimed}, "
                             f"fresh seeds gave {fresh}."))  # fmt: skip
    runs = confirmation.get("runs") or []
    if with_links and len(runs) > 1:
        lines.append(el("p", link("Compare the runs of the confirmation", url("compare", run=runs, baseline=runs[0]))))
    return el("div", lines, class_=f"verdict {word}")


def _trials(data: Data, *, with_links: bool) -> Html:
    keys = list(dict.fromkeys(key for trial in data["trials"] for key in trial["values"]))
    front = set(data["pareto"])
    rows: list[list[Part]] = []
    for trial in data["trials"][:MOST_TRIALS]:
        run: Part = trial["run"] or NOTHING
        if trial["run"] and with_links:
            run = run_link(trial["run"])
        mark = "front" if trial["trial"] in front else ""
        cost = NOTHING if trial["cpu_seconds"] is None else f"{figure(trial['cpu_seconds'])} s"
        rows.append([trial["trial"], run, state(trial["state"]), figure(trial["score"]), trial["seeds"] or NOTHING,
                     percent(trial["share"]), cost, mark,
                     *(number_or_text(trial["values"].get(key, NOTHING)) for key in keys),
                     trial["reason"]])  # fmt: skip
    header = ["trial", "run", "state", "score", "seeds", "trained", "CPU", "score–cost", *keys, ""]
    return table(header, rows, right=(0, 3, 4, 5, 6), caption="trials")
