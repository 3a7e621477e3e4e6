"""Write an evaluation script for a framework: a number from a checkpoint, or an error, never random actions.

Every script has the same interface: `--checkpoint FILE --episodes N --seed FIRST --out FILE.jsonl`. It plays whole
episodes with the seeds FIRST, FIRST+1, … and writes one JSON row per episode: episode, seed, return, length, success.
A missing or unreadable checkpoint ends it with exit code 6.
"""

from __future__ import annotations

import re
from pathlib import Path

from rlx.adopt.draft import Draft
from rlx.adopt.scan import Scan

FILE = "evals/rlx_eval.py"
_HEAD = '''"""Evaluate a checkpoint: whole episodes with fixed seeds, one JSON row per episode. Written by `rlx adopt`.

A missing or unreadable checkpoint ends the program with exit code 6. It never plays random actions instead.
"""

import argparse
import json
import sys
from pathlib import Path

FAILED_CLOSED = 6


def fail(message):
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(FAILED_CLOSED)


'''
_GYM = '''
def play(policy, env, seed):
    """Play one whole episode and return its row."""
    observation, info = env.reset(seed=seed)
    policy.reset()
    total, length, success = 0.0, 0, None
    terminated = truncated = False
    while not (terminated or truncated):
        observation, reward, terminated, truncated, info = env.step(policy.act(observation))
        total += float(reward)
        length += 1
        if "is_success" in info or "success" in info:
            success = bool(info.get("is_success", info.get("success")))
    row = {"seed": seed, "return": total, "length": length, "terminated": bool(terminated)}
    if success is not None:
        row["success"] = float(success)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first episode")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if not args.checkpoint.exists():
        fail(f"no checkpoint {args.checkpoint}")
    env = make_env()
    try:
        policy = Policy(args.checkpoint)
    except Exception as error:  # a loader may raise anything; without the policy, nothing is scored
        fail(f"{args.checkpoint} cannot be loaded: {type(error).__name__}: {error}")
    rows = []
    for number in range(args.episodes):
        rows.append({"step": number, "episode": number, **play(policy, env, args.seed + number)})
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text("".join(json.dumps(row) + "\\n" for row in rows))
    returns = [row["return"] for row in rows]
    print(f"return={sum(returns) / len(returns):.6g} episodes={len(returns)}")


if __name__ == "__main__":
    main()
'''
_SB3 = '''ENV = {env!r}
ALGO = {algo!r}


def make_env():
    import gymnasium
{imports}
    return gymnasium.make(ENV)


class Policy:
    """The stored SB3 policy; statistics of VecNormalize next to it are applied, and their absence is an error."""

    def __init__(self, path):
        import stable_baselines3

        library = stable_baselines3
        if not hasattr(library, ALGO):
            import sb3_contrib as library
        self.model = getattr(library, ALGO).load(path, device="cpu")
        self.normaliser = self._normaliser(path)
        self.reset()

    def _normaliser(self, path):
        files = [*path.parent.glob("*vecnormalize*.pkl"), *path.parent.glob("*vec_normalize*.pkl")]
        if not files and NORMALISED:
            raise RuntimeError("training normalises observations, and no VecNormalize file is next to the checkpoint")
        if not files:
            return None
        import pickle  # the file is as trusted as the checkpoint, which SB3 unpickles too

        return pickle.loads(files[0].read_bytes())

    def reset(self):
        self.state = None
        self.starts = True

    def act(self, observation):
        if self.normaliser is not None:
            observation = self.normaliser.normalize_obs(observation)
        action, self.state = self.model.predict(
            observation, state=self.state, episode_start=[self.starts], deterministic=True
        )
        self.starts = False
        return action


NORMALISED = {normalised!r}

'''
_GENERIC = '''ENV = {env!r}


def make_env():
    import gymnasium
{imports}
    return gymnasium.make(ENV)


class Policy:
    """The stored policy. Complete the two marked places; until then the evaluation fails closed."""

    def __init__(self, path):
        raise NotImplementedError("evals/rlx_eval.py: load the weights of {checkpoint} here")

    def reset(self):
        """Forget the memory of the last episode, if the policy has one."""

    def act(self, observation):
        raise NotImplementedError("evals/rlx_eval.py: return the deterministic action here")

'''
_RSL_RL = '''def make_runner():
    """Build the vector environment and its runner as the training program does; return both and the seed function.

    Complete this place from {program}; until then the evaluation fails closed.
    """
    raise NotImplementedError("evals/rlx_eval.py: build env and OnPolicyRunner(env, config, log_dir=None) here")


def play(env, policy, episodes):
    """Play whole episodes: every environment contributes the same number, so short episodes are not over-sampled."""
    import torch

    per_env = -(-episodes // env.num_envs)
    totals = torch.zeros(env.num_envs)
    lengths = torch.zeros(env.num_envs)
    counts = torch.zeros(env.num_envs, dtype=torch.long)
    rows = []
    observations = env.get_observations()
    if isinstance(observations, tuple):
        observations = observations[0]
    with torch.inference_mode():
        while int(counts.min()) < per_env:
            observations, rewards, dones, extras = env.step(policy(observations))[:4]
            totals += rewards.cpu()
            lengths += 1
            time_outs = extras.get("time_outs", torch.zeros_like(dones)).cpu()
            for index in dones.cpu().nonzero().flatten().tolist():
                if int(counts[index]) < per_env:
                    row = {{"env": index, "return": float(totals[index]), "length": int(lengths[index])}}
                    row["terminated"] = not bool(time_outs[index])
                    rows.append(row)
                counts[index] += 1
                totals[index] = 0.0
                lengths[index] = 0
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the seed of the environments")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if not args.checkpoint.is_file():
        fail(f"no checkpoint {{args.checkpoint}}")
    try:
        env, runner, set_seed = make_runner()
        runner.load(str(args.checkpoint))
        policy = runner.get_inference_policy()
    except Exception as error:  # a loader may raise anything; without the policy, nothing is scored
        fail(f"{{args.checkpoint}} cannot be loaded: {{type(error).__name__}}: {{error}}")
    set_seed(args.seed)
    rows = play(env, policy, args.episodes)
    if not rows:
        fail("no episode ended")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({{"step": number, "seed": args.seed, **row}}) for number, row in enumerate(rows)]
    args.out.write_text("\\n".join(lines) + "\\n")
    print(f"return={{sum(row['return'] for row in rows) / len(rows):.6g}} episodes={{len(rows)}}")


if __name__ == "__main__":
    main()
'''
_ENV_ID = re.compile(r"""(?:gym(?:nasium)?\.make|make_vec_env|make_env)\(\s*["']([\w./-]+-v\d+)["']""")
_ALGO = re.compile(r"\b(PPO|A2C|DQN|SAC|TD3|DDPG|TQC|QRDQN|RecurrentPPO|MaskablePPO|TRPO|ARS|CrossQ)\b\s*[.(]")


