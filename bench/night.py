"""Replay a night of an agent on an approved study: six ideas, one call each. Counts calls, answers and their size.

The environment pays a bonus for staying alive, which a policy farms instead of walking to the door. The script asks
`rlx next`, tries six ideas with `rlx try`, claims the head and writes the report. Every answer is a JSON document.
The same night by single steps, as `rlx next --full` names them, shows whether `rlx try` decides alike.

python bench/night.py [--write]     (about five minutes on a quiet machine; --write replaces bench/night.md)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_CALLS = 30
MOST_TOKENS = 12_000
MOST_BYTES = 1_024
MOST_SECONDS = 0.5
WARM_CALLS = 5
BYTES_PER_TOKEN = 4
YARD = '''\
"""A walk across a yard to a door in one of its four corners."""

import gymnasium
import numpy

MOVES = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))
FAR = 5


class Yard(gymnasium.Env):
    max_episode_steps = 36
    observation_space = gymnasium.spaces.Box(-3, 3, (2,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = numpy.zeros(2)
        self.door = FAR * numpy.where(self.np_random.random(2) < 0.5, -1, 1)
        return self._seen(), {}

    def step(self, action):
        self.at = numpy.clip(self.at + MOVES[int(action)], -2 * FAR, 2 * FAR)
        there = self.distance() <= 1
        return self._seen(), float(there), there, False, {"is_success": there}

    def distance(self):
        return float(numpy.abs(self.door - self.at).sum())

    def _seen(self):
        return ((self.door - self.at) / FAR).astype(numpy.float32)
'''
PAY = '''\
"""The reward of a step in training: the door, staying alive, and progress towards the door."""

import gymnasium


class Pay(gymnasium.RewardWrapper):
    def __init__(self, env, alive=0.0, progress=0.0, door=1.0):
        super().__init__(env)
        self.alive, self.progress, self.door = alive, progress, door

    def step(self, action):
        before = self.unwrapped.distance()
        observation, reward, terminated, truncated, info = self.env.step(action)
        terms = {
            "door": self.door * reward,
            "alive": self.alive,
            "progress": self.progress * (before - self.unwrapped.distance()),
        }
        info["reward_terms"] = terms
        return observation, sum(terms.values()), terminated, truncated, info
'''
CONFIG = """\
env:
  id: envs/yard.py:Yard
  num_envs: 8
  wrappers:
    - envs/pay.py:Pay: {alive: 0.05, progress: 0.0}
algo: {name: ppo, total_timesteps: 7168, rollout_steps: 64, batch_size: 128, update_epochs: 4, learning_rate: 0.001,
       gamma: 0.98}
policy: {hidden_sizes: [16]}
eval: {every: 7168, episodes: 10, metric: success_rate}
"""
CONTRACT = (
    "--metric", "success_rate", "--key", "algo.*", "--key", "policy.*", "--key", "env.wrappers", "--seeds", "160",
    "--hours", "3", "-s", "budget.per_seed_minutes=1", "-s", "hardware.parallel=2", "-s", "evaluation.episodes=20",
    "-s", "evaluation.confirm_episodes=20",
)  # fmt: skip
REFLECTION = {"reflection": "alive is most of the reward and does not go with success"}
IDEAS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("reward tuning", {"env.wrappers.0.kwargs.alive": 0.0}),
    ("hyperparameter", {"algo.gamma": 0.5}),
    ("reward tuning", {"env.wrappers.0.kwargs.progress": 0.1}),
    ("hyperparameter", {"policy.hidden_sizes": [2]}),
    ("hyperparameter", {"algo.entropy_coef": 0.5}),
    ("hyperparameter", {"algo.rollout_steps": 128}),
)
"""The six ideas of the night, in their order."""
FARMED, SHAPING = "env.wrappers.0.kwargs.alive", "env.wrappers.0.kwargs.progress"


@dataclass(frozen=True)
class Called:
    """One call: its words, the size of its answer, its time and the answer."""

    words: tuple[str, ...]
    size: int
    seconds: float
    answer: dict[str, Any]


@dataclass
class Night:
    """A project with an approved study, and every call that the agent makes in it."""

    root: Path
    calls: list[Called] = field(default_factory=list)

    def build(self, *settings: str) -> None:
        """Write the project; a person makes, rehearses and approves the study."""
        for name, text in {
            "envs/__init__.py": "", "envs/yard.py": YARD, "envs/pay.py": PAY, "configs/yard.yaml": CONFIG,
            "rlx.toml": "", ".gitignore": "/runs/\n/.rlx/\n/candidate.json\n",
        }.items():  # fmt: skip
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        me = ("-c", "user.name=me", "-c", "user.email=me@example.org")
        for words in (("init", "-q"), ("add", "-A"), (*me, "commit", "-qm", "Start")):
            subprocess.run(["git", "-C", str(self.root), *words], check=True, capture_output=True)
        self.person("study", "new", "door", "--config", "configs/yard.yaml", *CONTRACT, *settings)
        self.person("study", "rehearse")
        self.person("study", "approve", "--yes", "--by", "me")
        self.person("study", "baseline")

    def person(self, *words: str) -> dict[str, Any]:
        """Type a command that the agent does not pay for."""
        return self._type(words)[0]

    def agent(self, *words: str) -> dict[str, Any]:
        """Type a command of the agent and count it."""
        began = time.monotonic()
        answer, size = self._type(words)
        self.calls.append(Called(words, size, time.monotonic() - began, answer))
        return answer

    def _type(self, words: tuple[str, ...]) -> tuple[dict[str, Any], int]:
        done = subprocess.run(
            [sys.executable, "-m", "rlx", *words, "--json"], cwd=self.root, capture_output=True, text=True
        )
        if done.returncode not in (0, 1):
            raise SystemExit(f"rlx {' '.join(words)}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout), len(done.stdout.encode())

    def proposal(self, number: int) -> str:
        """Write an idea as candidate.json; return the file's name."""
        kind, changes = IDEAS[number]
        document: dict[str, Any] = {"kind": kind, "hypothesis": f"idea {number + 1} of the night", "changes": changes}
        if kind == "reward tuning":
            document["records"] = REFLECTION
        (self.root / "candidate.json").write_text(json.dumps(document))
        return "candidate.json"

    def try_idea(self, number: int) -> str:
        """Try an idea to its decision; return the decision."""
        answer = self.agent("try", "-f", self.proposal(number))
        while answer["is_running"]:
            answer = self.agent("try", answer["candidate"])
        return str(answer["decision"])

    def replay(self) -> list[str]:
        """Play the whole night; return the decisions."""
        decisions = []
        for number in range(len(IDEAS)):
            self.agent("next")
            decisions.append(self.try_idea(number))
        self.agent("next")
        claimed = self.agent("try", "--claim")
        while claimed["is_running"]:
            claimed = self.agent("try", "--claim")
        self.agent("study", "report")
        self.agent("next")
        return [*decisions, str(claimed["decision"])]

    def replay_singly(self) -> list[str]:
        """Play the night by single steps, as the full `rlx next` names them; return the decisions."""
        for number in range(len(IDEAS)):
            made = self.agent("propose", "-f", self.proposal(number))["candidate"]
            while self._is_open(made):
                self._follow()
        while self._follow() not in ("report", "done"):
            pass
        states = {row["candidate"]: row["state"] for row in self.person("status")["candidates"]}
        states[self.person("status")["head"]] = "advanced"
        return [*states.values(), "confirmed"]

    def _is_open(self, made: str) -> bool:
        rows = self.agent("status")["candidates"]
        return any(row["candidate"] == made and row["state"] in OPEN for row in rows)

    def _follow(self) -> str:
        step = self.agent("next", "--full")
        chosen = step
        if step["action"] == "propose":
            chosen = next((other for other in step["also"] if "confirmation" in other["command"]), step)
        if chosen["action"] not in ("done", "propose"):
            self.agent(*chosen["command"].split()[1:])
        return str(chosen["action"])


