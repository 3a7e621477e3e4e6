"""The manifests of the plug-in for every host, from one version and one description; `make docs` writes them."""

import json
import re
from pathlib import Path
from typing import Any

NAME = "rlx"
PACKAGED = "src/rlx/hosts"
PLUGIN = f"{PACKAGED}/plugin"
AUTHOR = {"name": "rlx authors"}
SUMMARY = "Reinforcement-learning experiments that count: governed studies, verdicts with evidence, diagnosis, rewards."
LONG = (
    "Skills, an MCP server and a hook for RL experiments: set up a study with a contract that a person approves, "
    "propose bounded changes, train with one audited command, let the tool decide. Needs rlx installed."
)
_VERSION_LINE = re.compile(r'^(  version: ")[^"]*(")$', flags=re.M)


def manifests(version: str) -> dict[str, dict[str, Any]]:
    """Return every manifest as {path in the repository: document}."""
    own = {"name": NAME, "version": version, "description": SUMMARY, "author": AUTHOR, "license": "Apache-2.0"}
    return {
        ".claude-plugin/marketplace.json": _claude_marketplace(f"./{PLUGIN}"),
        ".agents/plugins/marketplace.json": _codex_marketplace(f"./{PLUGIN}"),
        f"{PACKAGED}/.claude-plugin/marketplace.json": _claude_marketplace("./plugin"),
        f"{PACKAGED}/.agents/plugins/marketplace.json": _codex_marketplace("./plugin"),
        f"{PLUGIN}/.claude-plugin/plugin.json": own,
        f"{PLUGIN}/.codex-plugin/plugin.json": {
            **own,
            "skills": "./skills/",
            "mcpServers": "./.mcp.json",
            "interface": _codex_interface(),
        },
        f"{PLUGIN}/.mcp.json": {"mcpServers": {NAME: {"command": "rlx", "args": ["mcp"]}}},
    }


def _claude_marketplace(source: str) -> dict[str, Any]:
    plugin = {"name": NAME, "source": source, "description": SUMMARY, "category": "development"}
    return {"name": NAME, "description": SUMMARY, "owner": AUTHOR, "plugins": [plugin]}


def _codex_marketplace(path: str) -> dict[str, Any]:
    plugin = {
        "name": NAME,
        "source": {"source": "local", "path": path},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Developer Tools",
    }
    return {"name": NAME, "interface": {"displayName": NAME}, "plugins": [plugin]}


def _codex_interface() -> dict[str, Any]:
    return {
        "displayName": NAME,
        "shortDescription": "RL experiments that count",
        "longDescription": LONG,
        "developerName": AUTHOR["name"],
        "category": "Developer Tools",
        "capabilities": ["Interactive", "Write"],
        "defaultPrompt": ["Audit this RL repository. Do not train.", "What does `rlx next` say we should do?"],
    }


def files(root: Path, version: str) -> dict[str, str]:
    """Return the text of every manifest, and of every skill with its current version."""
    texts = {path: json.dumps(document, indent=2) + "\n" for path, document in manifests(version).items()}
    for skill in sorted((root / PLUGIN / "skills").glob("*/SKILL.md")):
        text = skill.read_text(encoding="utf-8")
        texts[skill.relative_to(root).as_posix()] = _VERSION_LINE.sub(rf"\g<1>{version}\g<2>", text, count=1)
    return texts
