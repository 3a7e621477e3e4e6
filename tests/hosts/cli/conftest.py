"""The command line inside this process: faster than a new one, same code from `call` on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.cli.main import call


@dataclass(frozen=True)
class Answer:
    """What a command printed and the code it ended with."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Return a function that runs an `rlx` command in `tmp_path`."""
    monkeypatch.delenv("RLX_ROOT", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> Answer:
        capsys.readouterr()
        try:
            code = call(list(argv))
        except SystemExit as end:  # argparse's own --help
            code = int(end.code or 0)
        printed = capsys.readouterr()
        return Answer(code, printed.out, printed.err)

    return run
