"""For every topic and workflow two sentences of a user, and near misses that must lead to none of them."""

SENTENCES = {
    "defining-state-space": (
        "Which sensors and features belong into the observation?",
        "Does my state leak the reward?",
    ),
    "defining-action-space": (
        "Should I use discrete or continuous actions?",
        "How do I set action masks and torque bounds?",
    ),
    "designing-reward-function": (
        "My reward shaping terms dominate each other",
        "How large should the bonus of a sparse reward be?",
    ),
    "defining-mdp-transition": (
        "Which discount gamma fits my horizon?",
        "Is a time limit a termination or a truncation?",
    ),
    "selecting-rl-strategy": ("Which algorithm should I choose, PPO or SAC?", "Recommend an algorithm, dqn or td3"),
    "blueprinting-system-architecture": (
        "Blueprint the system: actors, learner and GPU placement",
        "Which processes go on the CPU and which on the GPU?",
    ),
    "formulating-marl-architecture": (
        "Formulate a cooperative team of agents",
        "Central or decentralised training for a competitive team?",
    ),
    "designing-hierarchical-rl": (
        "A manager sets subgoals for a worker",
        "Should I use options and a hierarchy of skills?",
    ),
    "formulating-irl-and-imitation": (
        "I have demonstrations of an expert, do I need inverse RL?",
        "Plan imitation with demos of an expert that I can query",
    ),
    "implementing-gymnasium-env": (
        "Write my own gymnasium env with step and reset",
        "How do I implement a custom gymnasium API?",
    ),
    "integrating-physics-simulator": (
        "MuJoCo contact gives nan, which timestep?",
        "Integrate a pybullet or brax simulator with the right physics dt",
    ),
    "implementing-observation-wrappers": (
        "Normalise inputs with a running mean (welford)",
        "grayscale and resize wrapper",
    ),
    "implementing-temporal-wrappers": (
        "Frame stack of four and frame skip",
        "Add the remaining time with a temporal wrapper",
    ),
    "implementing-domain-randomization": (
        "ADR: widen friction and mass ranges",
        "How do I vary friction with domain randomisation?",
    ),
    "validating-env-compatibility": (
        "Validate determinism and aliasing of vectorised environments",
        "Is my vectorised env equal to the single one? compatibility suite",
    ),
    "implementing-pettingzoo-marl-env": (
        "PettingZoo AEC or parallel API?",
        "An agent dies in my pettingzoo env, agent death",
    ),
    "designing-adversarial-environments": (
        "Generate levels by regret with PAIRED",
        "A procedural curriculum of levels, UED",
    ),
    "designing-feature-extractor": ("CNN encoder for images and a multimodal dict", "Feature extractor with layernorm"),
    "designing-policy-actor": ("tanh gaussian actor, log std bounds", "A squashed policy head distribution"),
    "designing-value-critic": ("Twin critic with polyak target tau", "My Q critic has overestimation"),
    "implementing-memory-models": (
        "LSTM with burn-in and hidden state resets",
        "The agent must remember: recurrent memory, bptt",
    ),
    "configuring-replay-buffers": ("Prioritised replay with a sumtree", "HER hindsight buffer and warm-up"),
    "implementing-loss-functions": ("PPO clip loss and surrogate KL", "gradient norm and GAE advantage in the losses"),
    "implementing-marl-algorithms": ("Implement QMIX mixing", "MAPPO or IPPO credit among agents"),
    "implementing-offline-rl": ("CQL or IQL on logged data", "conservative offline RL without environment"),
    "implementing-imitation-learning": ("Behaviour cloning, DAgger and GAIL", "Train a GAIL discriminator"),
    "training-rlhf-reward-model": (
        "Reward model from human preferences, Bradley Terry",
        "RLHF: learned reward from pairwise feedback",
    ),
    "setting-up-experiment-tracking": (
        "Log metrics to tensorboard and wandb",
        "How do I record an experiment for tracking on a dashboard?",
    ),
    "configuring-hyperparameter-tuning": ("Hyperparameter search with optuna trials", "Set up a sweep for HPO"),
    "configuring-distributed-rollouts": (
        "num_envs and minibatch arithmetic for rollouts",
        "How many workers, which batch size?",
    ),
    "configuring-checkpoint-strategy": (
        "Which checkpoints to keep on disk?",
        "Save the latest and resume: checkpoint retention",
    ),
    "setting-up-offline-rl-datasets": (
        "Build a Minari dataset and store transitions",
        "Collect episodes in hdf5 for an offline dataset",
    ),
    "setting-up-rlhf-data-pipeline": (
        "Annotators label pairs, agreement kappa",
        "Pipeline for preference labels with a hold-out",
    ),
    "designing-deterministic-eval-loop": (
        "Evaluation protocol with fixed seeds and greedy episodes",
        "Measure a score: how many test episodes in a deterministic evaluation?",
    ),
    "creating-ood-robustness-tests": (
        "Out of distribution shift with a control arm",
        "Is my policy brittle? robustness under perturbation",
    ),
    "implementing-rendering-and-plotting": ("Plot curves with IQM bands", "Render a video and a figure"),
    "analyzing-saliency-and-values": (
        "Saliency with integrated gradients",
        "Explain which inputs matter: attribution, grad-cam",
    ),
    "diagnosing-training-failures": (
        "Training collapsed to nan, diagnose",
        "My agent is stuck on a plateau and not learning",
    ),
    "evaluating-marl-equilibria": (
        "Exploitability and Nash equilibrium of self-play",
        "Elo and cross-play of zero-sum agents",
    ),
    "conducting-adversarial-rl-testing": ("FGSM attack with an epsilon sweep", "adversarial attack, worst case"),
    "mobile-robots": ("A wheeled mobile robot with lidar navigation", "Social navigation and docking of a robot"),
    "manipulation": ("An arm that grasps and places, insertion of a peg", "Dexterous hand, bimanual manipulation"),
    "whole-body": ("Quadruped walking on terrain", "Humanoid locomotion and command tracking gait"),
    "sim-to-real": ("Sim-to-real transfer to hardware", "Deploy on the real robot: sim2real gap"),
    "stacks": ("I have an Isaac Lab repository with rsl_rl", "Adopt my existing cleanrl or rllib framework"),
    "architect": ("Design an RL solution from scratch", "Plan the whole problem as an architect"),
    "environment": (
        "I am the environment engineer: build and verify it",
        "environment workflow: build simulator, verify wrappers",
    ),
    "algorithm": (
        "algorithm engineer: build the learner networks and train",
        "Implement the learner: algorithm engineer",
    ),
    "evaluation": (
        "evaluator: measure, compare and understand a policy",
        "Understand and compare my policy, evaluation",
    ),
    "operations": ("mlops: run many experiments at scale", "Operations: tune and scale many experiments"),
}

