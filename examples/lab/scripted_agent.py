"""An agent without a model: it reads the brief on stdin and makes the next of six moves, good and bad ones.

It stands for Claude Code or Codex where neither is installed. `python scripted_agent.py solve|build`
"""

import re
import sys
from pathlib import Path

IDEA = Path("candidate/idea.txt")
SLOW = ("candidate/train.py", '"learning_rate": {}', "1e-05", "a smaller step is safer")
SHORT = ("candidate/train.py", '"gamma": {}', "0.01", "only the next step matters")
FAST = ("candidate/train.py", '"learning_rate": {}', "0.002", "a larger step learns in the time that the rung gives")
TINY = ("candidate/env.py", "SIZE = {}", "2", "a smaller grid is easier")
NOTHING = None
THIRD_FILE = "candidate/helper.py"
MISSIONS = {
    "solve": [FAST, SLOW, SLOW, NOTHING, THIRD_FILE, NOTHING],
    "build": [SLOW, TINY, SLOW, THIRD_FILE, NOTHING, SHORT],
}
"""An edit has a file, the assignment, its new value and the reason."""


def main() -> int:
    brief = sys.stdin.read()
    rows = int(re.search(r"(\d+) attempts?:", brief).group(1))
    moves = MISSIONS[sys.argv[1]]
    move = moves[rows] if rows < len(moves) else NOTHING
    if move is NOTHING:
        print("I have no idea this time.")
    elif move == THIRD_FILE:
        Path(THIRD_FILE).write_text("BONUS = 1000\n")
    else:
        file, assignment, value, why = move
        text = Path(file).read_text()
        Path(file).write_text(re.sub(assignment.format(r"[^,\n]+"), assignment.format(value), text))
        IDEA.write_text(f"description: {assignment.format(value)}: {why}\npredicts: 20\n")
        print(f"changed {file}: {assignment.format(value)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
