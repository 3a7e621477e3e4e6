"""The hook of both hosts: silent outside an approved study; inside one it denies direct training and edits."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import rlx.hosts

GATE = Path(rlx.hosts.__file__).parent / "plugin" / "hooks" / "gate.sh"
VIEW = {
    "schema": 1,
    "approved": True,
    "expires": None,
    "worktrees": ".rlx/tasks/trot/studies/s1/worktrees",
    "train": ["scripts/train.py", "go2.train", "go2/train.py", "train-agent"],
    "surface": ["tasks/reward.py", "curriculum/*"],
    "protected": ["evals/*", "scripts/eval.py", "tasks/secret.py"],
    "open": ["**/*.md", "*.json"],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "a project"
    for name in ("scripts/train.py", "scripts/eval.py", "tasks/reward.py", "evals/success.py", "lib.py", "README.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")
    (root / "linked.py").symlink_to("scripts/train.py")
    govern(root, VIEW)
    for candidate in ("c001", "baseline"):
        tree = root / VIEW["worktrees"] / candidate  # type: ignore[operator]
        for name in ("scripts/train.py", "tasks/reward.py", "lib.py"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text("x = 1\n")
    return root


def govern(root: Path, view: dict[str, Any] | str) -> None:
    study = root / ".rlx/tasks/trot/studies/s1"
    study.mkdir(parents=True, exist_ok=True)
    (root / ".rlx/active.json").write_text('{"task": "trot", "study": "s1"}')
    (study / "hook.json").write_text(view if isinstance(view, str) else json.dumps(view, indent=2))


def ask(here: Path, tool: str, given: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    call = {"session_id": "s", "transcript_path": "/tmp/t.jsonl", "cwd": str(here), "hook_event_name": "PreToolUse",
            "tool_name": tool, "tool_input": given}  # fmt: skip
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CLAUDE")}
    return subprocess.run(
        ["/bin/sh", str(GATE)], input=json.dumps(call), cwd=here, env={**inherited, **environment},
        capture_output=True, text=True,
    )  # fmt: skip


def reason(done: subprocess.CompletedProcess[str]) -> str | None:
    """Return why a call was denied; None if the hook was silent."""
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    if not done.stdout:
        return None
    answer = json.loads(done.stdout)["hookSpecificOutput"]
    assert (answer["hookEventName"], answer["permissionDecision"]) == ("PreToolUse", "deny")
    return str(answer["permissionDecisionReason"])


def run(here: Path, command: str) -> str | None:
    return reason(ask(here, "Bash", {"command": command}))


def edit(here: Path, path: Path | str) -> str | None:
    return reason(ask(here, "Edit", {"file_path": str(path)}))


@pytest.mark.parametrize(
    "command",
    [
        "python scripts/train.py --seed 1",
        "python3 -u ./scripts/train.py",
        "cd scripts && python train.py",
        "WANDB_MODE=offline nohup python scripts/train.py > out.log 2>&1 &",
        "timeout 600 uv run python scripts/train.py",
        "bash -lc 'cd scripts; python train.py'",
        "python -m go2.train",
        "torchrun --nproc_per_node 2 scripts/train.py",
        "train-agent --fast",
        "if true; then python scripts/train.py; fi",
        "sleep 1 && (python scripts/train.py)",
        "pushd scripts; python train.py",
        "bash -ce 'python scripts/train.py'",
        "env -u A X=1 python -m scripts.train",
        "cd scripts && python -m train",
        "PYTHONPATH=scripts python3.11 -m train",
        "uv run --with torch python scripts/train.py",
        "uv run rlx train configs/a.yaml",
        "python -m rlx train configs/a.yaml",
        "nice -n 10 .venv/bin/rlx resume a_001",
        "conda run -n rl python scripts/train.py",
        "python linked.py",
        "cd .rlx/tasks/trot/studies/s1/worktrees/c001 && python scripts/train.py",
        "rlx train configs/a.yaml",
        "rlx settle a_001 b_001",
    ],
)
def test_a_direct_training_is_denied_and_rlx_launch_is_named(project: Path, command: str) -> None:
    assert "rlx launch" in (run(project, command) or "")


@pytest.mark.parametrize(
    "command",
    [
        "cat scripts/train.py",
        "grep -n reward scripts/train.py | head",
        "git diff scripts/train.py",
        "python -m py_compile scripts/train.py",
        "ls; pwd",
        "rlx next --json",
        "rlx launch c001 --phase trial --plan 9f2c --json",
        "rlx wait trot_040 --timeout 300",
        "python analyse.py",
        "echo 'a note' >> NOTES.md",
        "cp scripts/eval.py /tmp/copy.py",
        "python - <<'END'\nprint('it''s')\nEND",
        "# python scripts/train.py\nls",
        "ls # python scripts/train.py",
        "cat > notes.md <<'END'\nthen python scripts/train.py\nEND",
        "git commit -m 'run `python scripts/train.py`'",
        "python -c \"print(open('scripts/train.py').read())\"",
        "rlx train --help",
        "rlx study approve --help",
        "pip install rlx train",
        "sed -n 1,5p evals/success.py",
        "cp /tmp/a.md .",
        "for i in 1 2; do echo $i; done",
    ],
)
def test_other_commands_pass_in_silence(project: Path, command: str) -> None:
    assert run(project, command) is None


@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/1/2/ evals/success.py",
        "echo x > scripts/eval.py",
        "tee -a evals/success.py < /dev/null",
        "cp /dev/null scripts/eval.py",
        "rm -rf .rlx",
        "mv tasks/reward.py /tmp/gone.py",
        "git checkout HEAD~1 -- scripts/eval.py",
        "sed -i s/1/2/ .rlx/tasks/trot/studies/s1/hook.json",
        "sed -Ei s/1/2/ evals/success.py",
        "cat > evals/success.py <<'END'\nx\nEND",
        "bash -c 'echo 1 >evals/success.py'",
        "cp /tmp/success.py evals/",
        "cd evals && rm *.py",
        "ln -sf /tmp/x evals/success.py",
        "apply_patch <<'END'\n*** Begin Patch\n*** Update File: evals/success.py\n@@\n-x\n+y\n*** End Patch\nEND",
    ],
)
def test_known_writers_are_held_to_the_surface(project: Path, command: str) -> None:
    assert "rlx" in (run(project, command) or "")


def test_an_agent_never_approves_whatever_the_state(project: Path) -> None:
    govern(project, {**VIEW, "approved": False})
    assert "a person" in (run(project, "rlx study approve s1") or "")
    assert "a person" in (run(project, "python -m rlx study approve s1 --yes") or "")


def test_edits_happen_in_a_candidates_worktree_on_the_surface(project: Path) -> None:
    tree = project / ".rlx/tasks/trot/studies/s1/worktrees"
    assert edit(project, tree / "c001/tasks/reward.py") is None
    assert edit(project, tree / "c001/curriculum/levels.py") is None
    assert "rlx check candidate c001" in (edit(project, tree / "c001/lib.py") or "")
    assert "rlx check candidate c001" in (edit(project, tree / "c001/evals/success.py") or "")
    assert "Do not edit" in (edit(project, tree / "baseline/tasks/reward.py") or "")
    assert run(tree / "c001", "sed -i 's/1/2/' tasks/reward.py") is None
    assert "outside the surface" in (run(tree / "c001", "sed -i 's/1/2/' lib.py") or "")


def test_a_study_that_a_candidate_made_up_in_its_worktree_opens_nothing(project: Path) -> None:
    tree = project / ".rlx/tasks/trot/studies/s1/worktrees/c001"
    govern(tree, {**VIEW, "approved": False})
    assert edit(tree, tree / "lib.py") is not None
    assert run(tree, "python scripts/train.py") is not None


def test_the_project_itself_takes_notes_and_new_files_only(project: Path) -> None:
    assert "rlx propose" in (edit(project, project / "tasks/reward.py") or "")
    assert "protected" in (edit(project, project / "evals/success.py") or "")
    assert "outside the surface" in (edit(project, "lib.py") or "")
    assert "own record" in (edit(project, ".rlx/tasks/trot/studies/s1/contract.yaml") or "")
    assert edit(project, "README.md") is None
    assert edit(project, "candidate.json") is None
    assert edit(project, "analysis_of_c001.py") is None
    assert edit(project, "/tmp/elsewhere.py") is None


@pytest.mark.parametrize(
    ("tool", "given", "is_denied"),
    [
        ("mcp__fs__write_file", {"path": "evals/success.py", "content": ""}, True),
        ("mcp__fs__move_file", {"source": "README.md", "destination": "evals/success.py"}, True),
        ("mcp__fs__read_file", {"path": "evals/success.py"}, False),
        ("mcp__fs__write_file", {"path": "NOTES.md", "content": ""}, False),
        ("mcp__shell__run", {"command": "python scripts/train.py"}, True),
        ("mcp__shell__run", {"command": "ls"}, False),
        ("mcp__plugin_rlx_rlx__check", {"candidate": "c001"}, False),
        ("NotebookEdit", {"notebook_path": "evals/a.ipynb"}, True),
        ("Read", {"file_path": "evals/success.py"}, False),
    ],
)
def test_tools_of_other_servers_are_judged_by_what_they_say(
    project: Path, tool: str, given: dict[str, str], is_denied: bool
) -> None:
    assert (reason(ask(project, tool, given)) is not None) is is_denied


def test_a_session_in_a_linked_folder_is_in_the_study(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project)
    assert "rlx launch" in (run(tmp_path / "link", "python scripts/train.py") or "")
    assert "protected" in (run(tmp_path / "link", "rm evals/success.py") or "")
    assert "rlx launch" in (run(tmp_path, "python link/scripts/train.py") or "")


def test_a_link_leads_to_where_it_points(project: Path) -> None:
    (project / "notes.md").symlink_to(project / "evals/success.py")
    assert "protected" in (edit(project, "notes.md") or "")


def test_every_file_of_a_codex_patch_is_judged(project: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: README.md\n@@\n-a\n+b\n*** Update File: evals/success.py\n*** End Patch"
    assert "protected" in (reason(ask(project, "apply_patch", {"command": patch})) or "")
    moved = "*** Begin Patch\n*** Update File: README.md\n*** Move to: scripts/eval.py\n*** End Patch"
    assert "protected" in (reason(ask(project, "apply_patch", {"command": moved})) or "")
    fine = "*** Begin Patch\n*** Add File: candidate.json\n+{}\n*** End Patch"
    assert reason(ask(project, "apply_patch", {"command": fine})) is None


def test_a_study_is_found_from_elsewhere(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert "protected" in (edit(other, project / "evals/success.py") or "")
    assert "rlx launch" in (run(other, f"cd '{project}' && python scripts/train.py") or "")
    assert "rlx launch" in (run(other, f"python '{project}/scripts/train.py'") or "")


def test_a_study_below_the_session_is_found_by_the_edited_file(project: Path) -> None:
    above = project.parent
    assert "protected" in (edit(above, project / "evals/success.py") or "")
    assert "rlx launch" in (run(above, "cd 'a project' && python scripts/train.py") or "")
    assert edit(above, project / "README.md") is None
    long = {"content": "x" * 30_000, "file_path": str(project / "evals/success.py")}
    assert "protected" in (reason(ask(above, "Write", long)) or "")
    odd = project / 'evals/a "quoted" é.py'
    assert "protected" in (edit(above, odd) or "")


@pytest.mark.parametrize("view", [{**VIEW, "approved": False}, {**VIEW, "expires": 1.0}])
def test_silent_where_nothing_is_approved(project: Path, view: dict[str, Any]) -> None:
    govern(project, view)
    assert run(project, "python scripts/train.py") is None
    assert edit(project, "evals/success.py") is None


def test_silent_in_other_repositories(tmp_path: Path) -> None:
    assert run(tmp_path, "python scripts/train.py") is None
    assert edit(tmp_path, "train.py") is None
    assert run(tmp_path, "rlx study approve s1") is None
    (tmp_path / ".rlx").mkdir()
    (tmp_path / ".rlx/active.json").write_text('{"task": "t", "study": "s"}')
    assert run(tmp_path, "python train.py") is None


def test_a_crash_is_closed_inside_a_study_and_silent_outside(project: Path, tmp_path: Path) -> None:
    govern(project, "{ not JSON")
    assert "rlx doctor" in (run(project, "ls") or "")
    assert "rlx doctor" in (edit(project, "README.md") or "")
    for text in ("not JSON: train", "[]"):
        done = subprocess.run(["/bin/sh", str(GATE)], input=text, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    govern(project, VIEW)
    done = subprocess.run(["/bin/sh", str(GATE)], input="{ torn", cwd=project, capture_output=True, text=True)
    assert "rlx doctor" in (reason(done) or "")


def test_a_view_that_is_gone_is_closed_where_the_ledger_has_an_approval(project: Path) -> None:
    study = project / ".rlx/tasks/trot/studies/s1"
    (study / "hook.json").unlink()
    assert run(project, "python scripts/train.py") is None  # a study that nobody has approved yet
    row = {"prev": "0", "body": json.dumps({"id": "a", "time": 1.0, "event": "approved"}), "hash": "0"}
    (study / "ledger.jsonl").write_text(json.dumps(row) + "\n")
    assert "rlx study use s1" in (run(project, "ls") or "")
    assert "rlx study use s1" in (edit(project, "README.md") or "")


@pytest.mark.parametrize("content", ["", "[]", "null", "{}", '{"task": 3, "study": ["x"]}', "\x00"])
def test_an_active_study_that_cannot_be_read_never_crashes_the_hook(project: Path, content: str) -> None:
    (project / ".rlx/active.json").write_text(content)
    denial = run(project, "python scripts/train.py")
    assert denial is None or "rlx doctor" in denial


def test_without_an_interpreter_it_blocks_only_inside_a_study(project: Path, tmp_path: Path) -> None:
    """A copy of the hook whose Python file is gone stands for a machine on which none runs."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "gate.sh").write_bytes(GATE.read_bytes())
    ledger = project / ".rlx/tasks/trot/studies/s1/ledger.jsonl"
    call = json.dumps({"cwd": str(project), "tool_name": "Bash", "tool_input": {"command": "ls train"}})
    for here, code in ((project, 2), (tmp_path, 0)):
        done = subprocess.run(["/bin/sh", str(hooks / "gate.sh")], input=call, cwd=here, capture_output=True, text=True)
        assert done.returncode == code
    ledger.write_text('{"body":"{\\"event\\":\\"approved\\"}"}\n')
    for view, code in (({**VIEW, "approved": False}, 0), (None, 2)):
        (ledger.parent / "hook.json").unlink() if view is None else govern(project, view)
        done = subprocess.run(
            ["/bin/sh", str(hooks / "gate.sh")], input=call, cwd=project, capture_output=True, text=True
        )
        assert done.returncode == code


def test_the_hook_uses_the_standard_library_only() -> None:
    import ast

    known = {"__future__", "json", "os", "re", "sys", "time", "fnmatch", "glob", "shlex", "typing", "collections.abc"}
    for name in ("gate.py", "shell_line.py"):
        tree = ast.parse((GATE.parent / name).read_text())
        imported = {
            (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name)
            for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))
        }  # fmt: skip
        assert imported <= {*known, "shell_line"}


def test_the_hook_leaves_no_compiled_files_beside_itself(project: Path, tmp_path: Path) -> None:
    """Codex keeps a hash of what its user trusted."""
    import shutil

    copy = tmp_path / "hooks"
    shutil.copytree(GATE.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(copy.iterdir())
    call = json.dumps({"cwd": str(project), "tool_name": "Bash", "tool_input": {"command": "ls"}})
    subprocess.run(["/bin/sh", str(copy / "gate.sh")], input=call, cwd=project, text=True, check=True)
    assert sorted(copy.iterdir()) == before
