"""Measure the dashboard in a real browser: first paint, weight, paging, drawing, live news, next to the peers' pages.

    python bench/ui.py [--peers VENV] [--runs 10000] [--large FOLDER] [--peer-runs 100]

`--large` is a project with very many runs (bench/rig/synthetic.py makes one); only paging is measured there. Peers
show as many runs as `--peer-runs`, made through their own API. First paint is what the browser reports as
first-contentful-paint, which a page that loads its table later reaches before the table is there.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from rig import measure, peers
from rig.browser import Tab, browser
from rig.synthetic import make_runs

from rlx import files
from rlx.runs.metrics import MetricsWriter

CURVES = 100
POINTS = 10_000
LIVE_SECONDS = 10.0
MAKE_TENSORBOARD = """
import sys
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
for number in range(int(sys.argv[1])):
    writer = EventFileWriter(f"tb/run_{number}")
    for step in range(100):
        values = [Summary.Value(tag=f"m{m}", simple_value=step / 7) for m in range(10)]
        writer.add_event(Event(step=step, wall_time=step, summary=Summary(value=values)))
    writer.close()
"""
MAKE_MLFLOW = """
import sys, time, mlflow
from mlflow.entities import Metric
client = mlflow.MlflowClient("sqlite:///mlflow.db")
for number in range(int(sys.argv[1])):
    run = client.create_run("0", run_name=f"run_{number}")
    now = int(time.time() * 1000)
    client.log_batch(run.info.run_id, [Metric(f"m{m}", step / 7, now, step) for m in range(10) for step in range(100)])
    client.set_terminated(run.info.run_id)
"""
MAKE_TRACKIO = """
import sys, trackio
for number in range(int(sys.argv[1])):
    trackio.init(project="bench", name=f"run_{number}", embed=False)
    for step in range(100):
        trackio.log({f"m{m}": step / 7 for m in range(10)}, step=step)
    trackio.finish()
