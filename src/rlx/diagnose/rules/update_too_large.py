"""The policy moves too far in one update."""

from __future__ import annotations

from rlx.diagnose.rule import PPO, Change, Limit, Rule, any_of

KL = Limit("train/approx_kl", above=0.03, strong=0.1)
KL_SPIKE = Limit("train/approx_kl", above=0.3, strong=2.0, statistic="max")
CLIPPED = Limit("train/clip_fraction", above=0.3, strong=0.5)

RULE = Rule(
    id="update_too_large",
    kind="cause",
    severity="high",
    says="the policy moves too far in an update",
    look=any_of(KL, KL_SPIKE, CLIPPED),
    limits=(KL, KL_SPIKE, CLIPPED),
    needs=("train/approx_kl|train/clip_fraction",),
    algorithms=PPO,
    source="Schulman et al. 2017 (target_kl .01 to .03); CleanRL's notes on PPO; CartPole prototypes",
    cannot_see="a single large update between two rows; algorithms without a KL",
    tries=("halve the learning rate", "fewer epochs an update", "stop an update at algo.target_kl 0.02"),
    changes=(
        Change("algo.learning_rate", times=0.3),
        Change("algo.update_epochs", to=4),
        Change("algo.target_kl", to=0.02),
    ),
    is_sudden=True,
)
