"""Manifests: one version, fresh, and nothing in them that a host rejects."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import rlx
from rlx.hosts.agents import manifests

ROOT = Path(__file__).parents[3]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def read(name: str) -> dict[str, object]:
    document: dict[str, object] = json.loads((ROOT / name).read_text())
    return document


def test_every_manifest_is_as_generated() -> None:
    stale = [name for name, text in manifests.files(ROOT, VERSION).items() if (ROOT / name).read_text() != text]
    assert stale == []


def test_there_is_one_version() -> None:
    assert rlx.__version__ == VERSION
    for host in ("claude", "codex"):
        assert read(f"{manifests.PLUGIN}/.{host}-plugin/plugin.json")["version"] == VERSION


def test_marketplaces_lead_to_the_plugin() -> None:
    for root in (ROOT, ROOT / manifests.PACKAGED):
        claude = json.loads((root / ".claude-plugin/marketplace.json").read_text())["plugins"][0]["source"]
        codex = json.loads((root / ".agents/plugins/marketplace.json").read_text())["plugins"][0]["source"]["path"]
        for source in (claude, codex):
            assert source.startswith("./")
            assert ".." not in source
            assert (root / source / ".mcp.json").is_file()


def test_codex_gets_no_hooks_key_and_no_root_manifest() -> None:
    codex = read(f"{manifests.PLUGIN}/.codex-plugin/plugin.json")
    assert "hooks" not in codex
    assert re.fullmatch(r"\d+\.\d+\.\d+", str(codex["version"]))
    assert not (ROOT / manifests.PLUGIN / "plugin.json").exists()


def test_the_version_in_a_skill_is_brought_up_to_date() -> None:
    texts = manifests.files(ROOT, "9.8.7")
    skills = {name: text for name, text in texts.items() if name.endswith("SKILL.md")}
    assert skills
    assert all('  version: "9.8.7"' in text for text in skills.values())
