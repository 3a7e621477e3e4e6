"""The table of commands: name, group, one-line summary; a command's module is imported only when it is called."""

from __future__ import annotations

GROUPS = ("project", "runs", "measuring", "understanding", "a study", "agents")

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("project", "make a project: rlx.toml and a config that trains"),
    "envs": ("project", "list environments: Gymnasium's and this project's own"),
    "config": ("project", "show, check or compare configs; print their JSON Schema"),
    "schema": ("project", "print the JSON Schema of a config, task, contract or candidate"),
    "docs": ("project", "print the reference on a topic"),
    "doctor": ("project", "say what this machine has and what is missing"),
    "completion": ("project", "print the completion script for bash, zsh or fish"),
    "train": ("runs", "train a config on one or more seeds"),
    "resume": ("runs", "continue a run from its newest valid checkpoint"),
    "stop": ("runs", "stop a run; its seeds save `latest` first"),
    "wait": ("runs", "wait for a run to end"),
    "logs": ("runs", "print what a run's processes wrote"),
    "watch": ("runs", "show a run's progress live"),
    "ls": ("runs", "list runs"),
    "info": ("runs", "show one run"),
    "tag": ("runs", "tag a run"),
    "untag": ("runs", "remove a tag"),
    "note": ("runs", "write a note on a run"),
    "rm": ("runs", "delete runs"),
    "plot": ("runs", "draw learning curves"),
    "export": ("runs", "write metrics as CSV or TensorBoard events, policies for SB3"),
    "eval": ("measuring", "evaluate a run's checkpoints"),
    "video": ("measuring", "film a policy"),
    "compare": ("measuring", "is B better than A?"),
    "noise": ("measuring", "how noisy is a config, and what can be found at which cost?"),
    "probe": ("measuring", "where does a trained policy still work, as one parameter varies?"),
    "stress": ("measuring", "what do noise, delays and other disturbances cost a trained policy?"),
    "settle": ("measuring", "train and look until it is decided whether B is better than A"),
    "analyze": ("understanding", "what happened in a run, when, and how sure is that?"),
    "diagnose": ("understanding", "what is wrong with a run, why, and what to try"),
    "explain-metrics": ("understanding", "what a run's metrics mean and say"),
    "suggest": ("understanding", "what to run next"),
    "summarize": ("understanding", "a run or the project in a few lines"),
    "reflect": ("understanding", "what each reward term did, and whether one is farmed"),
    "review": ("understanding", "find what is wrong with a reward before it is trained on"),
    "task": ("a study", "describe a problem in this repository"),
    "study": ("a study", "a campaign under an approved contract: new, approve, baseline, report …"),
    "status": ("a study", "show where a study stands"),
    "next": ("a study", "say what to do next in a study"),
    "propose": ("a study", "propose a candidate"),
    "launch": ("a study", "launch a candidate through the one door"),
    "verdict": ("a study", "judge a candidate on what is trained"),
    "decide": ("a study", "let the contract's rule decide about a candidate"),
    "check": ("understanding", "check an environment, a candidate or a contract"),
    "mcp": ("agents", "serve rlx to an agent over MCP, on standard input and output"),
    "skills": ("agents", "install skills for Claude Code and Codex, or remove them"),
}


def module_name(command: str) -> str:
    """Return the module that holds a command."""
    return f"rlx.hosts.cli.{command.replace('-', '_')}"
