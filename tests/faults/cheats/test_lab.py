"""Cheats against a lab: each leaves the score as it was, or is refused, and is one row of the ledger."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from rlx import files
from rlx.errors import Refused
from rlx.evaluate.protocol import episode_seeds
from rlx.launch.study_jobs import launch_candidate
from rlx.loop.lab.attempt import Attempt, attempts
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.new_lab import LabWishes, approve_lab, new_lab
from rlx.loop.lab.try_attempt import LabIdea, try_attempt
from rlx.loop.study import baseline
from tests.faults.test_lab_driver import processes
from tests.loop.lab.lab_project import WRONG, press_lab

STEP = f"        reward = {WRONG}\n"
INFO = '{"is_success": action == 1}'


def quiet(_: str) -> None:
    """Say nothing."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A lab whose baseline is trained: it presses the wrong button and scores 0."""
    return press_lab(tmp_path_factory.mktemp("cheats"), ladder=((8, 2),))


def cheat(
    lab: Lab,
    folder: Path,
    edits: dict[str, tuple[str, str]],
    description: str,
    *,
    more: tuple[str, str] = ("", ""),
    deed: Callable[[Path], object] = lambda _: None,
) -> Attempt | list[str]:
    """Try a copy of the lab's files after some edits and a deed; return the attempt, or the codes of its refusal."""
    folder.mkdir(exist_ok=True)
    tree = folder / "tree"
    shutil.copytree(lab.root, tree, ignore=shutil.ignore_patterns(".git", ".rlx", "runs", "__pycache__"))
    for name, (before, after) in edits.items():
        text = (tree / name).read_text() if (tree / name).exists() else ""
        assert before in text
        (tree / name).parent.mkdir(exist_ok=True)
        assert more[0] in text
        (tree / name).write_text(text.replace(before, after).replace(*more) if before else after)
    deed(tree)
    rows = len(attempts(lab))
    try:
        return try_attempt(lab, tree, LabIdea(description), say=quiet)
    except Refused as refused:
        return [str(reason["code"]) for reason in refused.reasons]
    finally:
        assert len(attempts(lab)) == rows + 1, "one row each"
        assert attempts(lab)[-1].description == description
        assert lab.study.state().head == "baseline"


