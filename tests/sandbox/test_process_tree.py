"""Descendants are found whatever session they moved to; one's own are reaped but for those that are spared."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import os, subprocess, sys, time
from rlx.sandbox.process_tree import adopt_orphans, descendants, kill_descendants
assert adopt_orphans()
script = "import os, time; os.setsid(); os.fork() or time.sleep(600); os._exit(0)"
spared = subprocess.Popen([sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '600'])"])
other = subprocess.Popen(["sh", "-c", "setsid sleep 600 & setsid sleep 600 & exit 5"])
while other.poll() is None or len(descendants(os.getpid())) < 4:
    time.sleep(0.01)
assert other.returncode == 5
print(kill_descendants(os.getpid(), spare=(spared.pid,)), len(descendants(os.getpid())), spared.poll())
print(kill_descendants(os.getpid()), descendants(os.getpid()))
"""


def test_reaps_orphans_and_leaves_what_is_spared() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60)
    assert done.stdout == "2 2 None\n2 ()\n", done.stderr
