"""Runs as plain values: healthy ones, and for every rule one that it must find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rlx.diagnose.curve_shape import Floats
from rlx.diagnose.run_case import NOTHING, RETURN, EvaluationScore, OtherRunScore, RunCase, SeedCase
from rlx.runs.metrics import Series

ROWS = 60
STEPS = np.arange(1, ROWS + 1) * 1000.0
CONFIG = {
    "env": {"id": "Own-v0", "normalize": {"obs": False, "reward": False}, "vectorization": "auto"},
    "algo": {
        "name": "ppo", "learning_rate": 3e-4, "gamma": 0.99, "max_grad_norm": 0.5, "update_epochs": 10,
        "target_kl": None, "entropy_coef": 0.0, "clip_range": 0.2, "total_timesteps": 60_000, "rollout_steps": 256,
    },
}  # fmt: skip
OFF_POLICY = {
    "env": CONFIG["env"],
    "algo": {
        "name": "dqn", "learning_rate": 1e-3, "gamma": 0.99, "max_grad_norm": 10.0, "batch_size": 64, "tau": 1.0,
        "buffer_size": 50_000, "learning_starts": 1000, "target_update_every": 500, "total_timesteps": 60_000,
    },
}  # fmt: skip


def wobble(level: float, *, share: float = 0.1, seed: int = 0) -> Floats:
    """Return a positive series around a level."""
    return np.asarray(level * np.exp(share * np.random.default_rng(seed).normal(size=ROWS)))


def noise(level: float, sd: float, seed: int = 0) -> Floats:
    return np.asarray(level + sd * np.random.default_rng(seed).normal(size=ROWS))


LEARNS = 20 + 180 / (1 + np.exp(-(np.arange(ROWS) - 20) / 5)) + noise(0, 4, seed=1)
FLAT = noise(20, 2, seed=2)
LOST = np.concatenate([LEARNS[:40], noise(25, 3, seed=3)[:20]])
WORSE = 20 - 90 / (1 + np.exp(-(np.arange(ROWS) - 20) / 5)) + noise(0, 2, seed=4)
SWINGS = np.concatenate([np.linspace(20, 150, 20), 120 + 90 * np.sign(np.sin(np.arange(40) / 2.5))])

HEALTHY: dict[str, Floats] = {
    RETURN: LEARNS, "rollout/length_mean": LEARNS, "rollout/return_std": wobble(30), "rollout/truncated_share":
    np.linspace(0, 0.4, ROWS), "rollout/episodes": np.arange(ROWS) * 10.0,
    "train/approx_kl": wobble(0.01), "train/clip_fraction": wobble(0.1), "train/entropy_share":
    np.linspace(0.99, 0.5, ROWS), "train/explained_variance": np.linspace(0.1, 0.8, ROWS),
    "train/learning_rate": np.full(ROWS, 3e-4), "train/gradient_norm": wobble(2.0), "train/target_abs": wobble(20.0),
    "train/value_abs": wobble(19.0), "obs/max_abs": wobble(3.0), "obs/constant_share": np.zeros(ROWS),
    "obs/std_ratio": wobble(8.0), "reward/mean_abs": wobble(1.0), "reward/max_abs": wobble(1.0, share=0.0),
    "reward/std": wobble(0.1), "reward/nonzero_share": np.ones(ROWS), "action/top_share": wobble(0.6, share=0.01),
    "action/unused_share": np.zeros(ROWS), "time/steps_per_second": wobble(3000), "time/env_share": wobble(0.4),
}  # fmt: skip
HEALTHY_DQN: dict[str, Floats] = {
    **{name: values for name, values in HEALTHY.items() if name.split("/")[0] != "train"},
    "train/exploration_rate": np.maximum(0.05, np.linspace(1, -4, ROWS)), "train/loss": wobble(0.5),
    "train/q_mean": np.linspace(0, 60, ROWS), "train/learning_rate": np.full(ROWS, 1e-3), "train/updates": STEPS / 4,
    "replay/capacity": np.full(ROWS, 50_000.0), "replay/size": STEPS.clip(max=50_000),
}  # fmt: skip
HEALTHY_SAC: dict[str, Floats] = {
    **{name: values for name, values in HEALTHY.items() if name.split("/")[0] not in ("train", "action")},
    "train/ent_coef": np.geomspace(1, 0.02, ROWS), "train/critic_loss": wobble(2.0), "train/actor_loss": wobble(5.0),
    "train/q_mean": np.linspace(0, 60, ROWS), "action/saturation": wobble(0.1), "train/learning_rate":
    np.full(ROWS, 3e-4), "replay/capacity": np.full(ROWS, 1e6),
}  # fmt: skip


def seed_case(number: int, metrics: Mapping[str, Any], *, jitter: bool = True, **fields: Any) -> SeedCase:
    """Return a seed with these series; each seed's returns differ a little."""
    shift = noise(0, 1, seed=50 + number) if jitter else 0.0
    series = {
        name: Series(STEPS, np.asarray(values, dtype=np.float64) + (shift if name == RETURN else 0.0))
        for name, values in metrics.items()
    }
    last = float(np.median(series[RETURN].values[-10:])) if RETURN in series else 20.0
    told: dict[str, Any] = {
        "step": int(STEPS[-1]),
        "evaluations": Series(STEPS[5::6], series[RETURN].values[5::6]) if RETURN in series else NOTHING,
        "untrained": EvaluationScore(18.0, 5.0, 20, 18.0),
        "report": EvaluationScore(last, 10.0, 20, last),
    }  # fmt: skip
    return SeedCase(number, series=series, **{**told, **fields})


