"""Serve rlx to an agent over MCP, on standard input and output, until the client leaves.

Same verbs as the command line, answers under 2 kB with a cursor for more; no tool can approve a contract. Clients start
it by themselves: the plug-in has it in `.mcp.json`. Needs the extra: pip install 'rlx[mcp]'.

Example: rlx mcp
"""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(args: argparse.Namespace) -> None:
    from rlx.errors import MissingExtra

    try:
        from rlx.hosts.mcp.server import build
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise MissingExtra(error.name, extra="mcp", why="serving agents over MCP") from None
    build().run()


def render(data: object) -> str:
    return ""