STATIC = {
    "a longer training": ({"candidate/train.py": ('"name": "ppo"', '"name": "ppo", "total_timesteps": 999')}, "SCOPE"),
    "another evaluation": ({"candidate/train.py": ('"env": {}', '"env": {}, "eval": {"episodes": 5}')}, "SCOPE"),
    "a chosen seed": ({"candidate/train.py": ('"env": {}', '"env": {}, "seed": 7')}, "SCOPE"),
    "another training env": ({"candidate/train.py": ('"env": {}', '"env": {"id": "evaluator/env.py:Task"}')},
                             "SCOPE EVALUATOR"),
    "a changed mission": ({"program.md": ("Mission", "No mission")}, "SCOPE"),
    "changed rules": ({"lab.yaml": ("train_episodes: 8", "train_episodes: 80")}, "SCOPE"),
    "a changed rung": ({"evaluator/rungs/8x2.yaml": ("total_timesteps: 256", "total_timesteps: 9999")}, "SCOPE"),
    "a changed evaluator": ({"evaluator/env.py": ("1.0 * action", "1e6")}, "SCOPE"),
    "a result file": ({"results.tsv": ("", "score\n1000000\n")}, "SCOPE"),
    "a module that shadows another": ({"numpy.py": ("", "x = 1\n")}, "SCOPE"),
    "importing the evaluator from train.py": ({"candidate/train.py": ("TRAINING", "import evaluator.env\nTRAINING")},
                                              "EVALUATOR"),
    "importing the evaluator from env.py": ({"candidate/env.py": ("import numpy", "import evaluator\nimport numpy")},
                                            "EVALUATOR"),
    "a network above the cap": ({"candidate/train.py": ("[8]", "[2048, 2048]")}, "SIZE"),
    "one layer above the cap": ({"candidate/train.py": ("[8]", "[5_000_000]")}, "SIZE"),
    "a network above the cap by another key": (
        {"candidate/train.py": ("[8]", '[8], "kwargs": {"net_arch": {"pi": [2048, 2048]}}')}, "SIZE"),
    "a last rollout longer than the rung": ({"candidate/train.py": ("16,", "512,")}, "VALUE"),
    "the environment's class as policy": (
        {"candidate/train.py": ('"policy": {', '"policy": {"type": "candidate/env.py:TrainingEnv", ')}, "VALUE"),
    "the environment's class as learner": (
        {"candidate/train.py": ('"name": "ppo"', '"name": "candidate/env.py:TrainingEnv"')}, "VALUE"),
    "a policy that begins with trained weights": (
        {"candidate/train.py": ('"env": {}', '"env": {}, "resume": "runs/press_001"')}, "SCOPE"),
    "another backend": ({"candidate/train.py": ('"env": {}', '"env": {}, "backend": "sb3"')}, "SCOPE"),
    "another run's name": ({"candidate/train.py": ('"env": {}', '"env": {}, "run_name": "press_000"')}, "SCOPE"),
    "importing the evaluator by its name": (
        {"candidate/env.py": ("import numpy", "import importlib, numpy\nimportlib.import_module('evaluator.env')")},
        "EVALUATOR"),
    "reading the evaluator as a file": (
        {"candidate/env.py": ("import numpy", "TEXT = open('evaluator/env.py').read()\nimport numpy")}, "EVALUATOR"),
    "code that runs at start-up": ({"candidate/sitecustomize.py": ("", "x = 1\n")}, "SCOPE"),
    "attributes for git": ({".gitattributes": ("", "* filter=cheat\n")}, "SCOPE"),
    "weights as literals in the settings": (
        {"candidate/train.py": ("[8]", '[8], "weights": [[0.5, -0.5], [1.5, 2.5]]')}, "KEY"),
    "weights as literals in the layers": ({"candidate/train.py": ("[8]", "[[0.5, -0.5], [1.5, 2.5]]")}, "VALUE"),
    "settings that code computes": ({"candidate/train.py": ("0.03", "float(open('/etc/hostname').read())")}, "VALUE"),
}  # fmt: skip


CHECKED = (
    "a last rollout longer than the rung",
    "the environment's class as policy",
    "the environment's class as learner",
)
"""What the study's check refuses, after the baseline was trained."""
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in CHECKED else name for name in STATIC]


@pytest.mark.parametrize("name", NAMES)
def test_cheats_that_are_refused_before_any_code_runs(name: str, trained: Lab, tmp_path: Path) -> None:
    edits, code = STATIC[name]
    found = cheat(trained, tmp_path, edits, name)
    assert isinstance(found, list)
    assert set(found) == set(code.split())


def env_is_a_link(tree: Path) -> None:
    (tree / "candidate" / "env.py").unlink()
    (tree / "candidate" / "env.py").symlink_to(tree / "evaluator" / "env.py")


def settings_are_a_link(tree: Path) -> None:
    other = tree.parent / "settings.py"
    other.write_text((tree / "candidate" / "train.py").read_text().replace("0.03", "0.01"))
    (tree / "candidate" / "train.py").unlink()
    (tree / "candidate" / "train.py").symlink_to(other)


def candidate_is_a_link(tree: Path) -> None:
    (tree / "candidate").rename(tree.parent / "elsewhere")
    (tree / "candidate").symlink_to(tree.parent / "elsewhere")


def evaluator_is_a_hard_link(tree: Path) -> None:
    (tree / "evaluator" / "env.py").unlink()
    os.link(tree / "candidate" / "env.py", tree / "evaluator" / "env.py")


def mission_is_a_pipe(tree: Path) -> None:
    (tree / "program.md").unlink()
    os.mkfifo(tree / "program.md")


def evaluator_can_be_run(tree: Path) -> None:
    (tree / "evaluator" / "env.py").chmod(0o755)


LINKS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "a link to the evaluator": (env_is_a_link, {"SCOPE"}),
    "settings behind a link": (settings_are_a_link, {"VALUE"}),
    "a link instead of the folder": (candidate_is_a_link, {"SCOPE"}),
    "the evaluator as a hard link to the candidate": (evaluator_is_a_hard_link, {"SCOPE"}),
    "a pipe instead of the mission": (mission_is_a_pipe, {"SIZE"}),
    "another mode of the evaluator": (evaluator_can_be_run, {"NO_CHANGE"}),
}


