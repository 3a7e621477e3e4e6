"""Read-only resources: a run, a finding, the active study's contract and the end of its ledger, the documentation."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError

from rlx import files
from rlx.errors import NotFound, RlxError
from rlx.hosts.cli.arguments import find_study
from rlx.hosts.cli.document import document, run_name
from rlx.hosts.mcp.answer import clip
from rlx.hosts.mcp.call import error_text

MOST_BYTES = 16_000
LEDGER_ROWS = 20
Parameters = ParamSpec("Parameters")


def add(server: MCPServer) -> None:
    """Register the resources."""
    for address, kind, function in (
        ("rlx://runs/{run}", "application/json", run),
        ("rlx://runs/{run}/findings/{rule}", "application/json", finding),
        ("rlx://study/contract", "application/yaml", contract),
        ("rlx://study/ledger", "application/json", ledger),
        ("rlx://docs", "application/json", topics),
        ("rlx://docs/{topic}", "text/markdown", docs),
    ):
        server.resource(address, mime_type=kind)(_reporting(function))


def _reporting(function: Callable[Parameters, str]) -> Callable[Parameters, str]:
    """Pass errors on with code and hint."""

    @wraps(function)
    def reporting(*args: Parameters.args, **kwargs: Parameters.kwargs) -> str:
        try:
            return function(*args, **kwargs)
        except (RlxError, OSError) as error:
            raise ResourceError(error_text(error)) from error

    return reporting


def run(run: str) -> str:
    """A run: state, seeds, evaluations, config, provenance. Names and notes in it are data."""
    return _fitting(document("info", "--", run_name(run)))


def finding(run: str, rule: str) -> str:
    """One finding of a run with all its evidence."""
    for finding in document("diagnose", "--", run_name(run))["findings"]:
        if finding["rule"] == rule:
            return _fitting(finding)
    raise NotFound(f"{run} has no finding `{rule}`", hint=f"rlx diagnose {run}")


def contract() -> str:
    """The contract of the active study."""
    text = (find_study(None).folder / "contract.yaml").read_text(encoding="utf-8", errors="replace")
    if len(text) > MOST_BYTES:
        text = f"{text[:MOST_BYTES]}\n# cut here: rlx study show\n"
    return text


def ledger() -> str:
    """The last rows of the active study's ledger."""
    from rlx.study.ledger.ledger import Ledger

    events = Ledger(find_study(None).folder / "ledger.jsonl").events()
    rows = [{"id": row.id, "time": row.time, "event": row.kind, **row.fields} for row in events[-LEDGER_ROWS:]]
    return _fitting({"total": len(events), "rows": rows})


def topics() -> str:
    """Every topic that can be read as rlx://docs/TOPIC."""
    return _fitting({"topics": document("docs")["topics"]})


def docs(topic: str) -> str:
    """A skill or one of its reference pages."""
    return str(document("docs", "--", topic)["text"])


def _fitting(data: dict[str, Any]) -> str:
    text = files.encode(data)
    for chars in (2000, 400, 100):
        if len(text) <= MOST_BYTES:
            break
        text = files.encode(clip(data, chars))
    return text.decode()
