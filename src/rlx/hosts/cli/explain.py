"""Show which parts of the observation a policy uses, and how its value changes with them.

rlx plays episodes of the report protocol and applies several methods to what the policy saw. Permutation shuffles one
number among all observations and measures how much the actions change. Gradients and integrated gradients ask the
network; `completeness` in the JSON is the error of the integral. Images are explained by occlusion: covering one patch
at a time. For a recurrent policy, rlx also shows the range of its hidden state and its attention over time: how much
the action changes if an earlier observation is exchanged.

Example: rlx explain cartpole_ppo_001
         rlx explain cartpole_ppo_001:latest --episodes 10 --out explained.png
         rlx explain cartpole_ppo_001 --method permutation --json
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import (
    Args,
    Data,
    Parser,
    add_picture,
    add_trust,
    obey_trust,
    refuse_below_one,
    refuse_picture,
)
from rlx.hosts.cli.format import NOTHING, counted, figure, percent
from rlx.hosts.cli.output import labelled, say, table
from rlx.hosts.cli.progress import Count
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.evaluate.explain.saliency import Observations
    from rlx.evaluate.video.subject import PolicySubject

METHODS = ("all", "gradients", "permutation")
MOST_SHOWN = 20
ROUGH = 0.05
"""A larger error of the integrated gradients is named in a note."""


def arguments(parser: Parser) -> None:
    parser.add_argument("reference", metavar="POLICY", help="a run (best), RUN:latest, or the folder of a checkpoint")
    parser.add_argument("--method", choices=METHODS, default="all", help="(default: all)")
    parser.add_argument("--episodes", type=int, default=5, metavar="N", help="episodes to play (default: 5)")
    parser.add_argument("--observations", type=int, default=500, metavar="N", help="keep at most N (default: 500)")
    parser.add_argument("--seed", type=int, metavar="K", help="the training seed (default: the best)")
    add_picture(parser, where="a PNG in the run's plots folder")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.evaluate.explain import saliency
    from rlx.evaluate.explain.attention import attention_over_time
    from rlx.evaluate.video.subject import find_subject
    from rlx.hosts.plots.explanation import draw

    obey_trust(args)
    refuse_below_one(args, "episodes", "observations")
    refuse_picture(args.out)
    subject = find_subject(args.reference, root=project.root(), seed=args.seed)
    for text in subject.notes:
        say(f"note: {text}")
    seen = saliency.collect(subject, episodes=args.episodes, most=args.observations, progress=Count("observations"))
    saliency.refuse_few(seen)
    features: dict[str, Data] = {}
    notes: list[str] = []
    if args.method != "gradients":
        for name, change in saliency.permutation_importance(subject.policy, seen).items():
            features.setdefault(name, {"name": name})["permutation"] = change
    completeness = None
    if args.method != "permutation":
        completeness = _gradients(subject, seen, features, notes, is_required=args.method == "gradients")
    ranked = sorted(features.values(), key=_importance, reverse=True)
    maps = saliency.occlusion(subject.policy, seen)
    area = None
    if len(ranked) > 1 and all("[" in feature["name"] for feature in ranked[:2]):
        area = saliency.value_slice(subject.policy, seen, (ranked[0]["name"], ranked[1]["name"]))
    attention = attention_over_time(subject.policy, seen.episodes, seen.space)
    out = args.out or _default_path(subject)
    draw(ranked, out, slice_of=area, heat=next(iter(maps.values()), None), attention=attention)
    return {
        "run": subject.run and subject.run.name, "seed": subject.seed, "checkpoint": subject.checkpoint.name,
        "env": subject.protocol.env.id, "observations": seen.count, "features": ranked, "completeness": completeness,
        "occlusion": {name: heat.tolist() for name, heat in maps.items()}, "slice": area and _slice(area),
        "hidden": None if seen.hidden is None else saliency.hidden_range(seen.hidden),
        "attention": [{"steps_back": lag, "change": value} for lag, value in attention.items()], "notes": notes,
        "picture": str(out),
    }  # fmt: skip


def _importance(feature: Data) -> float:
    """Return the figure by which parts are ranked: permutation if it is there, otherwise integrated gradients."""
    return float(feature.get("permutation") or feature.get("integrated") or 0.0)


def _gradients(
    subject: PolicySubject, seen: Observations, features: dict[str, Data], notes: list[str], *, is_required: bool
) -> float | None:
    """Add the gradients to the features, and return the error of the integrated ones; a note if there are none."""
    from rlx.evaluate.explain.saliency import gradient_saliency
    from rlx.evaluate.policy_internals import Differentiable

    policy: Any = subject.policy
    try:
        if not isinstance(policy, Differentiable):
            raise UsageError("this policy's network cannot be differentiated", hint="--method permutation")
        found = gradient_saliency(policy, seen)
    except UsageError as error:
        if is_required:
            raise
        notes.append(f"no gradients: {error.message}")
        return None
    for index, name in enumerate(found.names):
        row = features.setdefault(name, {"name": name})
        row |= {"gradient": float(found.gradient[index]), "integrated": float(found.integrated[index])}
        if found.value_gradient is not None:
            row["value_gradient"] = float(found.value_gradient[index])
    if found.completeness > ROUGH:
        missed = percent(found.completeness)
        notes.append(f"the integrated gradients miss {missed} of the difference: read them with care")
    return found.completeness


def _slice(value: Any) -> Data:
    return {"names": list(value.names), "x": value.x.tolist(), "y": value.y.tolist(), "values": value.values.tolist()}


def _spell_attention(rows: list[Data]) -> str | None:
    """Spell how much the action changes with an observation so many steps back."""
    if not rows:
        return None
    return ", ".join(f"{row['steps_back']} steps back {figure(row['change'])}" for row in rows)


def _default_path(subject: PolicySubject) -> Path:
    name = f"explanation_{subject.title.replace(', ', '_').replace(' ', '_')}.png"
    if subject.run:
        return subject.run.path / "plots" / name
    return Path(name)


def render(data: Data) -> str:
    policy = data["checkpoint"]
    if data["run"]:
        policy = f"{data['run']}, seed {data['seed']}, {policy}"
    keys = ("permutation", "integrated", "gradient", "value_gradient")
    rows = [[feature["name"], *(figure(feature.get(key)) for key in keys)] for feature in data["features"][:MOST_SHOWN]]
    blocks = [labelled({"policy": policy, "observations": f"{data['observations']:,} of {data['env']}"})]
    if rows:
        blocks.append(table(["part", "permutation", "integrated", "gradient", "of the value"], rows, right=range(1, 5)))
    more = len(data["features"]) - MOST_SHOWN
    error = None
    if data["completeness"] is not None:
        error = percent(data["completeness"])
    hidden = None
    if data["hidden"]:
        state = data["hidden"]
        hidden = f"{figure(state['low'])} to {figure(state['high'])}, {percent(state['saturated'])} near its limits"
    occluded = [f"{name}: strongest patch {figure(max(map(max, heat)))}" for name, heat in data["occlusion"].items()]
    blocks.append(labelled({
        "more": f"{counted(more, 'part')} (--json)" if more > 0 else None,
        "error of the integrated gradients": error,
        "hidden state": hidden,
        "attention": _spell_attention(data["attention"]),
        "occlusion": occluded,
        "note": data["notes"],
        "picture": data["picture"] or NOTHING,
    }))  # fmt: skip
    return "\n\n".join(blocks)
