"""The server of the dashboard: addresses, answers, and how it starts. Pages come from the modules next to it."""

from __future__ import annotations

import contextlib
import gzip
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from rlx.errors import NotFound, Refused, RlxError, UsageError
from rlx.hosts.cli.document import document
from rlx.hosts.cli.format import figure, steps
from rlx.hosts.ui import (
    compare_page,
    file_page,
    lab_page,
    machine_page,
    replay_view,
    run_list,
    run_page,
    study_page,
    sweep_page,
)
from rlx.hosts.ui.connection import Connection
from rlx.hosts.ui.curve_data import CurveData, packed, sparkline_of
from rlx.hosts.ui.guard import RequestGuard, form_token
from rlx.hosts.ui.html import el, url
from rlx.hosts.ui.layout import STATIC, Site, problem
from rlx.runs.index import LiveIndex
from rlx.runs.metric_columns import size_of
from rlx.runs.summary import position

COMPRESSED_FROM = 1000
LARGEST_FORM = 65_536
REFRESH_FACTOR = 200
"""A live part is made again after this many times the seconds that it took: less than 1 % of a core."""
SHORTEST_REFRESH = 2.0


class Dashboard:
    """The endpoints. Starlette runs each in a thread, because they read files."""

    def __init__(self, root: Path, token: str) -> None:
        self.root = root
        self.site = Site(root.name, form_token(token), has_lab=lab_page.is_lab(root))
        self.index = LiveIndex(root)
        self.data = CurveData(root)

    def routes(self) -> list[Route]:
        """Return every address. No other address exists."""
        pages: dict[str, Callable[[Request], Response]] = {
            "/": self.runs,
            "/run/{name}": self.run,
            "/run/{name}/episodes": self.episodes,
            "/run/{name}/files": self.run_files,
            "/run/{name}/file": self.run_file,
            "/run/{name}/media": self.run_media,
            "/run/{name}/replay": self.replay,
            "/compare": self.compare,
            "/plot": self.plot,
            "/curves": self.curves,
            "/spark/{name}": self.spark,
            "/part/{kind}": self.part,
            "/live/run/{name}": self.live_run,
            "/live/runs": self.live_runs,
            "/live/machine": self.live_machine,
            "/lab": self.lab,
            "/studies": self.studies,
            "/study/{task}/{name}": self.study,
            "/study/{task}/{name}/file": self.study_file,
            "/sweeps": self.sweeps,
            "/sweep/{name}": self.sweep,
            "/machine": self.machine,
            "/static/{path:path}": self.static,
        }
        routes = [Route(path, endpoint, methods=["GET"]) for path, endpoint in pages.items()]
        return [*routes, Route("/run/{name}/{verb}", self.change, methods=["POST"])]

    def runs(self, request: Request) -> Response:
        return _html(request, run_list.run_list(self.site, self.index, request.query_params))

    def run(self, request: Request) -> Response:
        name = request.path_params["name"]
        return _html(request, run_page.run_page(self.site, self.data, name, request.query_params))

    def episodes(self, request: Request) -> Response:
        name = request.path_params["name"]
        return _html(request, run_page.episodes_page(self.site, self.data, name, dict(request.query_params)))

    def run_files(self, request: Request) -> Response:
        run = self.data.run(request.path_params["name"])
        crumbs = (("Runs", "/"), (run.name, url("run", run.name)), ("Files", url("run", run.name, "files")))
        return _html(request, file_page.list_page(self.site, run.path, ("run", run.name), crumbs))

    def run_file(self, request: Request) -> Response:
        run = self.data.run(request.path_params["name"])
        crumbs = (("Runs", "/"), (run.name, url("run", run.name)), ("Files", url("run", run.name, "files")))
        return _html(request, file_page.text_page(self.site, run.path, request.query_params.get("path", ""), crumbs))

    def run_media(self, request: Request) -> Response:
        run = self.data.run(request.path_params["name"])
        path, kind = file_page.media(run.path, request.query_params.get("path", ""))
        return FileResponse(path, media_type=kind)

    def replay(self, request: Request) -> Response:
        chosen = request.query_params.get("name", "")
        return _html(request, replay_view.replay_page(self.site, self.data, request.path_params["name"], chosen))

    def compare(self, request: Request) -> Response:
        names = request.query_params.getlist("run")
        baseline = request.query_params.get("baseline")
        return _html(request, compare_page.compare_page(self.site, self.data, names, baseline))

    def plot(self, request: Request) -> Response:
        names = request.query_params.getlist("run")
        return _html(request, compare_page.plot_page(self.site, self.data, names, request.query_params))

    def curves(self, request: Request) -> Response:
        """Return the curves of runs as float32."""
        names = request.query_params.getlist("run")[: compare_page.MOST_PLOTTED]
        axis = request.query_params.get("x", "steps")
        if axis not in run_page.AXES:
            axis = "steps"
        metric = request.query_params.get("metric", "")
        is_pooled = request.query_params.get("by") == "config"
        groups = self.data.groups(names, metric, axis=axis, is_pooled=is_pooled)
        body = packed(groups, with_band=len(groups) <= compare_page.MOST_WITH_BAND)
        return Response(body, media_type="application/octet-stream")

    def spark(self, request: Request) -> Response:
        picture = sparkline_of(self.data, request.path_params["name"])
        headers = {"cache-control": "private, max-age=20"}
        return Response(str(picture), media_type="image/svg+xml", headers=headers)

    def part(self, request: Request) -> Response:
        """Return a part of a page that changes while a run trains."""
        kind = request.path_params["kind"]
        if kind == "machine":
            return _html(request, machine_page.machine_part(self.root, self.index))
        name = self.data.run(request.query_params.get("run", "")).name
        started = time.perf_counter()
        if kind == "summary":
            part = run_page.summary_part(document("info", "--", name))
        elif kind == "seeds":
            part = run_page.seeds_part(document("info", "--", name))
        elif kind == "logs":
            part = run_page.logs_part(name)
        elif kind == "curve":
            metric, axis = run_page.chosen_curve(self.data, name, request.query_params)
            part = run_page.curve_part(self.data, name, metric, axis)
        else:
            raise NotFound("no such part", hint="open the page again")
        pause = max(SHORTEST_REFRESH, REFRESH_FACTOR * (time.perf_counter() - started))
        answer = _html(request, part)
        answer.headers["x-next-refresh"] = f"{pause:.1f}"
        return answer

    def live_run(self, request: Request) -> Response:
        """Return the news of a run since a byte cursor; 204 if it has written nothing."""
        run = self.data.run(request.path_params["name"])
        cursor = size_of(run)
        if request.query_params.get("cursor") == str(cursor):
            return Response(status_code=204)
        positions = [position(seed) for seed in run.seeds]
        seeds = [{"seed": seed.number, "step": step, "return": figure(value)}
                 for seed, (step, value) in zip(run.seeds, positions, strict=True)]  # fmt: skip
        line = "; ".join(f"seed {row['seed']}: step {row['step']:,}, return {row['return']}" for row in seeds[:12])
        return JSONResponse({"cursor": str(cursor), "status": run.status, "seeds": seeds, "line": line})

    def live_runs(self, request: Request) -> Response:
        """Return the progress of the runs that train; 204 if nothing has changed since the cursor."""
        rows = self.index.page(status="running", limit=200).rows
        now = {row["name"]: steps(row["steps"], row["planned_steps"]) for row in rows}
        cursor = str(hash(tuple(now.items())))
        if request.query_params.get("cursor") == cursor:
            return Response(status_code=204)
        return JSONResponse({"cursor": cursor, "steps": now})

    def live_machine(self, request: Request) -> Response:
        return JSONResponse({"cursor": str(int(time.time() / 3))})

    def lab(self, request: Request) -> Response:
        return _html(request, lab_page.lab_page(self.site, self.root))

    def studies(self, request: Request) -> Response:
        return _html(request, study_page.study_list(self.site, self.root))

    def study(self, request: Request) -> Response:
        names = request.path_params
        return _html(request, study_page.study_page(self.site, self.root, names["task"], names["name"]))

    def study_file(self, request: Request) -> Response:
        names = request.path_params
        study = study_page.find(self.root, names["task"], names["name"])
        crumbs = (("Studies", "/studies"), (study.full_name, url("study", study.task_name, study.name)))
        path = request.query_params.get("path", "")
        return _html(request, file_page.text_page(self.site, study.folder, path, crumbs))

    def sweeps(self, request: Request) -> Response:
        return _html(request, sweep_page.sweep_list(self.site))

    def sweep(self, request: Request) -> Response:
        return _html(request, sweep_page.sweep_page(self.site, request.path_params["name"]))

    def machine(self, request: Request) -> Response:
        return _html(request, machine_page.machine_page(self.site, self.root, self.index))

    def static(self, request: Request) -> Response:
        path = file_page.inside(STATIC, request.path_params["path"])
        kinds = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
        if path.suffix not in kinds:
            raise NotFound("no such file", hint="")
        body, headers = _compressed(request, path.read_bytes())
        return Response(body, headers={**headers, "cache-control": "no-cache"}, media_type=kinds[path.suffix])

    async def change(self, request: Request) -> Response:
        """Change a run's tags or note, or stop it: the only three things that this server can change."""
        from anyio.to_thread import run_sync

        fields = await _form(request)
        if fields.get("form_token", "") != self.site.form_token:
            raise Refused("this form is out of date", hint="load the page again")
        return await run_sync(self._changed, request.path_params["name"], request.path_params["verb"], fields)

    def _changed(self, name: str, verb: str, fields: dict[str, str]) -> Response:
        name = self.data.run(name).name
        if verb in ("tag", "untag"):
            document(verb, "--", name, fields.get("tag", ""))
        elif verb == "note":
            document("note", "--", name, fields.get("note", ""))
        elif verb == "stop":
            document("stop", "--", name)
        else:
            raise NotFound(f"no action `{verb[:40]}`", hint="tag, untag, note or stop")
        return RedirectResponse(url("run", name), status_code=303)


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a small form."""
    from urllib.parse import parse_qsl

    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise UsageError("this form is too large", hint="shorten the note")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _compressed(request: Request, body: bytes) -> tuple[bytes, dict[str, str]]:
    if len(body) < COMPRESSED_FROM or "gzip" not in request.headers.get("accept-encoding", ""):
        return body, {}
    return gzip.compress(body, 4), {"content-encoding": "gzip", "vary": "accept-encoding"}


def _html(request: Request, page: str) -> Response:
    body, headers = _compressed(request, page.encode("utf-8", "replace"))
    return HTMLResponse(body, headers=headers)


def application(root: Path, *, token: str, port: int) -> RequestGuard:
    """Return the application of a project."""
    dashboard = Dashboard(root, token)

    def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, RlxError):
            status = {NotFound: 404, UsageError: 400, Refused: 403}.get(type(error), 409)
            return _error(dashboard.site, status, error.message, error.hint or "")
        print(f"ui: {type(error).__name__}: {error}", file=sys.stderr)
        return _error(dashboard.site, 500, f"{type(error).__name__} (a bug in rlx)", "rlx doctor")

    def missing(request: Request, error: Exception) -> Response:
        return _error(dashboard.site, 404, "There is no such page.", "rlx ls")

    handlers: Any = {RlxError: failed, 404: missing, 405: missing, Exception: failed}
    return RequestGuard(Starlette(routes=dashboard.routes(), exception_handlers=handlers), token=token, port=port)


def _error(site: Site, status: int, message: str, hint: str) -> Response:
    return HTMLResponse(site.page(message[:80], el("div", problem(message, hint))), status_code=status)


def listen(port: int) -> socket.socket:
    """Return a socket that only this machine can reach; port 0 takes any free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        hint = f"rlx ui --port {port + 1 if 0 < port < 65535 else 0}"
        raise UsageError(f"port {port} cannot be used: {error.strerror}", hint=hint) from None
    listener.listen(256)  # a browser that is quicker than the server waits
    return listener


def server_of(root: Path, listener: socket.socket, *, token: str) -> uvicorn.Server:
    """Return a server that is ready to run."""
    app = application(root, token=token, port=listener.getsockname()[1])
    config = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, date_header=False, lifespan="off", ws="none",
        timeout_keep_alive=10, limit_concurrency=1000, timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=65_536, http=Connection, loop="asyncio",
    )  # fmt: skip
    return uvicorn.Server(config)


def serve(root: Path, listener: socket.socket, *, token: str) -> None:
    """Serve until Ctrl-C, which is how it is meant to end."""
    with contextlib.suppress(KeyboardInterrupt):
        server_of(root, listener, token=token).run(sockets=[listener])
