"""How seeds are written on the command line: `5` is a count, `0,7` or `0,` a list."""

from __future__ import annotations

from rlx.errors import UsageError


def parse_seeds(text: str) -> int | tuple[int, ...]:
    """Read `5` as a count and `0,7` or `0,` as a list of training seeds."""
    parts = [part.strip() for part in text.split(",")]
    numbers = [part for part in parts if part]
    if not numbers or not all(part.isascii() and part.isdigit() for part in numbers):
        raise UsageError(f"--seeds {text}: not a count or a list of seeds", hint="--seeds 5, --seeds 0,7 or --seeds 0,")
    if len(parts) > 1:
        if len(set(numbers)) != len(numbers):
            raise UsageError(f"--seeds {text}: a seed is named twice", hint="seeds are replicates: name each once")
        return tuple(map(int, numbers))
    if int(text) < 1:
        raise UsageError("--seeds 0: at least one seed", hint="--seeds 1, or `--seeds 0,` for the seed 0")
    return int(text)
