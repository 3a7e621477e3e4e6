"""`rlx skills`: install, list, check, uninstall."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    (tmp_path / "rlx.toml").touch()
    return tmp_path / "home"


def test_installs_into_the_project_by_default_and_says_what_is_next(cli: Cli, tmp_path: Path) -> None:
    done = cli("skills", "install")
    assert done.code == 0
    assert "written: .claude/skills/rl-experiment/SKILL.md" in done.out
    assert done.out.endswith("next: rlx skills check\n")
    assert (tmp_path / ".agents/skills/rl-experiment/SKILL.md").is_file()
    assert cli("skills", "check").code == 0
    assert [place["changes"] for place in cli("skills", "install", "all", "--json").data["places"]] == [0, 0]


def test_a_dry_run_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    done = cli("skills", "install", "claude", "--dry-run")
    assert "dry run: nothing was changed" in done.out
    assert not (tmp_path / ".claude").exists()


def test_the_home_is_asked_for(cli: Cli, tmp_path: Path, home: Path) -> None:
    assert cli("skills", "install", "codex", "--user").code == 0
    assert (home / ".agents/skills/rl-audit/SKILL.md").is_file()
    assert (home / ".codex/AGENTS.md").is_file()
    assert not (tmp_path / ".agents").exists()
    assert cli("skills", "uninstall", "codex", "--user").code == 0
    assert not (home / ".agents").exists()


def test_check_names_what_is_old_and_how_to_mend_it(cli: Cli, tmp_path: Path) -> None:
    assert "nothing is installed" in cli("skills", "check").out
    cli("skills", "install", "claude")
    (tmp_path / ".claude/skills/rl-audit/SKILL.md").unlink()
    done = cli("skills", "check")
    assert done.code == 1
    assert "missing: .claude/skills/rl-audit/SKILL.md" in done.out
    assert done.out.endswith("next: rlx skills install claude\n")


def test_list_names_skills_and_the_plugins_own_commands(cli: Cli) -> None:
    data = cli("skills", "list", "--json").data
    assert {"rl-experiment", "rl-study-loop"} <= {one["name"] for one in data["skills"]}
    assert data["plugin"]["claude"][1] == "claude plugin install rlx@rlx"
    assert "claude plugin marketplace add" in cli("skills", "list").out


def test_docs_lists_topics_prints_one_and_knows_what_was_meant(cli: Cli) -> None:
    assert "contract" in cli("docs").out
    assert cli("docs", "contract").out.startswith("# The contract")
    assert cli("docs", "rl-reward", "--json").data["skill"] == "rl-reward"
    wrong = cli("docs", "contrakt")
    assert wrong.code == 3
    assert "rlx docs contract" in wrong.err


@pytest.mark.parametrize("kind", ["config", "task", "contract", "candidate"])
def test_schema_prints_a_json_schema(cli: Cli, kind: str) -> None:
    document = cli("schema", kind).data
    assert document["$schema"].startswith("https://json-schema.org/")
    assert document["properties"]
    assert cli("schema", kind, "--json").data["json_schema"] == document
