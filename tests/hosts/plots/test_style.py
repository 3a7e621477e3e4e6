from __future__ import annotations

from pathlib import Path

import matplotlib
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


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_picture_never_starts_latex_even_if_the_current_folder_asks_for_it(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.check_output", lambda *words, **_: pytest.fail(f"started {words}"))
    monkeypatch.setattr("matplotlib.texmanager.TexManager._texcache", str(tmp_path / "cache"), raising=False)
    with matplotlib.rc_context({"text.usetex": True, "text.latex.preamble": r"\openout"}):
        figure, panels = style.blank()
        panels[0].plot([0, 1], [0, 1], label="a run")
        panels[0].set_title("a metric that no cache has seen")
        style.legend(figure, count=1)
        style.save(figure, tmp_path / f"p.{ending}")
    assert (tmp_path / f"p.{ending}").stat().st_size > 0
