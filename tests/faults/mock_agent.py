"""A mock agent of a lab: it reads the brief on stdin and does the deed that stands at the number of rows so far.

`mock_agent.py DEED …`: with three rows in the brief, the fourth deed is done; after the last one, nothing is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

CANDIDATE = Path("candidate")


def main(deeds: list[str]) -> int:
    brief = sys.stdin.read()
    done = int(re.search(r"(\d+) attempts?:", brief).group(1))  # type: ignore[union-attr]
    deed = deeds[done] if done < len(deeds) else "nothing"
    name, _, given = deed.partition(":")
    print(f"{name} {given}", flush=True)
    return int(DEEDS[name](given) or 0)


def nothing(_: str) -> None:
    """Change nothing."""


def rate(given: str) -> None:
    """Set the learning rate, and say so."""
    path = CANDIDATE / "train.py"
    path.write_text(re.sub(r'"learning_rate": [^,]+,', f'"learning_rate": {given},', path.read_text()))
    (CANDIDATE / "idea.txt").write_text(f"description: a learning rate of {given}\npredicts: 1\n")


def leave(given: str) -> int:
    """Leave with an exit code, in the middle of an edit."""
    (CANDIDATE / "train.py").write_text("TRAINING = {")
    print("Traceback: something broke", file=sys.stderr)
    return int(given)


def limit(given: str) -> int:
    """Report a usage limit that resets in so many seconds."""
    print(f"Claude AI usage limit reached|{int(time.time() + float(given)) + 1}")
    return 1


def hang(_: str) -> None:
    """Wait for ever, without a sign of life."""
    time.sleep(1000)


def spin(_: str) -> None:
    """Work for ever."""
    while True:
        pass


def daemon(given: str) -> None:
    """Leave a process behind that would edit the candidate later."""
    code = f"import time; time.sleep(600); open('candidate/late', 'w'); {given!r}"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.DEVNULL)


def fill(_: str) -> None:
    """Fill the disk as far as possible."""
    with (CANDIDATE / "big").open("wb") as stream:
        while True:
            stream.write(os.urandom(2**20))
            stream.flush()
            time.sleep(0.01)


def stray(_: str) -> None:
    """Add a file that is not one of the two."""
    (CANDIDATE / "helper.py").write_text("x = 1\n")


def outside(_: str) -> None:
    """Try to write the person's files, the lab's own folder and the ledger."""
    lab = next(path for path in Path.cwd().parents if (path / ".rlx").is_dir())
    targets = [Path("program.md"), Path("lab.yaml"), Path("evaluator/env.py"), lab / "program.md", lab / "lab.yaml",
               lab / "candidate/train.py", lab / ".rlx/planted",
               lab / ".rlx/tasks/hop-1x2/studies/hop-1x2/ledger.jsonl"]  # fmt: skip
    for target in targets:
        try:
            with target.open("a") as stream:
                stream.write("# planted\n")
            print(f"WROTE {target}")
        except OSError as error:
            print(f"refused {target.name}: {error.strerror}")


def spy(_: str) -> None:
    """Try to read the ledger, the runs, other sessions and the environment of other processes."""
    lab = next(path for path in Path.cwd().parents if (path / ".rlx").is_dir())
    own = f"/{Path.cwd().parent.name}/"
    places = [*lab.glob(".rlx/tasks/*/studies/*/ledger.jsonl"), *lab.glob("runs/*/metadata.json"),
              lab / ".rlx/tasks/hop-1x2/studies/hop-1x2/ledger.jsonl", lab / "runs",
              *(path for path in lab.glob(".rlx/labs/*/sessions/*/output.log") if own not in str(path)),
              *Path("/proc").glob("[0-9]*/environ")]  # fmt: skip
    for place in places:
        if place.parent.name == str(os.getpid()):
            continue
        try:
            _ = list(place.iterdir()) if place.is_dir() else place.read_bytes()
            print(f"READ {place}")
        except OSError as error:
            print(f"refused {place.name}: {error.strerror}")


def knot(_: str) -> None:
    """Leave a claim that is a link to the ledger, and a pipe where nobody writes."""
    lab = next(path for path in Path.cwd().parents if (path / ".rlx").is_dir())
    (CANDIDATE / "idea.txt").symlink_to(lab / ".rlx/tasks/hop-1x2/studies/hop-1x2/ledger.jsonl")
    os.mkfifo(CANDIDATE / "pipe")


DEEDS = {
    "nothing": nothing, "rate": rate, "leave": leave, "limit": limit, "hang": hang, "spin": spin, "daemon": daemon,
    "fill": fill, "stray": stray, "outside": outside,
    "spy": spy, "knot": knot,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
