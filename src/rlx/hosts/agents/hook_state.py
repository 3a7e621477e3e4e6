"""Whether the plug-in's hook is active in Claude Code and Codex, read from their own settings.

rlx cannot see settings that an organisation enforces elsewhere, hosts that run as another user, or whether Codex still
trusts the hook after a change (it compares the hash itself, and `/hooks` shows it).
"""

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.hosts.agents.install import codex_home

PLUGIN = "rlx@"
CODEX_HOOK = ":hooks/hooks.json:pre_tool_use:"


@dataclass(frozen=True)
class HookState:
    """The state of the hook in one host; `hint` says how to activate it."""

    host: str
    is_live: bool
    says: str
    hint: str = "rlx skills list prints the commands that install the plug-in"


def states(root: Path) -> list[HookState]:
    """Return the state in both hosts, for a session in this project."""
    return [claude(root), codex()]


def claude(root: Path) -> HookState:
    """Read the user's, the project's and the local settings; later ones override earlier ones."""
    home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    layers = [_settings(home / "settings.json")]
    layers += [_settings(root / ".claude" / name) for name in ("settings.json", "settings.local.json")]
    enabled = {name: value for layer in layers for name, value in _table(layer, "enabledPlugins").items()}
    is_off = next((layer["disableAllHooks"] for layer in reversed(layers) if "disableAllHooks" in layer), False)
    if not any(name.startswith(PLUGIN) and value is True for name, value in enabled.items()):
        return HookState("Claude Code", False, "the plug-in is not installed or not enabled")
    if is_off is True:
        return HookState("Claude Code", False, "hooks are disabled", "remove disableAllHooks from settings.json")
    return HookState("Claude Code", True, "live")


def codex() -> HookState:
    """Read config.toml: the plug-in has to be enabled and its hook trusted."""
    config = _settings(codex_home() / "config.toml")
    plugins = [settings for name, settings in _table(config, "plugins").items() if name.startswith(PLUGIN)]
    if not any(isinstance(settings, dict) and settings.get("enabled") is True for settings in plugins):
        return HookState("Codex", False, "the plug-in is not installed or not enabled")
    trusted = _table(_table(config, "hooks"), "state")
    hooks = [state for name, state in trusted.items() if name.startswith(PLUGIN) and CODEX_HOOK in name]
    if not any(isinstance(state, dict) and state.get("trusted_hash") for state in hooks):
        return HookState("Codex", False, "not trusted, so Codex skips it silently", "in Codex: /hooks, trust rlx")
    return HookState("Codex", True, "live, trusted (after an update trust it again)")


def _table(document: dict[str, Any], key: str) -> dict[str, Any]:
    table = document.get(key)
    return table if isinstance(table, dict) else {}


def _settings(path: Path) -> dict[str, Any]:
    parse = tomllib.loads if path.suffix == ".toml" else json.loads
    try:
        return _table({"": parse(path.read_text(encoding="utf-8"))}, "")
    except (OSError, ValueError):
        return {}
