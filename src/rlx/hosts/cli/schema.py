"""Print the JSON Schema of a file that people or agents write: what it may hold, and what each part means.

Example: rlx schema candidate
         rlx schema contract > contract.schema.json
"""

from __future__ import annotations

import argparse
from typing import Any

KINDS = ("config", "task", "contract", "candidate")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, help="which kind of file")


def run(args: argparse.Namespace) -> dict[str, Any]:
    return {"kind": args.kind, "json_schema": json_schema(args.kind)}


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of one kind of file."""
    if kind == "config":
        from rlx.config.json_schema import json_schema as config_schema

        return config_schema()
    from rlx.config.schema import Section
    from rlx.study.candidate import Candidate
    from rlx.study.contract import Contract
    from rlx.study.task import Task

    models: dict[str, type[Section]] = {"task": Task, "contract": Contract, "candidate": Candidate}
    document = models[kind].model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": f"rlx {kind}"}


def render(data: dict[str, Any]) -> str:
    from rlx.files import encode_pretty

    return encode_pretty(data["json_schema"]).decode()