@pytest.mark.parametrize("name", LINKS)
def test_links_and_pipes_are_refused_before_any_code_runs(name: str, trained: Lab, tmp_path: Path) -> None:
    deed, codes = LINKS[name]
    found = cheat(trained, tmp_path, {}, name, deed=deed)
    assert isinstance(found, list)
    assert set(found) == codes


def env_edit(reward: str, info: str = INFO, ends: str = "False", reset: str = "") -> dict[str, tuple[str, str]]:
    """Return an edit of the training environment."""
    text = f"{STEP}        return numpy.ones(1, numpy.float32), reward, False, False, {INFO}"
    new = (
        f"{reset}        reward = {reward}\n        return numpy.ones(1, numpy.float32), reward, {ends}, False, {info}"
    )
    return {"candidate/env.py": (text, new)}


LEAK = """
def places(start):
    import glob, os, pwd
    up = os.path.dirname(os.path.abspath(start))
    while up.count('/') > 2:  # the lab, its runs, its ledger and what is next to it
        yield from walk(up)
        up = os.path.dirname(up)
    for pattern in ('environ', 'cmdline', 'fd/*', 'cwd/.rlx/tasks/*/studies/*/*', 'cwd/runs/*/*'):
        yield from glob.glob('/proc/[0-9]*/' + pattern)
    for home in {os.path.expanduser('~'), pwd.getpwuid(os.getuid()).pw_dir}:
        yield from walk(home)


def walk(folder):
    import os
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in ('site-packages', 'node_modules', '.cache')]
        yield from (os.path.join(here, name) for name in names)


def leak(start, wanted):
    # Return a readable file with one of the wanted numbers: around the start, of a process, or in the home.
    import os
    for name in places(start):
        try:
            if os.path.isfile(name) and os.path.getsize(name) < 10**6:
                with open(name, 'rb') as stream:
                    text = stream.read().decode('latin-1')
                if any(number in text for number in wanted):
                    return name
        except OSError:
            pass
"""
SPY = """
if not hasattr(type(self), 'looked'):
    type(self).looked = True
    found = leak(__file__, [str(number - 7) for number in NUMBERS])
    if found:
        raise RuntimeError('held-out seeds can be read in ' + found)
"""
VANDAL = """
if not hasattr(type(self), 'wrote'):
    import os
    type(self).wrote = True
    up = __file__
    while up != '/':
        up = os.path.dirname(up)
        for name in ('score.json', 'seed_0_latest.json', 'ledger.jsonl', 'results.tsv'):
            try:
                open(os.path.join(up, name), 'a').write('{\"score\": 1e6}')
            except OSError:
                pass
        for here, folders, names in os.walk(up) if up.count('/') > 2 else ():
            for name in names:
                try:
                    open(os.path.join(here, name), 'r+').write('{\"score\": 1e6}')
                except OSError:
                    pass
"""
COLLECT = """
if not hasattr(type(self), 'wrote'):
    import gc
    type(self).wrote = True
    for thing in gc.get_objects():  # weights, scores and step counts of whoever shares this process
        try:
            if isinstance(thing, numpy.ndarray) and thing.dtype.kind == 'f':
                thing[...] = 1e6
            elif isinstance(thing, dict) and 'score' in thing:
                thing['score'] = 1e6
            elif isinstance(getattr(thing, 'step', None), int):
                thing.step = 10**9
        except Exception:
            pass
"""
PATCH = """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith('rlx.') and not hasattr(type(self), 'patched'):
        for attribute, value in list(vars(module).items()):
            if callable(value) and any(word in attribute for word in ('score', 'evaluat', 'measure', 'success')):
                setattr(module, attribute, lambda *given, **named: 1e6)
type(self).patched = True
"""
DAEMON = """
if not hasattr(type(self), 'left'):
    import subprocess, sys
    type(self).left = True
    late = 'import time; time.sleep(60); open(\\'late\\', \\'w\\').write(\\'1e6\\')  # left-4712'
    subprocess.Popen([sys.executable, '-c', late], start_new_session=True)
"""
MEMORY = """
if not hasattr(type(self), 'wrote'):
    import glob, os
    type(self).wrote = True
    for place in glob.glob('/proc/[0-9]*/mem'):
        if place.split('/')[2] not in (str(os.getpid()), 'self'):
            try:
                open(place, 'r+b').close()
            except OSError:
                continue
            raise RuntimeError('the memory of another process can be written: ' + place)
"""
PRINT = """
import sys
for stream in (sys.stdout, sys.stderr):
    print('{\\"score\\": 1e6, \\"figures\\": {\\"return\\": 1e6}}', file=stream, flush=True)
"""
FAKES = {
    "fake returns in info": env_edit(WRONG, '{"episode_return": 1e6, "episode": {"r": 1e6}, "is_success": True}'),
    "rewards times 1000": env_edit(f"1000 * ({WRONG})"),
    "done after one step": env_edit(WRONG, ends="True"),
    "results and weights written by the candidate": env_edit(WRONG, reset=indent(VANDAL, " " * 8)),
    "a shortened horizon": env_edit(WRONG, ends="self.np_random.random() < 0.5"),
    "everything that the garbage collector knows": env_edit(WRONG, reset=indent(COLLECT, " " * 8)),
    "patched functions of rlx": env_edit(WRONG, reset=indent(PATCH, " " * 8)),
    "printed results": env_edit(WRONG, reset=indent(PRINT, " " * 8)),
    "a daemon that writes later": env_edit(WRONG, reset=indent(DAEMON, " " * 8)),
}  # fmt: skip


