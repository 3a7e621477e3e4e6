"""Show knowledge cards: rules of RL practice with a condition, a check, an evidence level and sources.

QUERY is a card's id or a few words. --for selects by signals: RUN (its config and findings), a spec file (also what the
environment showed), an environment id, or words that describe a task or name a stack. A card fires only on values that
are known. Evidence: A replicated, B one work, C practice without a source.

Example: rlx cards
         rlx cards reward shaping
         rlx cards --for cartpole_ppo_001
         rlx cards --for 'quadruped on rough terrain, isaaclab'
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import NotFound, UsageError, hint_for
from rlx.hosts.cli.arguments import Args, Data, Parser, add_trust, obey_trust
from rlx.hosts.cli.output import labelled, table

if TYPE_CHECKING:
    from rlx.design.signals import Signals

FULL = 3
"""Up to so many cards are shown in full."""


def arguments(parser: Parser) -> None:
    parser.add_argument("query", nargs="*", metavar="QUERY", help="a card's id, or words")
    subject = "a run, a spec file, an environment id, or words that describe a task"
    parser.add_argument("--for", dest="subject", metavar="SUBJECT", help=subject)
    parser.add_argument("--all", action="store_true", help="print every selected card in full")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.design.knowledge_card import ChosenCard, cards, choose, search

    obey_trust(args)
    query = " ".join(args.query)
    chosen = [ChosenCard(card, ()) for card in cards()]
    subject = None
    if args.subject is not None:
        subject = _kind(args.subject)
        chosen = choose(_signals(args.subject, subject))
    if query:
        wanted = {found.card.id: found for found in search(query)}
        if args.subject is None:
            chosen = list(wanted.values())
        else:
            chosen = [found for found in chosen if found.card.id in wanted]
        if not wanted:
            raise NotFound(f"no card matches `{query}`", hint="rlx cards")
    rows = [{**found.card.document(), "because": list(found.because)} for found in chosen]
    return {"query": query or None, "for": args.subject, "kind": subject, "count": len(rows), "cards": rows,
            "is_all": args.all or len(rows) <= FULL}  # fmt: skip


def _kind(subject: str) -> str:
    """Return whether a subject is a run, a spec, an environment or words."""
    from rlx.runs import project
    from rlx.runs.run import names

    if not subject.strip():
        raise UsageError("--for: nothing is named", hint="rlx cards --for 'grasp and place'")
    if subject.endswith((".yaml", ".yml")):
        return "spec"
    if subject in names(project.root()):
        return "run"
    if " " not in subject and (":" in subject or "-v" in subject):
        return "environment"
    return "words"


def _signals(subject: str, kind: str) -> Signals:
    from rlx.design import signals
    from rlx.runs import project
    from rlx.runs.run import names

    if kind == "words":
        known = signals.from_words(subject)
        if not any(known.values()):
            runs = names(project.root())
            hint = hint_for(subject, runs, otherwise="rlx cards --for 'grasp and place', or rlx cards")
            raise NotFound(f"--for {subject}: not a run, a spec or an environment, and no known task", hint=hint)
        return known
    if kind == "run":
        from rlx.diagnose.diagnose import diagnose
        from rlx.diagnose.load_case import read_case
        from rlx.hosts.cli.arguments import find_run

        case = read_case(find_run(subject))
        return signals.from_run(case, diagnose(case))
    if kind == "spec":
        from rlx.design.check_spec import signals_of_spec
        from rlx.design.problem_spec import read_playable_spec

        root = project.tree()
        return signals_of_spec(read_playable_spec(Path(subject), root=root), root=root)
    from rlx.config.schema import Env
    from rlx.design.env_profile import profile_env

    return profile_env(Env(id=subject), root=project.tree()).signals()


def render(data: Data) -> str:
    rows = data["cards"]
    if not rows:
        return f"no card fires for {data['for']}: its signals are unknown or fine\nnext: rlx cards"
    if data["is_all"]:
        return "\n\n".join(_full(row) for row in rows)
    lines = [[row["id"], row["evidence"], row["claim"]] for row in rows]
    note = f"{data['count']} cards. A: replicated, B: one work, C: practice"
    return f"{table(['card', 'evidence', 'claim'], lines)}\n{note}\nnext: rlx cards {rows[0]['id']}"


def _full(row: Data) -> str:
    fields = {
        "  because": ", ".join(row["because"]),
        "  when": row["when"],
        "  not when": row["not_when"],
        "  do": f"{row['action']['surface']}: {row['action']['change']}",
        "  check": f"{row['check']['metric']}: {row['check']['threshold']}",
        "  evidence": row["evidence"],
        "  source": row["sources"],
        "  uncertain": row["uncertainty"],
        "  topics": ", ".join(row["topics"]),
    }
    return f"{row['id']}: {row['claim']}\n{labelled(fields)}"