"""


def main() -> None:
    parser = peers.parser(__doc__)
    parser.add_argument("--runs", type=int, default=10_000, metavar="N")
    parser.add_argument("--large", type=Path, metavar="FOLDER")
    parser.add_argument("--peer-runs", type=int, default=100, metavar="N")
    args = parser.parse_args()
    rows = Told()
    with tempfile.TemporaryDirectory() as place, browser() as tab:
        root = Path(place) / "runs"
        make_runs(root, args.runs)
        with dashboard(root) as server:
            rows += _list(tab, server, args.runs)
        _curves(Path(place) / "curves")
        with dashboard(Path(place) / "curves") as server:
            rows += _drawing(tab, server)
        _live(Path(place) / "live")
        with dashboard(Path(place) / "live") as server:
            rows += _news(tab, server, Path(place) / "live")
        if args.large:
            with dashboard(args.large) as server:
                count = sum(1 for _ in (args.large / "runs").iterdir())
                rows += _paging(server, f"{count:,} runs", 0.2)
        make_runs(Path(place) / "equal", args.peer_runs)
        rows += _equal(tab, Path(place) / "equal", args.peer_runs)
        rows += _peers(tab, Path(place), peers.Peers(args.peers.absolute()), args.peer_runs)
    measure.show("the dashboard and its peers", ["measured", "value", "promise"], rows)


class Told(list[list[str]]):
    """Rows that are also printed as soon as they are measured: the whole takes minutes."""

    def __iadd__(self, rows: list[list[str]]) -> Told:  # type: ignore[override, misc]
        for row in rows:
            print("  ".join(row), file=sys.stderr, flush=True)
        self.extend(rows)
        return self


class Server:
    """A running dashboard."""

    def __init__(self, address: str, pid: int) -> None:
        self.address = address
        self.pid = pid
        self.origin, _, token = address.partition("/?token=")
        self.port = int(self.origin.rpartition(":")[2])
        self.cookie = f"rlx_ui_{self.port}={token}"

    def get(self, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", path, headers={"Cookie": self.cookie, "Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status}")
        return body

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def dashboard(root: Path) -> Iterator[Server]:
    """Run `rlx ui` in a project."""
    rlx = Path(sys.executable).with_name("rlx")
    process = subprocess.Popen([rlx, "ui", "--port", "0"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True)  # fmt: skip
    assert process.stdout
    line = process.stdout.readline()
    try:
        yield Server(re.findall(r"http\S+", line)[0], process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


def _row(name: str, value: float, unit: str, limit: float | None = None) -> list[str]:
    promise = ""
    if limit is not None:
        promise = f"≤ {limit:g} {unit}: {'kept' if value <= limit else 'BROKEN'}"
    return [name, f"{value:.4g} {unit}", promise]


def _list(tab: Tab, server: Server, count: int) -> list[list[str]]:
    painted = [tab.open(server.address) or 1e9 for _ in range(3)]
    body = server.get("/")
    assert gzip.decompress(body).count(b"synthetic_") > 50
    label = f"rlx ui, {count:,} runs"
    return [
        _row(f"{label}: first paint", min(painted) / 1000, "s", 1.0),
        _row(f"{label}: page, gzip", len(body) / 1000, "kB", 150),
        *_paging(server, f"{count:,} runs", 0.2),
    ]


def _paging(server: Server, label: str, limit: float) -> list[list[str]]:
    server.get("/")
    server.get("/?offset=100")
    times = []
    for number in range(20):
        started = time.perf_counter()
        server.get(f"/?offset={number * 50}&sort={('created', 'return')[number % 2]}")
        times.append(time.perf_counter() - started)
    return [_row(f"rlx ui, {label}: next page, median", statistics.median(times), "s", limit),
            _row(f"rlx ui, {label}: next page, slowest of 20", max(times), "s")]  # fmt: skip


def _curves(root: Path) -> None:
    make_runs(root, CURVES, rows=1)
    for number, path in enumerate(sorted((root / "runs").iterdir())):
        lines = [files.encode({"step": step, "time": 1.7e9, "rollout/return_mean": (step * (number + 3)) % 977 / 7})
                 for step in range(1, POINTS + 1)]  # fmt: skip
        (path / "seed_0" / "metrics.jsonl").write_bytes(b"\n".join(lines) + b"\n")


def _drawing(tab: Tab, server: Server) -> list[list[str]]:
    names = [f"synthetic_{number + 1:03d}" for number in range(CURVES)]
    query = "&".join(f"run={name}" for name in names)
    started = time.perf_counter()
    server.get(f"/plot?{query}")
    first = time.perf_counter() - started
    started = time.perf_counter()
    body = server.get(f"/curves?{query}&metric=rollout/return_mean")
    sent = time.perf_counter() - started
    started = time.perf_counter()
    server.get(f"/curves?{query}&metric=rollout/return_mean")
    again = time.perf_counter() - started
    tab.open(server.address)
    tab.open(f"{server.origin}/plot?{query}")
    drawn = tab.wait_for("document.documentElement.dataset.drawnMs", seconds=20)
    rows = [
        _row(f"rlx ui, {CURVES} curves × {POINTS:,} points: page without curves", first, "s"),
        _row(f"rlx ui, {CURVES} curves × {POINTS:,} points: float32 answer, files read", sent, "s"),
        _row(f"rlx ui, {CURVES} curves × {POINTS:,} points: float32 answer again", again, "s"),
        _row(f"rlx ui, {CURVES} curves × {POINTS:,} points: float32 bytes", len(body) / 1e6, "MB"),
    ]
    if drawn is None:
        return [*rows, ["rlx ui: drawing with uPlot", "uPlot is not installed: make ui", ""]]
    return [*rows, _row(f"rlx ui, {CURVES} curves × {POINTS:,} points: drawn", float(drawn), "ms", 300)]


def _live(root: Path) -> None:
    """Make a run of four seeds that this process seems to train."""
    from rlx.runs import process, store

    root.mkdir(parents=True)
    (root / "rlx.toml").touch()
    identity = {
        "env": "CartPole-v1",
        "algorithm": "ppo",
        "backend": "fast",
        "total_timesteps": 10**6,
        "group_hash": "g",
    }
    run = store.create(root, name="live", snapshot="run_name: live\nenv: {id: CartPole-v1}\n", metadata=identity,
                       seeds=[0, 1, 2, 3])  # fmt: skip
    for seed in run.seeds:
        event = {"event": "started", "time": time.time(), "process": process.current().document()}
        files.append_line(seed.folder / "events.jsonl", files.encode(event))


def _write_rows(root: Path, stop: threading.Event, costs: list[float]) -> None:
    writers = [MetricsWriter(root / "runs" / "live_001" / f"seed_{seed}" / "metrics.jsonl") for seed in range(4)]
    step = 0
    while not stop.is_set():
        step += 128
        for writer in writers:
            started = time.perf_counter()
            writer.write(step, {f"train/m{number}": 1.0 for number in range(19)} | {"rollout/return_mean": step / 100})
            costs.append(time.perf_counter() - started)
        time.sleep(0.2)


def _news(tab: Tab, server: Server, root: Path) -> list[list[str]]:
    """Measure a page of a run that writes 20 rows per second."""
    alone: list[float] = []
    watched: list[float] = []
    for costs, has_page in ((alone, False), (watched, True)):
        if has_page:
            tab.open(server.address)
            tab.open(f"{server.origin}/run/live_001")
            tab.wait_for("document.documentElement.dataset.newsAt", seconds=20)
        stop = threading.Event()
        thread = threading.Thread(target=_write_rows, args=(root, stop, costs))
        thread.start()
        time.sleep(3)
        before = server.cpu_seconds()
        started = time.perf_counter()
        gaps = []
        while time.perf_counter() - started < LIVE_SECONDS:
            time.sleep(0.25)
            if has_page:
                at = float(tab.value("document.documentElement.dataset.newsAt || 0"))
                gaps.append(time.time() - at / 1000)
        spent = (server.cpu_seconds() - before) / (time.perf_counter() - started)
        stop.set()
        thread.join()
    tab.open("about:blank")
    return [
        _row("rlx ui, live run of 4 seeds: age of the news, at most", max(gaps), "s", 2.5),
        _row("rlx ui, live run of 4 seeds: server CPU per open page", 100 * spent, "% of a core", 1.0),
        _row("trainer: one row, no page open (median)", 1e6 * statistics.median(alone), "µs"),
        _row("trainer: one row, page open (median)", 1e6 * statistics.median(watched), "µs"),
    ]


def _equal(tab: Tab, root: Path, count: int) -> list[list[str]]:
    """Measure what is measured of the peers, with as many runs."""
    started = time.perf_counter()
    with dashboard(root) as server:
        up = time.perf_counter() - started
        painted = [tab.open(server.address) or 1e9 for _ in range(2)]
        time.sleep(3)
        weight = tab.kilobytes()
        seen = tab.seconds_until(f"{server.origin}/", f"synthetic_{count:03d}")
    label = f"rlx ui, {count} runs"
    return [_row(f"{label}: server start", up, "s"), _row(f"{label}: first paint", min(painted) / 1000, "s"),
            _row(f"{label}: the newest run can be read", seen, "s"),
            _row(f"{label}: page and parts on the wire", weight, "kB")]  # fmt: skip


def _peers(tab: Tab, place: Path, known: peers.Peers, count: int) -> list[list[str]]:
    """Measure the peers' pages with `count` runs."""
    rows = []
    port = 18_000 + os.getpid() % 1000
    commands = {
        "tensorboard": (MAKE_TENSORBOARD, ["tensorboard", "--logdir", "tb", "--port", str(port)],
                        f"http://127.0.0.1:{port}/"),
        "mlflow": (MAKE_MLFLOW, ["mlflow", "server", "--backend-store-uri", "sqlite:///mlflow.db", "--port",
                                 str(port + 1), "--workers", "1"],
                   f"http://127.0.0.1:{port + 1}/#/experiments/0/runs"),
        "trackio": (MAKE_TRACKIO, ["trackio", "show", "--project", "bench", "--host", "127.0.0.1"],
                    "http://127.0.0.1:7860/?project=bench"),
    }  # fmt: skip
    for name, (make, words, address) in commands.items():
        if not known.has(name):
            rows.append([f"{name}, {count} runs", "not installed: make bench", ""])
            continue
        folder = place / name
        folder.mkdir()
        rows += _peer(tab, known, name, folder, make, words, address, count)
    return rows


