"""The page of this machine: cores, memory, GPUs, disk, and the runs that train on it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rlx.hosts.cli.format import duration, size, spread, steps
from rlx.hosts.ui.html import Html, Part, el, facts, state, table
from rlx.hosts.ui.layout import Site, run_link, section
from rlx.number_format import counted
from rlx.runs.index import LiveIndex


def machine_page(site: Site, root: Path, index: LiveIndex) -> str:
    """Return the page."""
    body = el("div", machine_part(root, index), id="machine", data_fragment="/part/machine")
    return site.page("Machine", el("h1", "This machine"), body, here="/machine", live="/live/machine")


def machine_part(root: Path, index: LiveIndex) -> Html:
    """Return the capacity and use of this machine, and the runs that train."""
    from rlx.launch.launch import explain_queued
    from rlx.launch.resources import available_cores, visible_gpus

    disk = shutil.disk_usage(root)
    load = os.getloadavg()
    cores = available_cores()
    earlier = f"{counted(cores, 'core')}; over 5 and 15 minutes {load[1]:.2f} and {load[2]:.2f}"
    total, available = _memory()
    used_memory = total - available
    used_disk = disk.total - disk.free
    free = size(disk.free)
    running = index.page(status="running", limit=100)
    prepared = index.page(status="prepared", limit=100)
    queued = index.page(status="queued", limit=100)
    explain_queued(root, queued.rows)
    figures = facts([
        ("load of the last minute", _meter(load[0], cores, f"{load[0]:.2f}", earlier)),
        ("memory in use", _meter(used_memory, total, size(used_memory), f"of {size(total)}")),
        ("disk in use", _meter(used_disk, disk.total, size(used_disk), f"of {size(disk.total)}; {free} free")),
        ("GPUs", ", ".join(visible_gpus()) or "none"),
        ("runs in training", f"{running.total:,}"),
        ("runs that wait", f"{prepared.total:,}"),
        ("runs in an executor's queue", f"{queued.total:,}"),
    ])  # fmt: skip
    rows: list[list[Part]] = []
    for row in [*running.rows, *queued.rows, *prepared.rows]:
        status: Part = state(row["status"])
        if row["reason"]:
            status = [status, el("small", f" {row['reason']}")]
        rows.append([run_link(row["name"]), status, row["tally"], steps(row["steps"], row["planned_steps"]),
                     spread(row["return"]), duration(row["seconds"])])  # fmt: skip
    jobs: Part = el("p", "No run trains or waits. Start one: ", el("code", "rlx train CONFIG"), class_="muted")
    if rows:
        jobs = table(["run", "status", "seeds", "steps", "return", "time"], rows, right=(3, 4, 5), caption="jobs")
    return el("div", el("div", figures, class_="headline"), section("Jobs", jobs))


def _meter(used: float, total: float, value: str, of: str) -> list[Part]:
    """Return how much of something is in use, in words and as a bar."""
    share = min(1.0, used / total) if total else 0.0
    return [value, el("progress", value=f"{share:.3f}", max=1, aria_label=f"{value} {of}", class_="meter"),
            el("small", of)]  # fmt: skip


def _memory() -> tuple[float, float]:
    """Return the bytes of memory that this machine has, and those that are available."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    values = {line.split(":")[0]: float(line.split()[1]) * 1024 for line in lines if len(line.split()) > 1}
    return values.get("MemTotal", 0.0), values.get("MemAvailable", 0.0)
