"""Whether the hook is live, as the hosts' own settings have it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlx.hosts.agents import hook_state


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def put(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def test_nothing_is_live_where_nothing_is_installed(tmp_path: Path) -> None:
    assert [state.is_live for state in hook_state.states(tmp_path)] == [False, False]


def test_claude_code_is_live_where_the_plugin_is_enabled_and_hooks_are_not_off(tmp_path: Path, home: Path) -> None:
    put(home / ".claude/settings.json", {"enabledPlugins": {"rlx@rlx": True}})
    assert hook_state.claude(tmp_path).is_live
    put(tmp_path / ".claude/settings.json", {"disableAllHooks": True})
    assert not hook_state.claude(tmp_path).is_live
    put(tmp_path / ".claude/settings.local.json", {"disableAllHooks": False, "enabledPlugins": {"rlx@rlx": False}})
    assert not hook_state.claude(tmp_path).is_live


def test_codex_is_live_only_where_somebody_trusted_the_hook(tmp_path: Path, home: Path) -> None:
    enabled = '[plugins."rlx@rlx"]\nenabled = true\n'
    put(home / ".codex/config.toml", enabled)
    state = hook_state.codex()
    assert not state.is_live
    assert "/hooks" in state.hint
    trusted = '[hooks.state."rlx@rlx:hooks/hooks.json:pre_tool_use:0:0"]\ntrusted_hash = "a"\n'
    put(home / ".codex/config.toml", enabled + trusted)
    assert hook_state.codex().is_live


@pytest.mark.parametrize("torn", ["{ torn", "[]", '{"enabledPlugins": 3}', "\x00"])
def test_settings_that_do_not_read_are_not_live(tmp_path: Path, home: Path, torn: str) -> None:
    put(home / ".claude/settings.json", torn)
    put(home / ".codex/config.toml", torn)
    assert [state.is_live for state in hook_state.states(tmp_path)] == [False, False]
