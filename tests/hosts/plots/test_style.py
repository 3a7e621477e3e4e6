from __future__ import annotations

from pathlib import Path

import pytest

from rlx.errors import UsageError
from rlx.hosts.plots import style


def test_thirty_two_runs_are_told_apart_and_eight_without_colour() -> None:
    assert len({tuple(style.style(number).items()) for number in range(32)}) == 32
    assert len({style.mark(number) for number in range(8)}) == 8


def test_a_page_grows_with_its_legend() -> None:
    assert style.height_for(1) == style.HEIGHT
    assert style.height_for(12) > style.height_for(4) > style.HEIGHT


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    figure, _ = style.blank()
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UsageError, match=r"cannot write .*folder.png: Is a directory"):
        style.save(figure, tmp_path / "folder.png")


def test_a_failed_picture_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "p.png"
    out.write_bytes(b"old")
    figure, _ = style.blank()
    monkeypatch.setattr(figure, "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        style.save(figure, out)
    assert [path.name for path in tmp_path.iterdir()] == ["p.png"]
    assert out.read_bytes() == b"old"
