"""Serve rlx to an agent over MCP, on standard input and output, until the client disconnects.

The tools have the names of the commands. Answers stay under 2 kB and have a cursor for more. No tool can approve a
contract. Clients start the server themselves: the plug-in has it in `.mcp.json`. Install: pip install 'rlx[mcp]'.

Example: rlx mcp
"""

from rlx.hosts.cli.arguments import Args, Parser


def arguments(parser: Parser) -> None:
    pass


def run(args: Args) -> None:
    from rlx.errors import MissingExtra

    try:
        from rlx.hosts.mcp.server import build
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise MissingExtra(error.name, extra="mcp", why="serving agents over MCP") from None
    build().run()