def eval_script(scan: Scan, draft: Draft) -> str:
    """Return the text of the evaluation script for a draft's framework."""
    kind = draft.profile.eval_template
    source = (scan.root / draft.program.file).read_text(encoding="utf-8", errors="replace")
    if kind == "rsl_rl":
        return _HEAD + _RSL_RL.format(program=draft.program.file)
    match = _ENV_ID.search(source)
    env = "CartPole-v1"
    if match:
        env = match[1]
    elif "env-id" in source or "env_id" in source:
        found = re.search(r"""env_id\s*[:=][^"'\\n]*["']([\w./-]+-v\d+)["']""", source)
        env = found[1] if found else env
    imports = ""
    for line in source.splitlines():
        package = re.match(r"import (\w+)\s*(#.*)?$", line)
        if package and (scan.root / package[1]).is_dir():
            imports += f"    import {package[1]}  # noqa: F401  it registers its environments\n"
    if kind == "sb3":
        algo = _ALGO.search(source)
        name = algo[1] if algo else "PPO"
        normalised = "VecNormalize(" in source
        return _HEAD + _SB3.format(env=env, algo=name, imports=imports, normalised=normalised) + _GYM
    return _HEAD + _GENERIC.format(env=env, imports=imports, checkpoint=draft.checkpoint or "the training") + _GYM


def write_eval_script(scan: Scan, draft: Draft, *, replaces: bool = False) -> Path | None:
    """Write the script into the repository; None if a file is there already and may not be replaced."""
    from rlx import files

    path = scan.root / FILE
    if path.exists() and not replaces:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, eval_script(scan, draft).encode())
    return path


def use_eval_script(draft: Draft) -> None:
    """Let the drafted task evaluate with the script."""
    python = draft.train[0]
    if python == "env":
        python = draft.train[2]
    if not python.rpartition("/")[2].startswith("python"):
        python = "python"
    draft.eval = [
        python, FILE, "--checkpoint", "{checkpoint}", "--episodes", "{episodes}", "--seed", "{episode_seed}",
        "--out", "{result}",
    ]  # fmt: skip
    draft.questions = [question for question in draft.questions if question.key != "adapter.eval"]