OPEN = ("draft", "validated", "launched", "completed", "inconclusive", "debug")


@dataclass(frozen=True)
class NightResult:
    """What a night has decided, and what it cost the agent."""

    way: str
    decisions: list[str]
    calls: list[Called]
    first_ideas: list[str]
    next_seconds: float

    @property
    def tokens(self) -> float:
        return sum(call.size for call in self.calls) / BYTES_PER_TOKEN

    @property
    def row(self) -> str:
        """The result as a row of a Markdown table."""
        largest = max(call.size for call in self.calls)
        cells = [self.way, str(len(self.calls)), f"{self.tokens:,.0f}", f"{largest:,}", ", ".join(self.decisions)]
        return f"| {' | '.join(cells)} |"


def played(way: str, folder: Path) -> NightResult:
    """Build the project, play the night and time `rlx next` at its end."""
    night = Night(folder)
    night.build()
    first = [str(idea["idea"]) for idea in night.person("next")["ideas"]]
    decisions = night.replay() if way == "rlx try" else night.replay_singly()
    times = []
    for _ in range(WARM_CALLS):
        began = time.monotonic()
        night.person("next")
        times.append(time.monotonic() - began)
    return NightResult(way, decisions, night.calls, first, min(times))


def page(results: list[NightResult]) -> str:
    """Return the page about both nights."""
    tried, single = results
    is_same = "the same" if tried.decisions == single.decisions else "OTHER"
    return "\n".join([
        "# What a night costs an agent",
        "",
        "For anyone who pays for an agent's tokens. Written by `python bench/night.py --write`.",
        "",
        "| way | calls | tokens of answers | largest answer, bytes | decisions on the six ideas and the claim |",
        "|---|---|---|---|---|",
        *(result.row for result in results),
        "",
        f"- Limits: {MOST_CALLS} calls, {MOST_TOKENS:,} tokens, {MOST_BYTES:,} bytes per answer of "
        f"`next` and `try` (the largest is the report). A token is {BYTES_PER_TOKEN} bytes.",
        f"- Both ways come to {is_same} decisions.",
        f"- The first ideas of `rlx next`, before anything was tried: {'; '.join(tried.first_ideas)}.",
        f"- `rlx next` at the end of the night, the fastest of {WARM_CALLS} calls: {tried.next_seconds:.2f} s (limit "
        f"{MOST_SECONDS} s), at a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
        "",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="keep both projects there")
    parser.add_argument("--write", action="store_true", help="replace bench/night.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = args.folder or Path(place)
        results = [played("rlx try", folder / "tried"), played("single steps", folder / "single")]
    for result in results:
        for call in result.calls:
            print(f"{call.size:6d} bytes {call.seconds:6.2f} s  rlx {' '.join(call.words)[:60]}")
    text = page(results)
    print(text)
    if args.write:
        Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