def _peer(tab, known, name, folder, make, words, address, count):  # type: ignore[no-untyped-def]
    environment = {**os.environ, **peers.QUIET, "TRACKIO_DIR": str(folder / "trackio"), "PYTHONDONTWRITEBYTECODE": "1"}
    made = subprocess.run([known.python, "-c", make, str(count)], cwd=folder, env=environment, capture_output=True,
                          text=True)  # fmt: skip
    if made.returncode:
        return [[f"{name}, {count} runs", f"failed: {made.stderr.strip().splitlines()[-1][:80]}", ""]]
    words = [known.program(words[0]), *words[1:]]
    process = subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)  # fmt: skip
    started = time.perf_counter()
    try:
        if not _is_up(address):
            return [[f"{name}, {count} runs", "its server did not start in 120 s", ""]]
        up = time.perf_counter() - started
        painted = [tab.open(address) or 1e9 for _ in range(2)]
        time.sleep(3)
        weight = tab.kilobytes()
        seen = tab.seconds_until(address, "run_1")
        label = f"{name} {known.version(name)}, {count} runs"
        return [_row(f"{label}: server start", up, "s"), _row(f"{label}: first paint", min(painted) / 1000, "s"),
                _row(f"{label}: a run can be read", seen, "s"),
                _row(f"{label}: page and parts on the wire", weight, "kB")]  # fmt: skip
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)


def _is_up(address: str) -> bool:
    host = address.split("/")[2]
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            connection = http.client.HTTPConnection(host, timeout=10)
            connection.request("GET", "/")
            if connection.getresponse().status < 500:
                return True
        except (OSError, http.client.HTTPException):
            time.sleep(0.3)
    return False


if __name__ == "__main__":
    main()
