"""Run one whole training as a user of Stable-Baselines3 or sbx writes it; needs nothing from rlx.

    python peer_train.py sb3|sbx SPEC.json FOLDER

It uses monitor files, a CSV logger, `EvalCallback` and `CheckpointCallback`, and evaluates the untrained and the
final policy like `rlx train`. The evaluation environments run in parallel, as rlx's do. The lengths of all evaluation
episodes are written to FOLDER/evaluated.json.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

MOST_PARALLEL = 10


def main(library: str, spec_file: str, folder: str) -> None:
    spec, place = json.loads(Path(spec_file).read_text()), Path(folder)
    from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.vec_env import VecNormalize

    env, seed, evals = spec["env"], spec["seed"], spec["eval"]
    vector: Any = make_vec_env(env["id"], n_envs=env["num_envs"], seed=seed, monitor_dir=str(place / "monitor"))
    parallel = min(MOST_PARALLEL, evals["episodes"])
    eval_vector: Any = make_vec_env(env["id"], n_envs=parallel, seed=seed + 1000)
    if env.get("normalize"):
        vector = VecNormalize(vector, gamma=spec["algo"]["gamma"])
        eval_vector = VecNormalize(eval_vector, training=False, norm_reward=False)
    model = make(library, spec["algo"], vector, seed)
    model.set_logger(configure(str(place), ["csv"]))
    report = partial(evaluate_policy, n_eval_episodes=evals["report_episodes"], return_episode_rewards=True)
    untrained: Any = report(model, eval_vector)
    every = evals["every"] // env["num_envs"]
    selection = EvalCallback(eval_vector, n_eval_episodes=evals["episodes"], eval_freq=every, log_path=str(place),
                             best_model_save_path=str(place / "best"), verbose=0)  # fmt: skip
    saving = CheckpointCallback(every, str(place / "checkpoints"), save_vecnormalize=True)
    model.learn(spec["algo"]["total_timesteps"], callback=[selection, saving])
    model.save(place / "latest")
    final: Any = report(model, eval_vector)
    lengths = [*untrained[1], *final[1], *(one for each in selection.evaluations_length for one in each)]
    (place / "evaluated.json").write_text(json.dumps([int(one) for one in lengths]))


def make(library: str, algo: dict[str, Any], vector: Any, seed: int) -> Any:
    """Return the library's PPO with the spec's hyperparameters, on one CPU thread."""
    settings = {
        "learning_rate": algo["learning_rate"], "n_steps": algo["rollout_steps"], "batch_size": algo["batch_size"],
        "n_epochs": algo["update_epochs"], "gamma": algo["gamma"], "gae_lambda": algo["gae_lambda"], "seed": seed,
    }  # fmt: skip
    if library == "sbx":
        from sbx import PPO as SbxPpo

        return SbxPpo("MlpPolicy", vector, **settings)
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    return PPO("MlpPolicy", vector, device="cpu", **settings)


if __name__ == "__main__":
    main(*sys.argv[1:])
