"""Hundreds of small run folders, made without waiting for the disk or reading every package's metadata again."""

from __future__ import annotations

import os

import pytest

from rlx.runs import provenance

VERSIONS = provenance.versions()


@pytest.fixture(autouse=True)
def cheap_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Durability and provenance are tested where they are made (tests/runs)."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(provenance, "versions", lambda: VERSIONS)
