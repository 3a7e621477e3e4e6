"""The hook in the real clients, driven by a scripted model: denied inside an approved study, silent elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.hosts_real.conftest import ROOT, Client
from tests.hosts_real.mock_model import Call, Later, MockModel, Step, selected

VIEW = {
    "schema": 1,
    "approved": True,
    "expires": None,
    "worktrees": ".rlx/tasks/trot/studies/s1/worktrees",
    "train": ["train.py"],
    "surface": ["reward.py"],
    "protected": ["evaluate.py"],
    "open": ["*.md", "*.json"],
}


@pytest.fixture
def project(home: Path) -> Path:
    """Make a small repository with an approved study, beside the client's home."""
    root = home / "a repository"
    root.mkdir()
    (root / "train.py").write_text("open('trained', 'w').write('yes')\n")
    (root / "evaluate.py").write_text("print(1)\n")
    study = root / ".rlx/tasks/trot/studies/s1"
    study.mkdir(parents=True)
    (root / ".rlx/active.json").write_text('{"task": "trot", "study": "s1"}')
    (study / "hook.json").write_text(json.dumps(VIEW, indent=2))
    return root


def approve(root: Path, *, is_approved: bool) -> None:
    path = root / ".rlx/tasks/trot/studies/s1/hook.json"
    path.write_text(json.dumps({**VIEW, "approved": is_approved}, indent=2))


def bash(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "run"})


FILES_SERVER = """\
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("files")


@server.tool()
def write_file(path: str, content: str) -> str:
    Path(path).write_text(content)
    return "written"


server.run()
"""


@pytest.fixture
def files_server(home: Path) -> Path:
    """Write a server of somebody else's, with a tool that writes files."""
    path = home / "files_server.py"
    path.write_text(FILES_SERVER)
    return path


def drive_claude(claude: Client, root: Path, *steps: Step | Later, options: tuple[str, ...] = ()) -> list[str]:
    claude.run("plugin", "marketplace", "add", str(ROOT))
    claude.run("plugin", "install", "rlx@rlx")
    with MockModel([*steps, "done"]) as model:
        allowed = "Bash,Write,Edit,ToolSearch,mcp__files__write_file"
        claude.run("-p", "go", "--output-format", "json", "--allowedTools", allowed, *options, cwd=root,
                   ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="dummy")  # fmt: skip
        return model.results()


def drive_codex(codex: Client, root: Path, *steps: Call, options: tuple[str, ...] = ()) -> list[str]:
    codex.run("plugin", "marketplace", "add", str(ROOT))
    codex.run("plugin", "add", "rlx@rlx")
    with MockModel([*steps, "done"]) as model:
        provider = f'model_providers.mock={{name="mock",base_url="{model.url}/v1",env_key="K",wire_api="responses"}}'
        codex.run("exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-s",
                  "danger-full-access", "-c", 'model_provider="mock"', "-c", 'model="gpt-5.5-codex"', "-c", provider,
                  *options, "go", cwd=root, K="dummy")  # fmt: skip
        return model.results()


def test_claude_code_is_stopped_and_told_what_to_run_instead(claude: Client, project: Path) -> None:
    write = Call("Write", {"file_path": str(project / "notes.md"), "content": "a note"})
    cheat = Call("Write", {"file_path": str(project / "evaluate.py"), "content": "print(1e6)"})
    read = Call("Read", {"file_path": str(project / "evaluate.py")})
    told = drive_claude(
        claude, project, bash("python3 train.py"), read, cheat, bash("rlx study approve s1"), write, bash("echo fine")
    )
    assert "rlx launch" in told[0]
    assert "protected in the study" in told[2]
    assert "a person" in told[3]
    assert "fine" in told[5]
    assert not (project / "trained").exists()
    assert (project / "evaluate.py").read_text() == "print(1)\n"
    assert (project / "notes.md").read_text() == "a note"


def test_claude_code_is_not_hindered_where_nothing_is_approved(claude: Client, project: Path) -> None:
    approve(project, is_approved=False)
    drive_claude(claude, project, bash("python3 train.py"))
    assert (project / "trained").exists()


PATCH = "*** Begin Patch\n*** Update File: evaluate.py\n@@\n-print(1)\n+print(1000000)\n*** End Patch"
NOTE = "*** Begin Patch\n*** Add File: notes.md\n+a note\n*** End Patch"


def test_codex_is_stopped_and_told_what_to_run_instead(codex: Client, project: Path) -> None:
    told = drive_codex(
        codex,
        project,
        Call("exec_command", {"cmd": "python3 train.py", "yield_time_ms": 5000}),
        Call("apply_patch", patch=PATCH),
        Call("exec_command", {"cmd": "rlx study approve s1", "yield_time_ms": 5000}),
        Call("apply_patch", patch=NOTE),
        Call("exec_command", {"cmd": "echo fine", "yield_time_ms": 5000}),
    )
    assert "rlx launch" in told[0]
    assert "protected in the study" in told[1]
    assert "a person" in told[2]
    assert "fine" in told[4]
    assert not (project / "trained").exists()
    assert (project / "evaluate.py").read_text() == "print(1)\n"
    assert (project / "notes.md").read_text() == "a note\n"


def test_codex_is_not_hindered_where_nothing_is_approved(codex: Client, project: Path) -> None:
    approve(project, is_approved=False)
    drive_codex(codex, project, Call("exec_command", {"cmd": "python3 train.py", "yield_time_ms": 5000}))
    assert (project / "trained").exists()


def test_claude_code_is_stopped_in_the_tool_of_another_server(
    claude: Client, project: Path, files_server: Path
) -> None:
    config = {"mcpServers": {"files": {"command": sys.executable, "args": [str(files_server)]}}}
    name = "mcp__files__write_file"
    told = drive_claude(
        claude, project,
        *selected(name),
        Call(name, {"path": str(project / "evaluate.py"), "content": "print(1e6)"}),
        Call(name, {"path": str(project / "notes.md"), "content": "a note"}),
        options=("--mcp-config", json.dumps(config)),
    )  # fmt: skip
    assert "protected in the study" in told[-2]
    assert (project / "evaluate.py").read_text() == "print(1)\n"
    assert (project / "notes.md").read_text() == "a note"


def test_codex_is_stopped_in_the_tool_of_another_server(codex: Client, project: Path, files_server: Path) -> None:
    def write(name: str, content: str) -> Call:
        return Call("write_file", {"path": str(project / name), "content": content}, namespace="mcp__files")

    server = f'mcp_servers.files={{command="{sys.executable}",args=["{files_server}"]}}'
    told = drive_codex(
        codex, project,
        Call("exec_command", {"cmd": "sleep 9", "yield_time_ms": 12000}),
        write("evaluate.py", "print(1e6)"),
        write("notes.md", "a note"),
        options=("-c", server),
    )  # fmt: skip
    assert "protected in the study" in told[1]
    assert (project / "evaluate.py").read_text() == "print(1)\n"
    assert (project / "notes.md").read_text() == "a note"
