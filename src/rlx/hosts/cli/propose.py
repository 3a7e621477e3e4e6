"""Propose a candidate: one bounded change with a hypothesis, from a JSON file or from options.

A change of code gets a worktree of its own: edit the files there (or give --patch), then `rlx check candidate`.

Example: rlx propose --kind hyperparameter --hypothesis "a larger step learns faster" -s algo.learning_rate=0.001
         rlx propose --file candidate.json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

from rlx.errors import UsageError
from rlx.runs import project
from rlx.study.candidate import Kind


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="JSON; its schema: rlx schema candidate")
    parser.add_argument("--kind", choices=get_args(Kind), help="what is changed")
    parser.add_argument("--hypothesis", metavar="TEXT", help="why it should help")
    parser.add_argument("--predicts", type=float, metavar="X", help="the change of the metric that is expected")
    parser.add_argument("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="a config key to change")
    parser.add_argument("--record", action="append", default=[], metavar="NAME=TEXT", help="a record the kind asks for")
    parser.add_argument("--patch", type=Path, metavar="FILE", help="a change of code, as a git patch")
    parser.add_argument("--study", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.proposals import propose, read_proposal
    from rlx.study.study import find

    study = find(project.root(), args.study)
    if args.file and (args.kind or args.hypothesis or args.set or args.record or args.predicts is not None):
        raise UsageError("--file says what is proposed", hint="leave the other options out, or the file")
    if not args.file and not (args.kind and args.hypothesis):
        raise UsageError("a candidate has a kind and a hypothesis", hint="rlx propose --help shows an example")
    document = read_proposal(args.file) if args.file else _document(args)
    return propose(study, document, patch=args.patch)


def _document(args: argparse.Namespace) -> dict[str, Any]:
    changes = {key: value for text in args.set for key, value in [_pair(text)]}
    records = {key: value for text in args.record for key, value in [_split(text)]}
    predicts = {} if args.predicts is None else {"predicts": args.predicts}
    return {"kind": args.kind, "hypothesis": args.hypothesis, **predicts, "changes": changes, "records": records}


def _pair(text: str) -> tuple[str, Any]:
    from rlx.config import yaml_lines

    key, value = _split(text)
    return key, yaml_lines.value(value, source=f"-s {key}")


def _split(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise UsageError(f"`{text}` is not KEY=VALUE", hint="-s algo.learning_rate=0.001")
    return key.strip(), value


def render(data: dict[str, Any]) -> str:
    lines = [f"candidate: {data['candidate']} ({data['kind']}, builds on {data['builds_on']})"]
    if data["worktree"]:
        lines.append(f"worktree: {data['worktree']}")
    lines += [f"note: {one}" for one in data["notes"]]
    return "\n".join([*lines, f"next: {data['command']}"])
