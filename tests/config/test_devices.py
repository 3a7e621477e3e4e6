"""Devices are found without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rlx.config import devices


def test_there_is_always_a_cpu() -> None:
    assert "cpu" in devices.present()


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_hidden_gpus_are_not_there(monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    monkeypatch.setattr(devices, "_DRIVERS", ("/",))
    assert "cuda" in devices.present()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert "cuda" not in devices.present()


def test_looking_imports_no_torch() -> None:
    code = "import sys; from rlx.config.devices import present; present(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
