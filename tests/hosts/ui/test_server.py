"""The dashboard over real sockets: who may ask, what it answers, and that it stays up."""

from __future__ import annotations

import itertools
import json
import re
import socket
import threading
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from rlx.hosts.cli.document import document
from rlx.hosts.cli.format import spread
from rlx.hosts.ui import connection
from rlx.hosts.ui.guard import form_token
from rlx.runs import store
from rlx.runs.metrics import MetricsWriter
from rlx.runs.run import Run
from tests.conftest import wait_until
from tests.hosts.ui.conftest import TOKEN, Dashboard

HOSTILE = "<img src=x onerror=alert(1)>\"'&"
PAGES = ("/", "/?group=1", "/studies", "/sweeps", "/machine")


class Dangers(HTMLParser):
    """What a browser would execute or load from a page, beyond the server's own files."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    @classmethod
    def of(cls, text: str) -> list[str]:
        parser = cls()
        parser.feed(text)
        return parser.found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.found += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        for name in ("src", "href", "action", "formaction"):
            if name in given and not (given[name] or "").startswith(("/", "#", "data:")):
                self.found.append(f"{tag} {name}={given[name]}")
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.found.append("script")


def form(dashboard: Dashboard, path: str, origin: str | None = None, **fields: str) -> int:
    given = {"form_token": form_token(TOKEN), **fields}
    return dashboard.ask(path, "POST", urlencode(given), Origin=dashboard.origin if origin is None else origin).status


# Who may ask


def test_nothing_is_shown_without_the_token(dashboard: Dashboard, pair: object) -> None:
    for path in (*PAGES, "/run/quick_001", "/static/app.css", "/curves?run=quick_001"):
        for cookie in ("", f"rlx_ui_{dashboard.port}=wrong", "rlx_ui_1=" + TOKEN, "=;;;\x01"):
            reply = dashboard.ask(path, Cookie=cookie)
            assert reply.status == 403
            assert "quick_001" not in reply.text
    assert dashboard.ask("/?token=wrong", Cookie="").status == 403


def test_the_token_moves_from_the_address_into_a_cookie(dashboard: Dashboard) -> None:
    reply = dashboard.ask(f"/studies?token={TOKEN}&x=1", Cookie="")
    assert reply.status == 303
    assert reply.headers["location"] == "/studies?x=1"
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"rlx_ui_{dashboard.port}={TOKEN};")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert dashboard.ask(f"//evil.example?token={TOKEN}", Cookie="").headers["location"] == "/evil.example"


def test_a_foreign_host_name_is_refused(dashboard: Dashboard) -> None:
    """A site that makes its own name point to this machine (DNS rebinding) sends its name as Host."""
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1:7171", "localhost.evil"):
        assert dashboard.ask("/", Host=host).status == 421
    for host in ("localhost", "127.0.0.1:9999", "[::1]:80", "LOCALHOST:1"):
        assert dashboard.ask("/", Host=host).status == 200


def test_only_known_methods_are_answered(dashboard: Dashboard, pair: object) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HACK"):
        assert dashboard.ask("/run/quick_001/tag", method, "tag=x", Origin=dashboard.origin).status == 405


def test_every_answer_forbids_foreign_code(dashboard: Dashboard, pair: object) -> None:
    for path in (*PAGES, "/run/quick_001", "/nothing", "/spark/quick_001", "/static/app.js", "/curves?run=no"):
        headers = dashboard.ask(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert dashboard.ask("/", Cookie="").headers["content-security-policy"]


# What may be changed


def test_forms_change_tags_notes_and_stars(dashboard: Dashboard, pair: tuple[Run, Run]) -> None:
    assert form(dashboard, "/run/quick_001/tag", tag="paper") == 303
    assert form(dashboard, "/run/quick_001/note", note="the best one") == 303
    labels = Run(pair[1].path)
    assert labels.tags == ("paper",)
    assert labels.note == "the best one"
    assert form(dashboard, "/run/quick_001/untag", tag="paper") == 303
    assert Run(pair[1].path).tags == ()


def test_other_sites_can_change_nothing(dashboard: Dashboard, pair: tuple[Run, Run]) -> None:
    path = "/run/quick_001/tag"
    good = urlencode({"form_token": form_token(TOKEN), "tag": "evil"})
    assert form(dashboard, path, origin="http://evil.example", tag="evil") == 403
    assert form(dashboard, path, origin="null", tag="evil") == 403
    assert dashboard.ask(path, "POST", good).status == 403
    assert dashboard.ask(path, "POST", good, Origin=dashboard.origin, Sec_Fetch_Site="cross-site").status == 403
    assert dashboard.ask(path, "POST", "tag=evil", Origin=dashboard.origin).status == 403
    assert dashboard.ask(path, "POST", good, Origin=dashboard.origin, Cookie="").status == 403
    assert Run(pair[1].path).tags == ()


def test_nothing_else_can_be_changed(dashboard: Dashboard, pair: tuple[Run, Run]) -> None:
    assert form(dashboard, "/run/quick_001/rm") == 404
    assert form(dashboard, "/run/quick_001/stop") == 400  # it is not running
    assert form(dashboard, "/run/quick_001/note", note="x" * 100_000) == 400
    assert form(dashboard, "/machine") == 404
    assert pair[1].path.is_dir()


# Paths


OUTSIDE = (
    "../../../etc/passwd", "/etc/passwd", "..%2f..%2frlx.toml", "seed_0/../../../rlx.toml", "link", "linked/rlx.toml",
    "a\x00b", "", ".", "seed_0", "x" * 5000, "\udcff",
)  # fmt: skip


def test_no_file_outside_a_run_can_be_read(dashboard: Dashboard, pair: tuple[Run, Run]) -> None:
    (dashboard.root / "rlx.toml").write_text("secret")
    (pair[1].path / "link").symlink_to(dashboard.root / "rlx.toml")
    (pair[1].path / "linked").symlink_to(dashboard.root)
    for kind, path in itertools.product(("file", "media"), OUTSIDE):
        reply = dashboard.ask(f"/run/quick_001/{kind}?path={quote(path, errors='surrogateescape')}")
        assert reply.status == 404, path
        assert "secret" not in reply.text


def test_only_whole_names_of_runs_are_opened(dashboard: Dashboard, pair: object) -> None:
    for name in ("..", "%2e%2e", "..%2f..", "%2fetc", "quick", "quick_00%3f", ".hidden", "a%00b", "%ff"):
        assert dashboard.ask(f"/run/{name}").status in (400, 404), name
        assert dashboard.ask(f"/run/{name}/file?path=metadata.json").status in (400, 404), name
    for path in ("../server.py", "..%2fserver.py", "%2e%2e/server.py", "/etc/passwd", "vendor", "", "x.py"):
        assert dashboard.ask(f"/static/{path}").status == 404, path


def test_an_svg_is_shown_as_text_and_never_sent_as_a_picture(dashboard: Dashboard, pair: tuple[Run, Run]) -> None:
    (pair[1].path / "plots").mkdir()
    (pair[1].path / "plots" / "x.svg").write_text("<svg><script>alert(1)</script></svg>")
    assert dashboard.ask("/run/quick_001/media?path=plots/x.svg").status == 404
    assert "&lt;script&gt;" in dashboard.page("/run/quick_001/file?path=plots/x.svg")


# Hostile content


@pytest.fixture
def hostile(make_run: Callable[..., Run]) -> Run:
    """A run whose tags, note, metrics, reason, environment and logs are markup."""
    run = make_run("evil", state="failed", env=HOSTILE, algo=HOSTILE, reason=HOSTILE)
    store.tag(run, HOSTILE)
    store.note(Run(run.path), HOSTILE)
    writer = MetricsWriter(run.seed(0).metrics_path)
    writer.write(300, {HOSTILE: 1.0})
    writer.close()
    (run.path / "logs").mkdir(exist_ok=True)
    (run.path / "logs" / "seed_0.log").write_text(f"{HOSTILE}\x1b]0;title\x07 {HOSTILE}</pre></script>\n")
    return Run(run.path)


def test_a_run_with_a_hostile_name_is_refused_and_never_becomes_markup(
    dashboard: Dashboard, make_run: Callable[..., Run], pair: object
) -> None:
    made = make_run("evil")
    made.path.rename(made.path.with_name(HOSTILE))
    name = quote(HOSTILE, safe="")

    assert not Dangers.of(dashboard.page("/"))
    for path in (f"/run/{name}", f"/run/{name}/files", f"/part/logs?run={name}", f"/plot?run={name}&run=quick_001",
                 f"/compare?run={name}&run=quick_001"):  # fmt: skip
        reply = dashboard.ask(path)
        assert reply.status == 403, path
        assert not Dangers.of(reply.text), path


def test_hostile_texts_never_become_markup(dashboard: Dashboard, hostile: Run, pair: object) -> None:
    name = quote(hostile.name, safe="")
    paths = ["/", "/?group=1", f"/run/{name}", f"/run/{name}?metric={quote(HOSTILE)}", f"/run/{name}/files",
             f"/run/{name}/file?path=labels.json", f"/run/{name}/file?path=logs/seed_0.log", f"/part/logs?run={name}",
             f"/plot?run={name}&run=quick_001", f"/?name={quote(HOSTILE)}", "/machine"]  # fmt: skip
    for path in paths:
        text = dashboard.page(path)
        assert not Dangers.of(text), path
    for path in (
        f"/compare?run={name}&run=quick_001",
        f"/run/{quote('<svg onload=alert(1)>')}",
        f"/?sort={quote(HOSTILE)}",
    ):
        assert not Dangers.of(dashboard.ask(path).text), path
    assert "\x1b" not in dashboard.page(f"/run/{name}")


# Figures


def test_the_list_shows_the_figures_of_ls(dashboard: Dashboard, pair: object) -> None:
    text = dashboard.page("/")
    for row in document("ls")["runs"]:
        assert spread(row["return"]) in text
        assert f'href="/run/{row["name"]}"' in text
    names = re.findall(r'href="/run/(\w+)"', dashboard.page("/?sort=return"))
    assert names == ["quick_001", "slow_001"]
    assert re.findall(r'href="/run/(\w+)"', dashboard.page("/?name=slo")) == ["slow_001"]
    assert "1–1 of 2" in dashboard.page("/?limit=1")


def test_every_column_of_the_list_is_under_its_own_heading(dashboard: Dashboard, pair: object) -> None:
    text = dashboard.page("/?name=quick_001")
    headings = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<th[ >].*?</th>", text)]
    headings = [heading.partition(">")[2] or heading for heading in headings]
    body = text.partition("<tbody>")[2]
    cells = dict(zip(headings, re.findall(r"<td.*?</td>", body), strict=True))
    row = next(row for row in document("ls")["runs"] if row["name"] == "quick_001")

    assert spread(row["return"]) in cells["return"]
    assert row["status"] in cells["status"]
    assert 'class="spark"' in cells["curve"]
    assert row["env"] in cells["env"]


def test_the_run_page_shows_the_figures_of_info(dashboard: Dashboard, pair: object) -> None:
    info = document("info", "quick_001")
    text = dashboard.page("/run/quick_001")
    assert spread(info["return"]) in text
    assert info["config_hash"] is None or info["config_hash"][:16] in text
    assert text.count('class="seed s0"') == 3
    assert 'class="band s0"' in text


def test_runs_that_cannot_be_compared_say_why(dashboard: Dashboard, pair: object) -> None:
    reply = dashboard.ask("/compare?run=quick_001&run=slow_001")
    assert reply.status == 404
    assert "has no report evaluation of its final policy" in reply.text
    assert dashboard.ask("/compare?run=quick_001").status == 400


def test_curves_are_sent_as_float32(dashboard: Dashboard, pair: object) -> None:
    body = dashboard.ask("/curves?run=quick_001&metric=rollout/return_mean").body
    length = int.from_bytes(body[:4], "little")
    header = json.loads(body[4 : 4 + length])
    numbers = np.frombuffer(body[4 + length :], "<f4").reshape(-1, header["points"])
    assert [line["kind"] for line in header["series"]] == ["seed", "seed", "seed", "low", "high", "mean"]
    assert numbers[0].tolist() == [100.0, 200.0, 300.0]
    mean = numbers[-1]
    assert mean.min() == pytest.approx(51.0)
    assert mean.max() == pytest.approx(90.0)


def test_news_come_by_byte_cursor(dashboard: Dashboard, make_run: Callable[..., Run]) -> None:
    run = make_run("live", state="running")
    first = json.loads(dashboard.ask("/live/run/live_001").text)
    assert first["status"] == "running"
    assert dashboard.ask(f"/live/run/live_001?cursor={first['cursor']}").status == 204
    writer = MetricsWriter(run.seed(0).metrics_path)
    writer.write(777, {"rollout/return_mean": 5.0})
    writer.close()
    news = json.loads(dashboard.ask(f"/live/run/live_001?cursor={first['cursor']}").text)
    assert news["seeds"] == [{"seed": 0, "step": 777, "return": "5"}]
    assert int(news["cursor"]) > int(first["cursor"])
    assert "Stop this run" in dashboard.page("/run/live_001")
    assert "777" in dashboard.page("/part/seeds?run=live_001")
    fragments = re.findall(r'data-fragment="(/part/[^"]+)"', dashboard.page("/run/live_001"))
    assert len(fragments) == 4
    assert all(dashboard.ask(unescape(address)).status == 200 for address in fragments)


# It stays up


def test_long_addresses_are_refused(dashboard: Dashboard) -> None:
    assert dashboard.ask("/?name=" + "x" * 20_000).status == 414
    assert dashboard.ask("/?offset=99999999999999999999&limit=-1").status == 200
    assert dashboard.ask("/?sort=nonsense").status == 400
    assert dashboard.ask("/plot?" + "&".join(f"run=r{number}" for number in range(1500))).status == 400


def test_damaged_runs_do_not_break_a_page(dashboard: Dashboard, pair: tuple[Run, Run]) -> None:
    (pair[0].path / "metadata.json").write_text("{")
    (pair[1].path / "seed_0" / "metrics.jsonl").write_text("nonsense\n")
    assert "broken" in dashboard.page("/")
    assert dashboard.ask("/spark/slow_001").status == 200
    assert dashboard.ask("/run/slow_001").status in (409, 404)
    assert dashboard.ask("/run/quick_001").status in (200, 409)


def test_a_damaged_sweep_is_a_row_and_hides_no_other_page(dashboard: Dashboard) -> None:
    folder = dashboard.root / ".rlx" / "sweeps" / "poles"
    folder.mkdir(parents=True)
    (folder / "ledger.jsonl").write_text(f"{HOSTILE}\n")
    text = dashboard.page("/sweeps")
    assert "broken" in text
    assert not Dangers.of(text)
    reply = dashboard.ask(f"/sweep/{quote(folder.name, safe='')}")
    assert reply.status == 409
    assert not Dangers.of(reply.text)


def test_slow_clients_do_not_block_others(dashboard: Dashboard, pair: object) -> None:
    slow = []
    for _ in range(60):
        connection = socket.create_connection(("127.0.0.1", dashboard.port), timeout=10)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        slow.append(connection)
    assert dashboard.ask("/").status == 200
    for connection in slow:
        connection.close()


def test_clients_that_stop_in_the_middle_of_a_request_are_hung_up(
    dashboard: Dashboard, pair: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 0.3)
    head = f"Host: 127.0.0.1\r\nCookie: {dashboard.cookie}\r\nOrigin: {dashboard.origin}\r\n"
    begun = (
        "",
        "GET / HTTP/1.1\r\nX: ",
        f"GET /machine HTTP/1.1\r\n{head}\r\nGET / HTTP/1.1\r\nX",
        f"POST /run/quick_001/tag HTTP/1.1\r\n{head}Content-Length: 500\r\n\r\ntag=",
    )
    for text in begun:
        with socket.create_connection(("127.0.0.1", dashboard.port), timeout=60) as client:
            client.sendall(text.encode())
            while client.recv(65_536):  # ends when the server hangs up
                pass
    assert dashboard.ask("/").status == 200


def test_a_thousand_silent_clients_leave_room_for_others(
    dashboard: Dashboard, pair: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 0.3)
    silent = []
    try:
        for _ in range(1010):
            silent.append(socket.create_connection(("127.0.0.1", dashboard.port), timeout=60))
        wait_until(lambda: dashboard.ask("/machine").status == 200)
    finally:
        for client in silent:
            client.close()


def test_many_readers_see_every_row_while_it_is_written(dashboard: Dashboard, make_run: Callable[..., Run]) -> None:
    run = make_run("busy", seeds={seed: [1.0] for seed in range(4)}, state="running")
    failures: list[int] = []

    def read() -> None:
        for path in ("/", "/run/busy_001", "/live/run/busy_001", "/part/curve?run=busy_001"):
            status = dashboard.ask(path).status
            if status != 200:
                failures.append(status)

    writers = [MetricsWriter(seed.metrics_path) for seed in run.seeds]
    threads = [threading.Thread(target=read) for _ in range(50)]
    for thread in threads:
        thread.start()
    for step in range(200, 260):
        for writer in writers:
            writer.write(step, {"rollout/return_mean": float(step)})
    for thread in threads:
        thread.join()
    for writer in writers:
        writer.close()
    assert failures == []
    assert all(len(seed.rows) == 61 for seed in Run(run.path).seeds)
    assert "mean 259 at 259" in dashboard.page("/part/curve?run=busy_001")


def test_many_readers_wait_for_one_computation(dashboard: Dashboard, pair: tuple[Run, Run]) -> None:
    from rlx.hosts.ui.curve_data import CurveData

    data = CurveData(dashboard.root)
    computed: list[int] = []
    begun = threading.Event()
    go_on = threading.Event()

    def compute() -> int:
        computed.append(1)
        begun.set()
        go_on.wait(timeout=30)
        return len(computed)

    found: list[int] = []
    readers = [threading.Thread(target=lambda: found.append(data.remembered(pair[0], "x", compute=compute)))
               for _ in range(8)]  # fmt: skip
    for reader in readers:
        reader.start()
    begun.wait(timeout=30)
    go_on.set()
    for reader in readers:
        reader.join()
    assert found == [1] * 8
    writer = MetricsWriter(pair[0].seed(0).metrics_path)
    writer.write(999, {"a": 1.0})
    writer.close()
    assert data.remembered(pair[0], "x", compute=compute) == 2
