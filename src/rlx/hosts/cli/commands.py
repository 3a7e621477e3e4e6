"""The table of commands: name, group and summary. A command's module is imported only when it is called."""

GROUPS = ("project", "design", "runs", "measuring", "understanding", "searching", "a study", "agents")

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("project", "make a project: rlx.toml and a config that trains"),
    "envs": ("project", "list environments: Gymnasium's and this project's own"),
    "config": ("project", "show, check or compare configs; print their JSON Schema"),
    "schema": ("project", "print the JSON Schema of a config, task, contract or candidate"),
    "docs": ("project", "print the reference on a topic"),
    "doctor": ("project", "check this machine: packages, GPU, disk, sandbox, hooks"),
    "completion": ("project", "print the completion script for bash, zsh or fish"),
    "recommend": ("design", "recommend algorithms and starting values for an environment, with reasons"),
    "spec": ("design", "describe an RL problem in spec.yaml: new, status, config"),
    "cards": ("design", "show knowledge cards: rules with conditions, checks and sources"),
    "train": ("runs", "train a config on one or more seeds"),
    "resume": ("runs", "continue a run from its newest valid checkpoint"),
    "stop": ("runs", "stop a run; its seeds save `latest` first"),
    "wait": ("runs", "wait for a run to end"),
    "logs": ("runs", "print the logs of a run's processes"),
    "watch": ("runs", "show a run's progress live"),
    "top": ("runs", "show all runs on a terminal, live"),
    "ls": ("runs", "list runs"),
    "info": ("runs", "show one run"),
    "tag": ("runs", "tag a run"),
    "untag": ("runs", "remove a tag"),
    "note": ("runs", "write a note on a run"),
    "rm": ("runs", "delete runs"),
    "plot": ("runs", "draw learning curves"),
    "ui": ("runs", "show runs, comparisons and studies in a browser"),
    "report": ("runs", "write runs, a study or a sweep as one HTML file that can be mailed"),
    "import": ("runs", "import finished runs of TensorBoard, W&B, MLflow, SB3, CSV and others"),
    "export": ("runs", "write metrics as CSV or TensorBoard events, policies for SB3"),
    "eval": ("measuring", "evaluate a run's checkpoints"),
    "video": ("measuring", "film a policy"),
    "replay": ("measuring", "replay one episode step by step: pictures, rewards, values, actions"),
    "compare": ("measuring", "decide whether run B is better than run A"),
    "noise": ("measuring", "measure how noisy a config is and which gains can be found at which cost"),
    "probe": ("measuring", "test a trained policy as one parameter of its environment varies"),
    "stress": ("measuring", "measure what noise, delays and other disturbances cost a trained policy"),
    "settle": ("measuring", "train and compare until it is decided whether B is better than A"),
    "analyze": ("understanding", "show what happened in a run, when, and how sure that is"),
    "diagnose": ("understanding", "list the failures of a run, their causes, and what to try"),
    "explain": ("understanding", "show which parts of the observation a policy uses"),
    "explain-metrics": ("understanding", "explain a run's metrics and their values"),
    "suggest": ("understanding", "suggest what to run next"),
    "summarize": ("understanding", "summarise a run or the project in a few lines"),
    "reflect": ("understanding", "show what each reward term did, and whether one is exploited"),
    "review": ("understanding", "find defects of a reward before you train with it"),
    "check": ("understanding", "check an environment, a spec, a candidate or a contract"),
    "sweep": ("searching", "search a space of configs; race and confirm the winner on fresh seeds"),
    "advisor": ("searching", "plan one improvement round for a run from its findings; train and confirm it"),
    "research": ("searching", "improve a run over several rounds, with one claim on fresh seeds at the end"),
    "lab": ("searching", "let an agent work on two files for hours, under a fixed evaluator"),
    "adopt": ("a study", "read a repository that does not know rlx, and draft its task"),
    "task": ("a study", "describe a problem in this repository"),
    "study": ("a study", "run a campaign under an approved contract: new, approve, baseline, report …"),
    "status": ("a study", "show the state of a study"),
    "next": ("a study", "print what to do next in a study"),
    "try": ("a study", "try one idea: propose, check, launch, wait and decide in one call"),
    "propose": ("a study", "propose a candidate"),
    "launch": ("a study", "launch a checked candidate"),
    "verdict": ("a study", "judge a candidate on its trained seeds"),
    "decide": ("a study", "apply the contract's decision rule to a candidate"),
    "mcp": ("agents", "serve rlx to an agent over MCP, on standard input and output"),
    "skills": ("agents", "install skills for Claude Code and Codex, or remove them"),
}


MODULES = {"try": "try_idea", "import": "import_runs"}
"""The modules of commands whose own name is a word of Python."""


def module_name(command: str) -> str:
    """Return the module of a command."""
    return f"rlx.hosts.cli.{MODULES.get(command, command.replace('-', '_'))}"
