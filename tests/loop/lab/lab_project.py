"""A tiny lab on CartPole with a short ladder, for tests."""

from __future__ import annotations

from pathlib import Path

from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.new_lab import LabWishes, approve_lab, new_lab

LADDER = ((1, 2), (2, 2))
TINY = LabWishes(max_steps=16, ladder=LADDER)


def tiny_lab(folder: Path, wishes: LabWishes = TINY, *, is_approved: bool = True) -> Lab:
    """Make a lab whose trainings take a second; its claim takes two seeds per side."""
    lab = new_lab(folder / "hop", wishes)
    text = lab.config_path.read_text().replace("claim: 10", "claim: 2").replace("count: 8", "count: 2")
    lab.config_path.write_text(text)
    train = lab.root / "candidate" / "train.py"
    train.write_text(train.read_text().replace("128,", "16,").replace("256,", "32,").replace("[64, 64]", "[8]"))
    lab = Lab(lab.root)
    if is_approved:
        approve_lab(lab, by="tester")
    return lab


def edit(lab: Lab, name: str, before: str, after: str) -> None:
    """Replace a text in one of the lab's files; it must be there."""
    path = lab.root / name
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


PRESS = '''\
"""An environment that pays for one of two buttons."""
import gymnasium
import numpy


class {name}(gymnasium.Env):
    max_episode_steps = 16
    observation_space = gymnasium.spaces.Box(0, 1, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return numpy.ones(1, numpy.float32), {{}}

    def step(self, action):
        reward = {pay}
        return numpy.ones(1, numpy.float32), reward, False, False, {{"is_success": action == 1}}
'''
WRONG, RIGHT = "-1.0 * action", "1.0 * action"


def press_lab(folder: Path, *, ladder: tuple[tuple[int, int], ...] = ((8, 2), (9, 2))) -> Lab:
    """Make a lab whose baseline learns to press the wrong button; a candidate that pays for the right one wins."""
    lab = new_lab(folder / "press", LabWishes(max_steps=16, ladder=ladder))
    text = lab.config_path.read_text().replace("count: 8", "count: 2").replace("claim: 10", "claim: 2")
    lab.config_path.write_text(text)
    (lab.root / "candidate" / "env.py").write_text(PRESS.format(name="TrainingEnv", pay=WRONG))
    (lab.root / "evaluator" / "env.py").write_text(PRESS.format(name="Task", pay=RIGHT))
    train = lab.root / "candidate" / "train.py"
    text = train.read_text().replace("128,", "16,").replace("256,", "32,").replace("[64, 64]", "[8]")
    train.write_text(text.replace("3e-4", "0.03"))
    lab = Lab(lab.root)
    approve_lab(lab, by="tester")
    return lab
