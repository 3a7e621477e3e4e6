"""A result that another program wrote is believed as numbers, or not at all."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from rlx.config.schema import Source
from rlx.errors import EvidenceInvalid
from rlx.evaluate.command.result_file import read_result


def read(tmp_path: Path, content: object, **names: str) -> tuple[dict[str, float], list[dict[str, object]]]:
    (tmp_path / "result.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return read_result(tmp_path / "result.json", names=names, episodes=2)


def test_figures_are_read_by_their_names(tmp_path: Path) -> None:
    figures, rows = read(
        tmp_path, {"success": 0.5, "note": "text", "flag": True, "figures": {"x": 1}}, success_rate="success"
    )
    assert figures == {"success": 0.5, "x": 1.0, "success_rate": 0.5}
    assert rows == []


def test_a_whole_number_that_no_float_holds_is_infinite(tmp_path: Path) -> None:
    figures, _ = read(tmp_path, {"mean": 10**400, "least": -(10**400)})
    assert figures == {"mean": math.inf, "least": -math.inf}


def test_figures_of_episodes_are_worked_out_and_not_believed(tmp_path: Path) -> None:
    figures, rows = read(
        tmp_path, {"mean": 1e6, "episodes": [1.0, {"return": 3.0, "success": True, "seed": 4, "x": [1]}]}
    )
    assert (figures["mean"], figures["return"], figures["success_rate"]) == (2.0, 2.0, 1.0)
    assert "length_mean" not in figures
    assert rows == [{"return": 1.0}, {"seed": 4, "return": 3.0, "success": True}]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "not JSON"),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "not JSON"),
        ({"episodes": [1.0]}, "has 1 episodes instead of 2"),
        ({"episodes": [1.0, "2"]}, "episode 1 of the result has no `return`"),
        ('{"episodes": [1.0, NaN]}', "episode 1 of the result has nan as `return`"),
        ({"episodes": [1.0, -(10**400)]}, "episode 1 of the result has -inf as `return`"),
        ({"episodes": [1.0, {"height": 10**400}]}, "episode 1 of the result has inf as `height`"),
    ],
)
def test_anything_else_is_invalid(tmp_path: Path, content: object, says: str) -> None:
    with pytest.raises(EvidenceInvalid, match=says):
        read(tmp_path, content)


def test_json_lines_are_episodes_and_count_by_their_mean(tmp_path: Path) -> None:
    figures, rows = read(
        tmp_path, '{"episode": 0, "success": true, "x": 1}\n{"episode": 1, "success": false, "x": 2}\n', rate="success"
    )
    assert figures == {"success": 0.5, "x": 1.5, "rate": 0.5}
    assert rows == [{"episode": 0, "success": True, "x": 1}, {"episode": 1, "success": False, "x": 2}]
    assert read(tmp_path, '{"score": 1}\n{"score": 3}\n')[0] == {"score": 2.0}


def test_a_line_of_figures_beside_lines_of_episodes_is_no_episode(tmp_path: Path) -> None:
    figures, rows = read(tmp_path, '{"episode": 0, "x": 1}\n{"episode": 1, "x": 2}\n{"x": 9, "score": 3}\n')
    assert figures == {"x": 1.5, "score": 3.0}
    assert len(rows) == 2


@pytest.mark.parametrize("content", ['{"x": 1}\n{"x": 2}\n{"x": 3}\n', '{"episode": 0, "x": 1}\n{"x": 1}\n'])
def test_other_than_the_episodes_asked_for_are_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(EvidenceInvalid, match="instead of 2"):
        read(tmp_path, content)


def of_source(tmp_path: Path, text: str, printed: str = "", **source: object) -> dict[str, float]:
    (tmp_path / "result").write_text(text)
    return read_result(
        tmp_path / "result", names={"mean": "reward"}, episodes=2, source=Source.model_validate(source), printed=printed
    )[0]


def test_a_table_and_printed_lines_are_read_too(tmp_path: Path) -> None:
    assert of_source(tmp_path, "reward,note\n2.5,b\n", reader="csv") == {"reward": 2.5, "mean": 2.5}
    assert of_source(tmp_path, "reward,note\n1.5,a\n2.5,b\n", reader="csv") == {"reward": 2.0, "mean": 2.0}
    printed = "loading\nreward: 4.5  length=12\nstep=1\nstep=2\n\x1b[32mreward: 4.5\x1b[0m\n"
    assert of_source(tmp_path, "", printed, reader="stdout") == {"reward": 4.5, "length": 12.0, "mean": 4.5}
    pattern = r"mean reward (?P<reward>[-\d.]+)"
    assert of_source(tmp_path, "", "mean reward -7.5 +/- 1", reader="stdout", pattern=pattern)["mean"] == -7.5
    assert of_source(tmp_path, "", "nothing", reader="stdout") == {}


@pytest.mark.parametrize("pattern", [None, r"reward:? (?P<reward>[-\d.]+)"])
def test_printed_figures_with_several_values_are_refused_with_their_lines(tmp_path: Path, pattern: str | None) -> None:
    printed = "episode 1\nreward: 3.5\nepisode 2\nreward: 4.5\n"
    with pytest.raises(EvidenceInvalid) as raised:
        of_source(tmp_path, "", printed, reader="stdout", pattern=pattern)
    assert "2 different values of `reward` (line 2: reward: 3.5; line 4: reward: 4.5)" in raised.value.message
    once = "reward: 3.5 (episode)\nreward: 4.5\n"
    assert of_source(tmp_path, "", once, reader="stdout", pattern=r"^reward: (?P<reward>[-\d.]+)$")["reward"] == 4.5


def test_a_command_that_chooses_its_episodes_may_play_any_number(tmp_path: Path) -> None:
    (tmp_path / "result").write_text('{"x": 1}\n{"x": 2}\n{"x": 3}\n')
    figures, rows = read_result(tmp_path / "result", names={}, episodes=None)
    assert (figures, len(rows)) == ({"x": 2.0}, 3)


def test_tensorboard_figures_are_read_and_links_in_their_folder_refused(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(str(tmp_path / "logs")) as writer:
        for step, value in enumerate((1.0, 2.0)):
            writer.add_scalar("reward", value, step)
    source = Source(reader="tensorboard")
    assert read_result(tmp_path / "logs", names={}, episodes=2, source=source)[0] == {"reward": 2.0}
    (tmp_path / "logs" / "link").symlink_to("/etc/passwd")
    with pytest.raises(EvidenceInvalid, match="link, which is not a file"):
        read_result(tmp_path / "logs", names={}, episodes=2, source=source)


def test_links_pipes_and_nothing_are_no_result(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    with pytest.raises(EvidenceInvalid, match="wrote no result"):
        read_result(path, names={}, episodes=2)
    (tmp_path / "other").write_text("{}")
    path.symlink_to(tmp_path / "other")
    with pytest.raises(EvidenceInvalid, match="cannot be opened"):
        read_result(path, names={}, episodes=2)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(EvidenceInvalid, match="is not a file"):
        read_result(path, names={}, episodes=2)
