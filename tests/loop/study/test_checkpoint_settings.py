"""What checkpoints that are folders say beside weights, told of files and in a study whose evaluation reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlx.loop.study.evidence_checks import differing, said
from tests.loop.mill import Mill

TRAIN = """\
import json, pathlib, sys

seed, out = int(sys.argv[1]), pathlib.Path(sys.argv[2])
told = dict(one.split("=", 1) for one in sys.argv[3:])
with open(out / "log.jsonl", "a") as log:
    log.write(json.dumps({"step": 10, "loss": 1.0}) + "\\n")
(out / "policy").mkdir()
(out / "policy" / "weights.bin").write_bytes(b"\\0%d" % seed)
settings = {"seed": seed, "out": str(out), "task": {"heat": float(told.get("heat", "0"))},
            "gain": float(told.get("gain", "0"))}
(out / "policy" / "config.json").write_text(json.dumps(settings))
"""
EVAL = """\
import json, pathlib, sys

checkpoint, result, _ = sys.argv[1:]
settings = json.loads((pathlib.Path(checkpoint) / "config.json").read_text())
success = settings["task"]["heat"] + settings["gain"] + settings["seed"] * 37 % 11 / 10
pathlib.Path(result).write_text(json.dumps({"success": success, "heat": 0.0}))
"""


@pytest.fixture(scope="module")
def mill(tmp_path_factory: pytest.TempPathFactory) -> Mill:
    """Return a study whose checkpoints are folders, and whose task says that `gain` is about learning."""
    learning = "surfaces.hyperparameters.keys=[gain]"
    made = Mill.built(tmp_path_factory.mktemp("folder") / "mill", programs=(TRAIN, EVAL), describes=(learning,))
    made.types("study", "baseline")
    return made


def test_a_candidate_that_shapes_what_the_evaluation_reads_out_of_its_checkpoint_is_no_evidence(mill: Mill) -> None:
    identity = mill.proposes(heat=9)
    mill.trains(identity)
    judged = mill.types("decide", identity)
    assert (judged["verdict"], judged["decision"]) == ("invalid", "debug")
    (says,) = judged["objections"]
    assert says.startswith(f"the checkpoints of {identity} differ from those of baseline")
    assert "config.json (task.heat); let the checkpoint be the weights' file alone" in says
    mill.types("study", "report")
    assert "config.json (task.heat)" in mill.study.report_path.read_text()


def test_settings_about_learning_are_named_beside_the_verdict(mill: Mill) -> None:
    identity = mill.proposes(gain=9)
    mill.trains(identity)
    judged = mill.types("verdict", identity)
    assert judged["objections"] == []
    (says,) = [one for one in judged["notes"] if "the eval command may read them" in one]
    assert says.endswith("config.json (gain)")


def test_a_claim_names_the_settings_that_its_checkpoints_differ_in(mill: Mill) -> None:
    mill.types("study", "loop")
    run = str(mill.types("launch", "baseline", "--phase", "confirmation")["run"])
    mill.types("wait", run, "--timeout", "120")
    mill.types("study", "loop")
    (claim,) = [one for one in mill.study.state().decisions if one.get("test") == "claim"]
    assert any(one.endswith("config.json (gain)") for one in claim["notes"])


def folder(root: Path, name: str, **files: str) -> Path:
    """Return a checkpoint of text files; two underscores stand for a dot."""
    for file, text in files.items():
        path = root / name / file.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / name


def test_what_differs_between_seeds_of_a_side_is_not_the_candidates(tmp_path: Path) -> None:
    ours = [folder(tmp_path, f"b{seed}", args__yaml=f"seed: {seed}\nat: {seed}.5\nrate: 1\n") for seed in range(2)]
    theirs = [folder(tmp_path, f"c{seed}", args__yaml=f"seed: {seed}\nat: {seed}.7\nrate: 2\n") for seed in range(2)]
    told = ([said(one, root=tmp_path / "project") for one in side] for side in (ours, theirs))
    assert differing(*told) == [("args.yaml", "rate")]


@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        ({"robot__urdf": "<mass>1</mass>"}, {"robot__urdf": "<mass>2</mass>"}, [("robot.urdf", "")]),
        ({"env__toml": "[a]\nb = 1\n"}, {"env__toml": "[a]\nb = 1\nc = 2\n"}, [("env.toml", "a.c")]),
        ({"o__yaml": "- a=1\n- b.c=2\n"}, {"o__yaml": "- a=1\n- b.c=3\n"}, [("o.yaml", "b.c")]),
        ({"log_1__txt": "at /p/runs/b\n"}, {"log_2__txt": "at /p/runs/c\n"}, []),
        ({"a__json": json.dumps({"in": "/p/runs/b"})}, {"a__json": json.dumps({"in": "/p/runs/c"})}, []),
        (
            {"a__json": json.dumps({"map": "/p/a.xml"})},
            {"a__json": json.dumps({"map": "/p/b.xml"})},
            [("a.json", "map")],
        ),
        ({"a__pt": "\0one"}, {"a__pt": "\0two"}, []),
    ],
)
def test_settings_and_texts_are_compared_and_weights_and_places_are_not(
    tmp_path: Path, ours: dict[str, str], theirs: dict[str, str], found: list[tuple[str, str]]
) -> None:
    sides = [[said(folder(tmp_path, name, **files), root=Path("/p"))] for name, files in (("b", ours), ("c", theirs))]
    assert differing(*sides) == found


def test_a_file_that_nests_without_end_is_compared_as_text(tmp_path: Path) -> None:
    ours, theirs = (said(folder(tmp_path, f"f{deep}", a__json="[" * deep), root=Path("/p")) for deep in (1000, 90_000))
    assert differing([ours], [theirs]) == [("a.json", "")]


def test_a_checkpoint_that_is_one_file_says_nothing_of_itself(tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text("{}")
    assert said(tmp_path / "policy.json", root=tmp_path) == {}
