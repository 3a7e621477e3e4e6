"""Whether the plug-in's hook is live in Claude Code and Codex, read from their own settings.

What is not covered: settings that an organisation enforces elsewhere, hosts that run as another user, and whether
Codex still calls a trusted hook unmodified (it compares the hash itself, and `/hooks` shows it).
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.hosts.install import codex_home

PLUGIN = "rlx@"
CODEX_HOOK = ":hooks/hooks.json:pre_tool_use:"


@dataclass(frozen=True)
class HookState:
    """What one host does with the hook; `hint` is how it becomes live."""

    host: str
    is_live: bool
    says: str
    hint: str = "rlx skills list prints the commands that install the plug-in"


def states(root: Path) -> list[HookState]:
    """Return the state in both hosts, for a session that is started in a project."""
    return [claude(root), codex()]


def claude(root: Path) -> HookState:
    """Read the user's, the project's and the local settings; the later ones win."""
    home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    layers = [_json(home / "settings.json")]
    layers += [_json(root / ".claude" / name) for name in ("settings.json", "settings.local.json")]
    enabled = {name: value for layer in layers for name, value in _table(layer, "enabledPlugins").items()}
    is_off = next((layer["disableAllHooks"] for layer in reversed(layers) if "disableAllHooks" in layer), False)
    if not any(name.startswith(PLUGIN) and value is True for name, value in enabled.items()):
        return HookState("Claude Code", False, "the plug-in is not installed or not enabled")
    if is_off is True:
        return HookState("Claude Code", False, "hooks are switched off", "remove disableAllHooks from settings.json")
    return HookState("Claude Code", True, "live")


def codex() -> HookState:
    """Read config.toml: the plug-in is enabled, and somebody trusted its hook."""
    config = _toml(codex_home() / "config.toml")
    plugins = {name: one for name, one in _table(config, "plugins").items() if name.startswith(PLUGIN)}
    if not any(isinstance(one, dict) and one.get("enabled") is True for one in plugins.values()):
        return HookState("Codex", False, "the plug-in is not installed or not enabled")
    trusted = _table(_table(config, "hooks"), "state")
    mine = [one for name, one in trusted.items() if name.startswith(PLUGIN) and CODEX_HOOK in name]
    if not any(isinstance(one, dict) and one.get("trusted_hash") for one in mine):
        return HookState("Codex", False, "not trusted, so Codex skips it in silence", "in Codex: /hooks, trust rlx")
    return HookState("Codex", True, "live, trusted (after an update trust it again)")


def _table(document: dict[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