def case(
    metrics: Mapping[str, Any],
    *,
    config: Mapping[str, Any] = CONFIG,
    seeds: int = 1,
    jitter: bool = True,
    **fields: Any,
) -> RunCase:
    """Return a run whose seeds have these series."""
    some = tuple(seed_case(number, metrics, jitter=jitter, **fields) for number in range(seeds))
    return RunCase(
        "own_001", config["algo"]["name"], config, 60_000, some, random=EvaluationScore(20.0, 6.0, 20, 20.0)
    )  # fmt: skip


def sac(**settings: Any) -> dict[str, Any]:
    return {"env": CONFIG["env"], "algo": {**OFF_POLICY["algo"], "name": "sac", **settings}}


def dqn(**settings: Any) -> dict[str, Any]:
    return {"env": CONFIG["env"], "algo": {**OFF_POLICY["algo"], **settings}}


def ill(returns: Floats = FLAT, *, of: Mapping[str, Any] = HEALTHY, **metrics: Any) -> dict[str, Any]:
    """Return a healthy run's series with bad returns and some metrics exchanged (`train__approx_kl`)."""
    return {**of, RETURN: returns, **{name.replace("__", "/"): values for name, values in metrics.items()}}


def disagreeing() -> RunCase:
    good, bad = case(HEALTHY, seeds=3), case(ill(), seeds=2)
    return replace(good, seeds=(*good.seeds, *(replace(seed, seed=seed.seed + 3) for seed in bad.seeds)))


def terms(**shares: float) -> dict[str, Floats]:
    return {f"reward/term_abs/{name}": np.full(ROWS, share) for name, share in shares.items()}


STOPS = np.minimum(np.linspace(0, 2, ROWS), 1)
GROWN = np.concatenate([np.linspace(20, 200, 30), np.full(30, 200.0)])

