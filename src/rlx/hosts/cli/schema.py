"""Print the JSON Schema of a file that people or agents write, with the meaning of each key.

`rlx schema candidate --kind KIND` prints only what a candidate of this kind needs, with an example.

Example: rlx schema candidate
         rlx schema candidate --kind "reward tuning"
         rlx schema contract > contract.schema.json
"""

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser

KINDS = ("config", "task", "contract", "candidate")


def arguments(parser: Parser) -> None:
    parser.add_argument("file", choices=KINDS, metavar="{config,task,contract,candidate}", help="the kind of file")
    parser.add_argument("--kind", metavar="KIND", help="of a candidate: the kind of change")


def run(args: Args) -> Data:
    if args.kind is None:
        return {"kind": args.file, "json_schema": json_schema(args.file)}
    from rlx.study.candidate.candidate import kind_document

    if args.file != "candidate":
        raise UsageError("--kind is about a candidate", hint="rlx schema candidate --kind code")
    return kind_document(args.kind)


def json_schema(kind: str) -> Data:
    """Return the JSON Schema of one kind of file."""
    if kind == "config":
        from rlx.config import json_schema as config_schema

        return config_schema.json_schema()
    from rlx.config.schema import Section
    from rlx.study.candidate.candidate import Candidate
    from rlx.study.contract.contract import Contract
    from rlx.study.task.task import Task

    models: dict[str, type[Section]] = {"task": Task, "contract": Contract, "candidate": Candidate}
    document = models[kind].model_json_schema()
    if kind == "candidate":
        from rlx.study.candidate.candidate import records_by_kind

        document["allOf"] = records_by_kind()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": f"rlx {kind}"}


def render(data: Data) -> str:
    from rlx.files import encode_pretty

    if "example" in data:
        return encode_pretty({key: value for key, value in data.items() if key != "kinds"}).decode()
    return encode_pretty(data["json_schema"]).decode()