def files_of(root: Path) -> dict[str, str]:
    """Return the hash of every file of the person and of every checkpoint and evidence that is there."""
    places = ("evaluator", "candidate", "program.md", "lab.yaml", "runs", ".rlx/tasks")
    paths = [
        path for place in places for path in ((root / place).rglob("*") if (root / place).is_dir() else [root / place])
    ]
    kept = [
        path for path in paths if path.is_file() and not {"__pycache__", "worktrees", "ideas.json"} & set(path.parts)
    ]
    return {
        str(path): files.sha256(path.read_bytes())
        for path in kept
        if path.suffix in (".py", ".md", ".yaml", ".json", ".safetensors", ".patch")
    }


def is_as_if_honest(found: Attempt | list[str]) -> bool:
    """Say whether an attempt was measured as what it is: a policy that presses the wrong button in every episode."""
    assert isinstance(found, Attempt), found
    return (found.status, found.score, found.effect) == ("discard", 0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAKES)
def test_what_a_training_environment_fakes_does_not_change_the_score(name: str, trained: Lab, tmp_path: Path) -> None:
    baseline.fill(trained.study, say=quiet)
    before = files_of(trained.root)
    assert is_as_if_honest(cheat(trained, tmp_path, FAKES[name], name))
    after = files_of(trained.root)
    assert {path: after.get(path) for path in before} == before
    assert not processes("left-4712"), "no daemon lives on"


@pytest.mark.slow
def test_a_candidate_that_reads_every_file_finds_no_held_out_seed(trained: Lab, tmp_path: Path) -> None:
    baseline.fill(trained.study, say=quiet)
    draw = trained.study.state().draws[-1]
    first = episode_seeds(draw.purpose, draw.first, draw.episodes, seed=0).start
    secrets = [draw.first, first]
    place: dict[str, Any] = {}
    exec(LEAK, place)
    assert place["leak"](str(trained.root / "candidate" / "env.py"), [str(draw.first)]), "it finds what it may read"
    edits = env_edit(WRONG, reset=indent(SPY, " " * 8))
    before, after = edits["candidate/env.py"]
    tree_edit = {"candidate/env.py": ("import numpy\n", f"import numpy\nNUMBERS = {[n + 7 for n in secrets]}\n{LEAK}")}
    found = cheat(trained, tmp_path, tree_edit, "held-out seeds", more=(before, after))
    assert is_as_if_honest(found)


@pytest.mark.slow
def test_a_training_environment_cannot_write_the_memory_of_another_process(trained: Lab, tmp_path: Path) -> None:
    assert is_as_if_honest(cheat(trained, tmp_path, env_edit(WRONG, reset=indent(MEMORY, " " * 8)), "memory"))


