"""The meaning of every metric that rlx logs."""

from __future__ import annotations

MEANINGS: dict[str, str] = {
    "rollout/episodes": "episodes ended so far",
    "rollout/return_mean": "mean return of the recent training episodes (at most 100)",
    "rollout/return_std": "spread of the recent training returns",
    "rollout/length_mean": "mean length of the recent training episodes, in steps",
    "rollout/success_rate": "share of recent episodes with is_success",
    "rollout/truncated_share": "share of ended episodes that were truncated, by a time limit for example",
    "train/policy_loss": "loss of the policy; its size means little, but NaN is a failure",
    "train/value_loss": "mean squared error of the critic, in squared returns: it grows with them",
    "train/loss": "the loss that was minimised last",
    "train/entropy": "entropy of the policy, in nats: how much it explores",
    "train/entropy_share": "entropy / its largest value: 1 acts at random, 0 does not explore",
    "train/approx_kl": "how far an update moved the policy (approximate Kullback-Leibler divergence)",
    "train/clip_fraction": "share of samples that PPO clipped",
    "train/clip_range": "how far PPO lets a probability ratio move",
    "train/clip_range_vf": "how far PPO lets a value move",
    "train/explained_variance": "share of the returns' variance that the critic explains: 1 all, 0 none, below 0 worse",
    "train/std": "standard deviation of the Gaussian policy, mean over actions",
    "train/learning_rate": "the optimizer's learning rate",
    "train/updates": "gradient steps (or epochs) so far",
    "train/gradient_norm": "length of the gradient before it is clipped",
    "train/target_abs": "mean size of the critic's targets",
    "train/value_abs": "mean size of the critic's values",
    "train/q_mean": "the critic's mean value of the newest transitions",
    "train/exploration_rate": "share of random actions (ε)",
    "train/ent_coef": "weight of the entropy bonus (SAC's α)",
    "train/ent_coef_loss": "loss of the entropy weight",
    "train/actor_loss": "loss of the policy; roughly −Q",
    "train/critic_loss": "squared error of the critic, in squared rewards",
    "train/line_search_success": "share of TRPO's line searches that found a step",
    "obs/max_abs": "largest input of the network, in size",
    "obs/constant_share": "share of the network's inputs that never changed",
    "obs/std_ratio": "largest / smallest spread of the network's inputs",
    "reward/mean_abs": "mean size of a step's reward, as the environment paid it",
    "reward/std": "spread of the steps' rewards",
    "reward/max_abs": "largest reward of a step, in size",
    "reward/nonzero_share": "share of steps with a reward other than 0",
    "reward/term/*": "mean per step of one reward term",
    "reward/term_abs/*": "mean size per step of one reward term",
    "action/top_share": "share of the most frequent action",
    "action/unused_share": "share of actions that were never taken",
    "action/saturation": "share of action components at a bound",
    "time/steps_per_second": "environment steps per second since the last row",
    "time/cpu_seconds": "CPU time of the training process so far",
    "time/memory_mb": "resident memory of the training process",
    "time/env_share": "share of the time spent inside the environment's step",
    "replay/size": "transitions in the replay buffer",
    "replay/capacity": "transitions the replay buffer can hold",
}


def meaning(metric: str) -> str | None:
    """Return what a metric means, or None if rlx does not know it."""
    if metric in MEANINGS:
        return MEANINGS[metric]
    return next((text for name, text in MEANINGS.items() if name.endswith("*") and metric.startswith(name[:-1])), None)
