"""The command of a lab's agent: a known client (Claude Code, Codex) or any program that reads the brief on stdin.

What a session may reach: the system, the agent's program and its own state, the session's worktree and scratch folder,
and the network. It may write the candidate's folder in that worktree, its scratch folder and the agent's own state.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlx.errors import NotFound, UsageError
from rlx.loop.lab.lab_config import LabAgent
from rlx.sandbox.popen import SandboxedCommand
from rlx.sandbox.spec import SandboxSpec, make_private_home, system_reads

CLAUDE = ("-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits",
          "--allowedTools", "Read,Edit,Write,Glob,Grep,Bash")  # fmt: skip
CODEX = ("exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
_MODES = {"claude": ("-p", "--print"), "codex": ("exec", "e")}
"""Words that say that a person wrote the whole command."""
VARIABLES = ("PATH", "LANG", "LANGUAGE", "TERM", "TZ", "USER", "LOGNAME", "SHELL", "SSL_CERT_FILE", "SSL_CERT_DIR",
             "NODE_EXTRA_CA_CERTS")  # fmt: skip
PREFIXES = ("LC_", "ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "GEMINI_")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
FILE_BYTES = 256 * 2**20


@dataclass(frozen=True)
class AgentCommand:
    """An agent's words, and the paths that it needs besides its worktree."""

    argv: tuple[str, ...]
    client: str
    """`claude`, `codex`, or empty."""
    reads: tuple[Path, ...] = ()
    state: tuple[Path, ...] = ()
    """The client's own folders in the person's home: logins, settings and transcripts. It may write them."""
    variables: tuple[str, ...] = ()

    def sandboxed(
        self, tree: Path, scratch: Path, candidate: Path, *, may_go_unenforced: bool = False
    ) -> SandboxedCommand:
        """Return the command of one session, in its worktree and with the kernel's limits."""
        own = make_private_home(scratch)
        if self.client:
            own["HOME"] = str(Path.home())  # the client finds its login there
        environment = {**_environment(self.variables), **own, "PYTHONDONTWRITEBYTECODE": "1"}
        spec = SandboxSpec(
            reads=_existing(*system_reads(), *self.reads, tree),
            writes=_existing(candidate, scratch, *self.state),
            shared_memory=True,
            network=True,
            file_bytes=FILE_BYTES,
        )
        return SandboxedCommand(self.argv, spec, environment, tree, may_go_unenforced=may_go_unenforced)


def agent_command(text: str, rules: LabAgent, *, cwd: Path, dollars_left: float | None = None) -> AgentCommand:
    """Return the agent that `--agent` or lab.yaml names. Raises an error if its program does not exist."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--agent `{text}`: {error}", hint="--agent claude") from None
    if not words:
        raise UsageError("--agent is empty", hint="--agent claude")
    client = Path(words[0]).name if Path(words[0]).name in _MODES else ""
    program = _program(words[0], cwd)
    extra = words[1:]
    if client == "claude" and not set(_MODES[client]) & set(extra):
        limit = () if dollars_left is None else ("--max-budget-usd", f"{max(0.01, dollars_left):.2f}")
        extra = [*CLAUDE, *limit, *extra]
    elif client == "codex" and not set(_MODES[client]) & set(extra):
        extra = [*CODEX, *extra, "-"]
    argv = (str(program), *(_absolute(word, cwd) for word in extra))
    return AgentCommand(
        argv,
        client,
        reads=(*_program_reads(program), *_named_files(argv[1:]), *_paths(rules.reads, cwd)),
        state=(*_client_state(client), *_paths(rules.writes, cwd)),
        variables=rules.variables,
    )


def _program(word: str, cwd: Path) -> Path:
    found = shutil.which(word if os.sep not in word else str(cwd / word))
    if found is None:
        raise NotFound(f"the agent `{word}` is not installed, or is not on PATH", hint="--agent claude|codex|'COMMAND'")
    return Path(found)


def _absolute(word: str, cwd: Path) -> str:
    """Return a word that names an existing file with its whole path: a session runs in another folder."""
    path = cwd / word
    return str(path) if path.is_file() else word


def _program_reads(program: Path) -> list[Path]:
    """Return what a program needs to read to start: its package, and the interpreter of a script from npm."""
    reads = [program.parent]
    for path in {program, program.resolve()}:
        parts = path.parts
        if "node_modules" in parts:
            reads.append(Path(*parts[: parts.index("node_modules")]))
        reads.append(path.parent)
    node = shutil.which("node")
    if node is not None:
        reads.append(Path(node).resolve().parent.parent)
    return [path for path in reads if path not in (Path.home(), Path("/"))]


def _named_files(words: Sequence[str]) -> list[Path]:
    return [Path(word) for word in words if Path(word).is_absolute() and Path(word).is_file()]


def _paths(texts: Sequence[str], cwd: Path) -> list[Path]:
    return [cwd / Path(text).expanduser() for text in texts]


def _client_state(client: str) -> tuple[Path, ...]:
    home = Path.home()
    if client == "claude":
        folder = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        return folder, home / ".claude.json", home / ".cache" / "claude-cli-nodejs"
    if client == "codex":
        return (Path(os.environ.get("CODEX_HOME") or home / ".codex"),)
    return ()


def _existing(*paths: Path) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path for path in paths if path.exists()))


def _environment(variables: Sequence[str]) -> Mapping[str, str]:
    """Return the variables that an agent gets: of the system, of the known clients, and those that lab.yaml names."""
    kept = {}
    for name, value in os.environ.items():
        is_proxy = name.lower() in PROXIES
        if name in VARIABLES or name in variables or name.startswith(PREFIXES) or is_proxy:
            kept[name] = value
    kept["PATH"] = f"{Path(sys.executable).parent}:{kept.get('PATH', os.defpath)}"  # `python` and `rlx` of this lab
    return kept