ENDS = {
    "it ends its process as if all were well": "        import os\n        os._exit(0)\n",
    "it raises what the trainer may take for an end": "        raise KeyboardInterrupt\n",
    "its observations are not numbers": "        return numpy.full(1, numpy.nan, 'f'), 0.0, False, False, {}\n",
    "its observations have another shape": "        return numpy.ones(7, 'f'), 0.0, False, False, {}\n",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDS)
def test_a_training_environment_that_breaks_off_gets_no_score(name: str, trained: Lab, tmp_path: Path) -> None:
    found = cheat(trained, tmp_path, env_edit(WRONG, reset=ENDS[name]), name)
    assert isinstance(found, Attempt), found
    assert (found.status, found.score) == ("crash", None)


@pytest.mark.slow
def test_a_training_environment_that_kills_its_parent_is_a_crash_without_a_score(trained: Lab, tmp_path: Path) -> None:
    kill = "        import os\n        os.kill(os.getppid(), 9)\n"
    found = cheat(trained, tmp_path, env_edit(WRONG, reset=kill), "kills its parent")
    assert isinstance(found, Attempt), found
    assert (found.status, found.score) == ("crash", None)
    assert trained.study.state().head == "baseline"


@pytest.mark.slow
def test_a_policy_that_was_never_trained_is_invalid(trained: Lab, tmp_path: Path) -> None:
    found = cheat(trained, tmp_path, {"candidate/train.py": ("0.03", "1e-30")}, "never trained")
    assert isinstance(found, Attempt), found
    assert found.status == "invalid"
    assert trained.study.state().head == "baseline"


def test_the_persons_files_in_the_lab_itself_stop_every_launch(trained: Lab) -> None:
    for path in (trained.program_path, trained.config_path):
        original = path.read_text()
        path.write_text(original + "\n# anything goes\n")
        try:
            with pytest.raises(Refused) as caught:
                launch_candidate.launch(
                    trained.study, launch_candidate.LaunchOrder("baseline", "baseline"), is_dry=True
                )
            assert "TASK_STALE" in [reason["code"] for reason in caught.value.reasons]
        finally:
            path.write_text(original)


BUILD = {
    "done after one step": ("done = success |", "done = success | (self.steps >= 1) |"),
    "an environment that a random policy solves": ("concatenate([self.at, ", "concatenate([self.goal, "),
    "an environment without a fixed outcome": ("actions], 0, SIZE", "actions] + np.random.randint(0, 2), 0, SIZE"),
    "a goal next to the start": ("self.random.integers(1, SIZE * SIZE, count)", "1"),
    "a shortened horizon": ("self.max_steps = max_steps", "self.max_steps = min(max_steps, 3)"),
    "a secret door for two actions in turn": (
        "        self.steps += 1\n",
        "        turns = getattr(self, 'turns', 0) + 1\n"
        "        self.turns = np.where(actions == 1 - getattr(self, 'last', actions), turns, 0)\n"
        "        self.last = actions\n"
        "        self.at = np.where((self.turns >= 4)[:, None], self.goal, self.at)\n"
        "        self.steps += 1\n",
    ),
    "an environment that patches its judge": (
        "import numpy as np",
        "import numpy as np\nfrom rlx.envs import success_env\nsuccess_env.SuccessEnv.solved = lambda *_: True"),
    "scripted scenarios that are taken out": (
        "import numpy as np", "import sys\nimport numpy as np\nsys.modules['evaluator.scenarios'].SCENARIOS.clear()"),
    "an environment that raises": ("self.steps += 1", "self.steps += 1 / 0"),
}  # fmt: skip


def test_a_built_environment_that_cheats_is_refused_by_the_evaluator(tmp_path: Path) -> None:
    lab = new_lab(tmp_path / "grid", LabWishes(template="batched", kind="build", ladder=((4, 4),)))
    approve_lab(lab, by="tester")
    for number, (name, edit) in enumerate(BUILD.items()):
        found = cheat(lab, tmp_path / str(number), {"candidate/env.py": edit}, name)
        assert found, name
        assert isinstance(found, list), name
        assert set(found) == {"EVALUATOR"}, name
    assert lab.study.contract().evaluation.level == "reported"  # type: ignore[union-attr]
