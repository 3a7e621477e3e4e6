"""Make a study the active one: commands use it if you name none. rlx also rewrites the file that agent hooks read.

Example: rlx study use faster
"""

from rlx.hosts.cli.arguments import Args, Data, Parser, find_study


def arguments(parser: Parser) -> None:
    parser.add_argument("study", metavar="STUDY", help="STUDY or TASK/STUDY")


def run(args: Args) -> Data:
    from rlx.loop.study.study_status import write_hook_file
    from rlx.study.study_folder import set_active

    study = find_study(args.study)
    set_active(study)
    write_hook_file(study)
    return {"task": study.task_name, "study": study.name}


def render(data: Data) -> str:
    return f"active: {data['task']}/{data['study']}\nnext: rlx next"
