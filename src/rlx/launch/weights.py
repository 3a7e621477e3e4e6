"""What a seed has learned, by its hash: written into the ledger as soon as its process has ended.

From then on nothing else is measured in its place. What is not covered: whoever exchanges it while the process runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rlx.errors import EvidenceInvalid, NotFound
from rlx.evaluate import staged
from rlx.runs import opaque
from rlx.runs.run import Run, Seed
from rlx.study.ledger import Ledger


def final_checkpoint(seed: Seed) -> Path:
    """Return where the final policy of a seed is: rlx's own bundle, or the file that a command left."""
    kept = opaque.find(seed.checkpoints)
    return kept.path if kept else seed.checkpoints / opaque.LATEST


def weights_of(seed: Seed) -> str | None:
    """Return the hash of a seed's final policy; None where there is none."""
    try:
        return staged.sha256(final_checkpoint(seed))
    except NotFound:
        return None


def record(ledger: Ledger, candidate: str, run: Run, seeds: Iterable[Seed]) -> None:
    """Write the hashes of final policies into a ledger, each once: one that is there stays, whatever lies there now."""
    known = {event.id for event in ledger.events() if event.kind == "weights"}
    for seed in seeds:
        key = f"{run.name}:{seed.number}"
        if f"weights:{key}" in known:
            continue
        sha256 = weights_of(seed)
        if sha256 is None:
            says = f"{run.name}: seed {seed.number} is completed and has no final checkpoint"
            raise EvidenceInvalid(says, hint=f"rlx info {run.name} --traceback")
        ledger.append("weights", key=key, candidate=candidate, run=run.name, checkpoints={str(seed.number): sha256})
