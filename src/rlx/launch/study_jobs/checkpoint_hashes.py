"""The hash of each seed's final checkpoint, written into the ledger as soon as the seed's process has ended.

From then on rlx measures no other checkpoint in its place. Not covered: a checkpoint that is replaced while the
process still runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rlx import files
from rlx.errors import EvidenceInvalid, NotFound
from rlx.evaluate.sealed import stage_checkpoint
from rlx.runs.checkpoints import foreign_checkpoint
from rlx.runs.run import Run, Seed
from rlx.study.ledger.ledger import Ledger


def final_checkpoint(seed: Seed) -> Path:
    """Return the path of a seed's final policy: rlx's own bundle, or the file that a command left."""
    foreign = foreign_checkpoint.find(seed.checkpoints)
    return foreign.path if foreign else seed.checkpoints / foreign_checkpoint.LATEST


def checkpoint_hash(seed: Seed) -> str | None:
    """Return the hash of a seed's final policy; None if there is none.

    A command that names no checkpoint leaves only its log, which a `reported` metric is read from: its hash counts.
    """
    try:
        return stage_checkpoint.checkpoint_sha256(final_checkpoint(seed))
    except NotFound:
        command = Run(seed.folder.parent).config.get("command")
        log = seed.folder / "metrics.jsonl"
        if not command or command.get("checkpoint") or not log.is_file():
            return None
        return files.sha256(files.read_bytes(log))


def record(ledger: Ledger, candidate: str, run: Run, seeds: Iterable[Seed]) -> None:
    """Write the hashes of final policies into a ledger, each once; a hash that is written never changes."""
    known = {event.id for event in ledger.events() if event.kind == "weights"}
    for seed in seeds:
        key = f"{run.name}:{seed.number}"
        if f"weights:{key}" in known:
            continue
        sha256 = checkpoint_hash(seed)
        if sha256 is None:
            message = f"{run.name}: seed {seed.number} is completed, but has no final checkpoint"
            raise EvidenceInvalid(message, hint=f"rlx info {run.name} --traceback")
        ledger.append("weights", key=key, candidate=candidate, run=run.name, checkpoints={str(seed.number): sha256})
