"""What the kernel enforces for a process: files, network, signals and limits; probed and reported, never assumed.

Landlock, seccomp and a mount by ctypes, and rlimits: no dependency, as root and unprivileged alike. `enter` puts this
process into a box for good; `start` starts a program in one, under a keeper that kills whatever the program leaves.

What is not covered: see `box.not_covered`, which every `Enforced` repeats. Whoever runs outside the box under the same
account can change rlx itself.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` would double the time that a keeper takes to start
if TYPE_CHECKING:
    from rlx.sandbox.box import Box, Enforced, enter, in_force, private, system_reads
    from rlx.sandbox.family import adopt, descendants, reap
    from rlx.sandbox.program import PIPE, Program, kill, start
    from rlx.sandbox.trial import probe, probed
    from rlx.sandbox.watch import Breach, Caps, breach, folder_bytes

_WHERE = {
    **dict.fromkeys(("Box", "Enforced", "enter", "in_force", "private", "system_reads"), "box"),
    **dict.fromkeys(("adopt", "descendants", "reap"), "family"),
    **dict.fromkeys(("PIPE", "Program", "kill", "start"), "program"),
    **dict.fromkeys(("probe", "probed"), "trial"),
    **dict.fromkeys(("Breach", "Caps", "breach", "folder_bytes"), "watch"),
}

__all__ = [
    "PIPE", "Box", "Breach", "Caps", "Enforced", "Program", "adopt", "breach", "descendants", "enter",
    "folder_bytes", "in_force", "kill", "private", "probe", "probed", "reap", "start", "system_reads",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _WHERE:
        raise AttributeError(f"module 'rlx.sandbox' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rlx.sandbox.{_WHERE[name]}"), name)
