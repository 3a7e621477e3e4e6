"""How the policy is trained: settings of rlx's learner. The learning rate is far too small."""

TRAINING = {
    "algo": {
        "name": "ppo",
        "learning_rate": 5e-05,
        "rollout_steps": 32,
        "batch_size": 256,
        "update_epochs": 20,
        "gamma": 0.98,
        "gae_lambda": 0.8,
        "entropy_coef": 0.0,
    },
    "policy": {"hidden_sizes": [32, 32]},
    "env": {},
}
