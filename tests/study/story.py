"""A study told row by row, for tests: events as a ledger would hold them, without a file."""

from __future__ import annotations

from typing import Any

from rlx.study.ledger.ledger import Event
from rlx.study.ledger.state import State, replay

CONTRACT = "c" * 64
NOW = 1_800_000_000.0
POOL = (0, 1, 2)


class Story:
    """Rows in the order they are told; the steps below are those of a study that goes well."""

    def __init__(self, *, approve: bool = True, pool: bool = True) -> None:
        self.events: list[Event] = []
        self.tell("created", contract=CONTRACT)
        if approve:
            self.approve()
        if pool:
            self.job("b", "baseline", "baseline", POOL, scores=(1.0, 2.0, 3.0))

    def tell(self, kind: str, /, **fields: Any) -> Event:
        number = len(self.events) + 1
        event = Event(f"e{number}", NOW + number, kind, fields, f"{number:064x}")
        self.events.append(event)
        return event

    @property
    def state(self) -> State:
        return replay(self.events)

    def approve(self, contract: str = CONTRACT, **fields: Any) -> None:
        nonce = f"n{len(self.events)}"
        self.tell("approved", **{"contract": contract, "level": "asserted", "by": "ada", "human": False,
                                 "expires": NOW + 1e6, "nonce": nonce} | fields)  # fmt: skip

    def propose(self, name: str) -> None:
        self.tell("proposed", candidate=name, kind="hyperparameter", sha256=f"{name}-document")

    def validate(self, name: str) -> None:
        self.tell("moved", candidate=name, before="draft", after="validated", why="checked", plan=f"{name}-plan")

    def intend(self, job: str, name: str, phase: str, seeds: tuple[int, ...], **fields: Any) -> None:
        plan = None if name in ("baseline", "rehearsal") else f"{name}-plan"
        reserve = {"seeds": 0 if phase == "smoke" else len(seeds), "seconds": 60.0 * len(seeds)}
        self.tell("intent", **{"job": job, "candidate": name, "phase": phase, "seeds": list(seeds), "plan": plan,
                               "reserve": reserve} | fields)  # fmt: skip

    def start(self, job: str) -> None:
        self.tell("started", job=job, run=f"run_{job}", process={"pid": 7})

    def end(
        self, job: str, seeds: tuple[int, ...] = (), outcome: str = "completed", *, states: Any = None, **fields: Any
    ) -> None:
        states = states or {str(seed): outcome for seed in seeds}
        self.tell("ended", **{"job": job, "outcome": outcome, "seeds": states, "says": "",
                              "spent": {"seeds": len(seeds), "seconds": 30.0 * len(seeds)}} | fields)  # fmt: skip

    def job(
        self, job: str, name: str, phase: str, seeds: tuple[int, ...], *, scores: tuple[float, ...] = (), **ending: Any
    ) -> None:
        self.intend(job, name, phase, seeds)
        self.start(job)
        self.end(job, seeds, **ending)
        for seed, score in zip(seeds, scores, strict=False):
            self.evaluate(name, phase, seed, score)

    def evaluate(self, name: str, phase: str, seed: int, score: float, **fields: Any) -> None:
        file = f"evidence/{name}-{phase}-{seed}.json"
        self.tell("evaluated", **{"candidate": name, "phase": phase, "seed": seed, "level": "sealed", "file": file,
                                  "sha256": f"{file}-{score}", "score": score} | fields)  # fmt: skip

    def decide(self, name: str, decision: str, **fields: Any) -> None:
        self.tell("decided", **{"candidate": name, "decision": decision, "study": "continue", "says": ""} | fields)

    def bring(self, name: str, state: str) -> None:
        """Take a new candidate to a state on the shortest way there is."""
        self.propose(name)
        if state == "draft":
            return
        if state == "withdrawn":
            self.tell("moved", candidate=name, before="draft", after="withdrawn", why="asked")
            return
        self.validate(name)
        if state == "validated":
            return
        if state == "launched":
            self.intend(f"{name}-t", name, "trial", POOL)
            self.start(f"{name}-t")
            return
        if state == "debug":
            self.job(f"{name}-t", name, "trial", POOL, outcome="failed", spent={"seeds": 3, "seconds": 1.0})
            return
        self.job(f"{name}-t", name, "trial", POOL, scores=(4.0, 5.0, 6.0))
        if state in ("rejected", "inconclusive"):
            self.decide(name, state)
        elif state != "completed":
            self.decide(name, "advanced")
        if state == "confirmed":
            self.claim(name)
            self.decide(name, "confirmed")
        if state == "reverted":
            self.tell("moved", candidate=name, before="advanced", after="reverted", why="asked")

    def claim(self, name: str, seeds: tuple[int, ...] = (1000, 1001)) -> None:
        """Measure the head against the baseline as a confirmation does."""
        sides = ("baseline", name)
        for side in sides:
            self.job(f"{side}-{name}-c", side, "confirmation", seeds)
        for side in sides:
            hashes = {str(seed): f"{side}-{name}-{seed}" for seed in seeds}
            self.tell("weights", candidate=side, run=f"run_{side}-{name}-c", checkpoints=hashes)
        self.tell("drawn", purpose="confirm", first=10**6, episodes=50, candidates=list(sides))
        for side in sides:
            for seed in seeds:
                self.evaluate(side, "confirmation", seed, 5.0)
