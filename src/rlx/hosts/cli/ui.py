"""Show runs, comparisons and studies in a browser, served from this machine only, until Ctrl-C.

The address has a token: without it the server answers nothing. Pages work without JavaScript. They can change tags and
notes and stop a run, nothing else. Install: pip install 'rlx[ui]'.

Example: rlx ui
         rlx ui --port 8080 --open
"""

from rlx.hosts.cli.arguments import Args, Parser
from rlx.hosts.cli.output import say
from rlx.hosts.cli.progress import Count
from rlx.runs import project

PORT = 7171


def arguments(parser: Parser) -> None:
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=f"(default: {PORT}; 0: any free port)")
    parser.add_argument("--open", action="store_true", help="open the address in a browser")


def run(args: Args) -> None:
    from rlx.errors import MissingExtra, UsageError

    if not 0 <= args.port <= 65535:
        raise UsageError(f"--port {args.port}: not a port", hint="rlx ui --port 8080")
    try:
        from rlx.hosts.ui.server import listen, serve
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("starlette", "uvicorn", "anyio"):
            raise
        raise MissingExtra(error.name, extra="ui", why="the dashboard") from None
    import secrets

    from rlx.runs import index

    root = project.root()
    # Very many new runs take minutes to read: they are read here, with progress, and not by the first page.
    count = Count("new and changed runs read")
    index.summaries(root, limit=1, watch=lambda number, total: count(number + 1, total))
    token = secrets.token_urlsafe(24)
    listener = listen(args.port)
    port = listener.getsockname()[1]
    address = f"http://127.0.0.1:{port}/?token={token}"
    _announce(args, address, port)
    if args.open:
        import webbrowser

        webbrowser.open(address)
    serve(root, listener, token=token)


def _announce(args: Args, address: str, port: int) -> None:
    """Print the address on stdout, where another program can read it."""
    import sys

    from rlx.files import encode

    if args.json:
        sys.stdout.write(encode({"schema": 1, "address": address}).decode() + "\n")
    else:
        sys.stdout.write(f"dashboard: {address}\n")
    sys.stdout.flush()
    say(f"Ctrl-C ends it. From another machine: ssh -L {port}:127.0.0.1:{port} HOST, then open the address there.")