NEAR_MISSES = (
    "Book a flight to Lisbon for Monday", "Fix the CSS of the login page", "Summarise this contract for a lawyer",
    "Write a haiku about autumn", "Convert this spreadsheet to JSON", "Why does npm install fail?",
    "Translate the letter into French", "What is the capital of Peru?", "Refactor the payment service",
    "Add a dark theme to the website", "Why is the sky blue?", "Draft an email to the landlord",
    "Deduplicate rows in a SQL table", "How long do I boil an egg?", "Set up a Kubernetes ingress",
    "Fix the failing unit tests in Go", "Make a shopping list", "Explain quantum entanglement to a child",
    "Prove that the square root of two is irrational", "Sort a linked list in C", "Configure the office printer",
    "Rename all photos by date", "Which laptop is good for students?", "Write a cover letter",
    "Parse dates in JavaScript", "Who won the football cup?", "Compress this PDF", "Draw a family tree",
    "Organise my bookmarks", "Calculate my mortgage", "Fix a merge conflict in git", "Explain this regex",
    "Migrate from MySQL to Postgres", "Paint the kitchen wall", "Proofread my thesis introduction",
    "Cancel my subscription", "Look up the weather tomorrow", "Write a Dockerfile for Django",
    "Find a recipe for lentil soup", "Make the button rounder", "Back up my phone", "Plan a birthday party",
    "Check the spelling of this page", "Install a printer driver", "Count the words in a document",
)  # fmt: skip