FIRES: dict[str, RunCase] = {
    "not_finite": case(ill(train__value_loss=np.where(np.arange(ROWS) > 40, np.nan, 1.0))),
    "crashed": case(HEALTHY, state="failed", reason="ZeroDivisionError: division by zero"),
    "missing_metric": case({"train/loss": wobble(1.0)}),
    "observation_constant": case(ill(obs__constant_share=np.full(ROWS, 1.0))),
    "observation_scale": case(ill(obs__max_abs=wobble(300.0))),
    "no_signal": case(ill(np.zeros(ROWS), rollout__return_std=np.zeros(ROWS)), jitter=False),
    "learning_rate": case(ill(train__learning_rate=np.full(ROWS, 0.05))),
    "update_too_large": case(ill(LOST, train__approx_kl=wobble(0.08), train__clip_fraction=wobble(0.45))),
    "value_explosion": case(ill(of=HEALTHY_DQN, train__q_mean=np.geomspace(1, 5000, ROWS)), config=dqn()),
    "reward_scale": case(ill(train__gradient_norm=wobble(900.0), train__target_abs=wobble(2000.0))),
    "policy_frozen": case(ill(train__approx_kl=wobble(1e-6), train__clip_fraction=np.zeros(ROWS))),
    "entropy_collapse": case(ill(train__entropy_share=np.geomspace(0.9, 0.001, ROWS))),
    "one_sided_action": case(ill(action__top_share=np.full(ROWS, 1.0))),
    "action_saturation": case(ill(of=HEALTHY_SAC, action__saturation=wobble(0.99, share=0.0)), config=sac()),
    "exploration_never_annealed": case(ill(of=HEALTHY_DQN, train__exploration_rate=np.full(ROWS, 0.9)), config=dqn()),
    "exploration_missing": case(ill(of=HEALTHY_DQN, train__exploration_rate=np.zeros(ROWS)), config=dqn()),
    "replay_too_small": case(ill(of=HEALTHY_DQN, replay__capacity=np.full(ROWS, 200.0)), config=dqn()),
    "learning_starts_late": case(ill(of=HEALTHY_DQN), config=dqn(learning_starts=40_000)),
    "few_updates": case(ill(of=HEALTHY_DQN, train__updates=np.arange(ROWS) * 2.0), config=dqn()),
    "stale_target": case(ill(of=HEALTHY_DQN), config=dqn(target_update_every=30_000)),
    "short_sighted": case(ill(), config={**CONFIG, "algo": {**CONFIG["algo"], "gamma": 0.5}}),
    "failure_as_truncation": case(ill(rollout__truncated_share=np.ones(ROWS))),
    "limit_as_termination": case({**HEALTHY, "rollout/length_mean": GROWN, "rollout/truncated_share": np.zeros(ROWS)}),
    "cut_short": case(ill(rollout__truncated_share=np.ones(ROWS), rollout__length_mean=np.full(ROWS, 8.0))),
    "reward_hacking": case({**HEALTHY, "rollout/success_rate": np.linspace(0.6, 0.1, ROWS)}),
    "task_not_done": case(
        {
            **HEALTHY,
            "rollout/success_rate": np.full(ROWS, 0.01),
            "rollout/length_mean": np.linspace(90, 40, ROWS),
            "rollout/truncated_share": np.linspace(0.9, 0.1, ROWS),
        },
        seeds=3,
    ),
    "term_domination": case({**ill(), **terms(alive=0.95, task=0.05)}),
    "term_saturation": case({**ill(), "reward/term/near": STOPS, "rollout/success_rate": 0.3 * STOPS}),
    "term_constant": case({**ill(), "reward/term/alive": np.full(ROWS, 1.0)}),
    "critic_uninformative": case(ill(train__explained_variance=noise(-0.1, 0.05))),
    "greedy_gap": case(HEALTHY, report=EvaluationScore(40.0, 5.0, 20, 40.0)),
    "train_eval_gap": case(
        HEALTHY, config={**CONFIG, "eval": {"env": {"id": "Other-v0"}}}, report=EvaluationScore(40.0, 5.0, 20, 40.0)
    ),
    "worse_than_random": case({**HEALTHY, RETURN: WORSE}, report=EvaluationScore(9.0, 1.0, 20, 9.0)),
    "collapse_after_peak": case(ill(LOST)),
    "getting_worse": case(ill(WORSE)),
    "no_learning": case(ill()),
    "instability": case(ill(SWINGS)),
    "seeds_disagree": disagreeing(),
    "plateau": replace(case(HEALTHY), reachable=900.0, reachable_steps=50_000),
    "outdone": replace(case(HEALTHY), best_other_run=OtherRunScore("better_001", 900.0, 50_000)),
    "selection_bias": case(
        HEALTHY, best=EvaluationScore(90.0, 10.0, 20, 90.0), claimed=EvaluationScore(190.0, 10.0, 10, 190.0)
    ),
    "throughput_collapse": case({**HEALTHY, "time/steps_per_second": np.geomspace(3000, 100, ROWS)}),
    "env_bound": case({**HEALTHY, "time/env_share": wobble(0.95, share=0.0)}),
}
SOUND: dict[str, RunCase] = {
    "ppo": case(HEALTHY, seeds=5),
    "ppo, one seed": case(HEALTHY),
    "dqn": case(HEALTHY_DQN, config=dqn(), seeds=3),
    "sac": case(HEALTHY_SAC, config=sac(), seeds=3),
    "ppo, early in training": replace(case(HEALTHY, state="running", step=3000), planned_steps=1_000_000),
}
