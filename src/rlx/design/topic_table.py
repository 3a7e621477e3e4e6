"""The topics of RL design and the five workflows: where each one's cards, check, recipe and command are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from rlx.design.knowledge_card import cards
from rlx.errors import NotFound, did_you_mean

ARCHITECT = "architect"
ENVIRONMENT = "environment"
ALGORITHM = "algorithm"
EVALUATION = "evaluation"
OPERATIONS = "operations"


@dataclass(frozen=True)
class DesignTopic:
    """One topic: its workflow, the words of users, a rule or command that checks it, recipes, and a command to start.

    `why_no_recipe` is the reason if a topic has no recipe.
    """

    name: str
    title: str
    workflow: str
    words: str
    check: str
    command: str
    recipes: tuple[str, ...] = ()
    why_no_recipe: str = ""


@dataclass(frozen=True)
class Workflow:
    """An ordered walk through topics, with the sections of the spec that it fills."""

    name: str
    title: str
    words: str
    sections: tuple[str, ...]
    check: str
    command: str


WORKFLOWS = (
    Workflow(ARCHITECT, "Design the problem", "design architect plan whole problem solution from scratch formulate",
             ("observation", "action", "reward", "mdp", "strategy"), "rlx check spec", "rlx spec new --env ENV"),
    Workflow(ENVIRONMENT, "Build and verify the environment", "environment engineer build simulator wrappers verify",
             ("randomisation", "curriculum", "multi_agent"), "rlx check env", "rlx check env ENV"),
    Workflow(ALGORITHM, "Choose and build the learner", "algorithm engineer learner networks losses implement train",
             ("architecture", "imitation", "offline", "preferences", "hierarchy"), "rlx config check",
             "rlx recommend ENV"),
    Workflow(EVALUATION, "Measure and understand", "evaluator evaluation measure understand compare test policy",
             ("evaluation", "robustness"), "rlx compare", "rlx eval RUN"),
    Workflow(OPERATIONS, "Run many experiments", "mlops operations track tune scale checkpoints many experiments",
             ("architecture",), "rlx doctor", "rlx train CONFIG"),
)  # fmt: skip

TOPICS = (
    DesignTopic("defining-state-space", "State and observation", ARCHITECT,
                "state observation inputs features leak bounds history sensors see perceive velocity velocities "
                "position angle camera information privileged partial markov encode represent know include speed "
                "location observe tell knows hidden",
                "spec_observation, spec_leak, obs_outside_space, obs_constant", "rlx check spec spec.yaml",
                ("running-statistics",)),
    DesignTopic("defining-action-space", "Action space", ARCHITECT,
                "action actions space discrete continuous masks bounds torque dead joint motor voltage steer "
                "throttle forbid illegal invalid legal move control command button rescale saturate buttons allowed "
                "forbidden press discretise torques positions ranges",
                "spec_action, dead_action, action_bounds", "rlx check spec spec.yaml", ("gaussian-actor",)),
    DesignTopic("designing-reward-function", "Reward", ARCHITECT,
                "reward rewards shaping bonus terms sparse hacking dominate weight penalty penalties cost punish "
                "signal incentive finish exploit loophole circle farm alive weigh balance energy potential dense "
                "goal points coins collect collects reaches bonuses exploits",
                "spec_reward_dominance, spec_alive_bonus, rlx review", "rlx review ENV", ("potential-shaping",)),
    DesignTopic("defining-mdp-transition", "MDP: ends, time, discount", ARCHITECT,
                "mdp discount gamma horizon termination truncation time limit episode ends bootstrap done "
                "terminated truncated timeout fall endless infinite long steps discounting far-sighted myopic "
                "finite failure treat mistake running timelimit deadline",
                "spec_discount, spec_horizon, termination_as_truncation", "rlx check spec spec.yaml",
                ("truncation-bootstrap",)),
    DesignTopic("selecting-rl-strategy", "Algorithm choice", ARCHITECT,
                "which algorithm choose ppo sac dqn td3 pick recommend strategy best for a2c rainbow tqc trpo right "
                "suitable better sample-efficient on-policy off-policy model-free continuous discrete slow cheap "
                "suits emulator puzzle start",
                "spec_algorithm", "rlx recommend ENV", ("batch-calculator",)),
    DesignTopic("blueprinting-system-architecture", "System architecture", ARCHITECT,
                "architecture processes gpu cpu placement actors learner blueprint layers distributed system "
                "machine machines server cluster separate process node hardware pipeline run component asynchronous "
                "workstation computers multiprocessing rollouts inference",
                "spec_placement, spec_buffer_kind, spec_policy_lag", "rlx check spec spec.yaml",
                ("placement-calculator",)),
    DesignTopic("formulating-marl-architecture", "Several agents: architecture", ARCHITECT,
                "multi-agent agents team cooperative competitive central decentralised marl formulate drone swarm "
                "cooperate shared share robot robots players several multiple centralised critic decentralized ctde "
                "common fleet collaborate trucks cars weights",
                "spec_agents", "rlx check spec spec.yaml", ("qmix", "independent-ppo")),
    DesignTopic("designing-hierarchical-rl", "Hierarchy", ARCHITECT,
                "hierarchical hierarchy options manager worker subgoals skills feudal high-level low-level sub-task "
                "subtask long-horizon option split primitive level period goals choose execute executes lower upper",
                "spec_hierarchy", "rlx check spec spec.yaml", ("options-schema",)),
    DesignTopic("formulating-irl-and-imitation", "Imitation: which method", ARCHITECT,
                "imitation demonstrations expert inverse irl demos clone query demonstration teleoperation human "
                "recorded recording imitate infer teacher example examples learn joystick pilot videos teleop "
                "operator mimic",
                "spec_demonstrations", "rlx check spec spec.yaml", ("behaviour-cloning", "dagger")),
    DesignTopic("implementing-gymnasium-env", "Gymnasium environment", ENVIRONMENT,
                "gymnasium environment write implement step reset api custom env own gym class game wrap register "
                "simulator turn function return seed render make",
                "api, env_raises, seed_ignored", "rlx check env ENV", ("truncation-bootstrap",)),
    DesignTopic("integrating-physics-simulator", "Physics simulator", ENVIRONMENT,
                "simulator physics mujoco isaac brax pybullet integrate dt contact nan timestep simulation explode "
                "unstable frequency control rate engine genesis newton substep solver hz decimation",
                "spec_control_rate, not_finite, slow_env", "rlx check spec spec.yaml", ("placement-calculator",)),
    DesignTopic("implementing-observation-wrappers", "Observation wrappers", ENVIRONMENT,
                "normalise normalize observations wrapper running mean statistics welford scale grayscale resize "
                "image camera pixels crop gray flatten rescale std deviation inputs standardise clip normaliser",
                "observation_scale", "rlx check env CONFIG", ("running-statistics",)),
    DesignTopic("implementing-temporal-wrappers", "Temporal wrappers", ENVIRONMENT,
                "frame stack stacking skip repeat temporal wrapper history time remaining frames last previous "
                "delta action-repeat frameskip sticky clock atari past images consecutive earlier",
                "reward_depends_on_time", "rlx check env CONFIG", ("frame-stacking",)),
    DesignTopic("implementing-domain-randomization", "Domain randomisation", ENVIRONMENT,
                "domain randomisation randomization adr ranges friction mass vary widen random range parameter "
                "parameters physics damping robust wide automatic masses gravity payload sample each weight "
                "different varied variation",
                "spec_randomisation", "rlx probe RUN", ("adr",)),
    DesignTopic("validating-env-compatibility", "Compatibility of an environment", ENVIRONMENT,
                "validate compatibility check environment determinism vectorised aliasing suite seeds equal "
                "deterministic seed same reproducible correct valid bug sanity different copy copies result",
                "vector_differs, state_leaks, obs_aliased", "rlx check env ENV", ("pettingzoo-checks",)),
    DesignTopic("implementing-pettingzoo-marl-env", "PettingZoo environment", ENVIRONMENT,
                "pettingzoo aec parallel multi-agent environment agent death turn turn-based dies dead game players "
                "board parallelenv multi agents",
                "spec_agents", "rlx docs pettingzoo-checks --run", ("pettingzoo-checks",)),
    DesignTopic("designing-adversarial-environments", "Generated and adversarial levels", ENVIRONMENT,
                "levels curriculum generate paired ued regret adversarial environment design procedural hard harder "
                "easy difficulty maze terrain adapt automatic teacher progressive stage stages tracks level mazes "
                "solvable opponent designer",
                "spec_curriculum", "rlx docs paired --run", ("paired",)),
    DesignTopic("designing-feature-extractor", "Feature extractor", ALGORITHM,
                "extractor features cnn encoder images multimodal dict network layernorm initialisation "
                "convolutional convnet resnet transformer image vector pointcloud language text embedding layers "
                "size hidden batchnorm batch norm architecture neural proprioception fuse combine depth camera "
                "readings sensor fusion several inputs",
                "spec_algorithm", "rlx docs multimodal-extractor --run", ("multimodal-extractor",)),
    DesignTopic("designing-policy-actor", "Policy (actor)", ALGORITHM,
                "actor policy gaussian tanh log std squashed head distribution entropy mean variance sigma standard "
                "deviation stochastic exploration saturate categorical beta initialise output",
                "entropy_collapse, action_saturation", "rlx docs gaussian-actor --run", ("gaussian-actor",)),
    DesignTopic("designing-value-critic", "Value (critic)", ALGORITHM,
                "critic value twin q target polyak tau overestimation qvalue overestimate bootstrap double network "
                "slow estimate explained variance baseline values",
                "value_explosion, critic_uninformative", "rlx docs twin-critic --run", ("twin-critic",)),
    DesignTopic("implementing-memory-models", "Memory models", ALGORITHM,
                "memory recurrent lstm gru hidden state bptt burn-in remember pomdp rnn sequence recall transformer "
                "past remembers backpropagation unroll hint beginning earlier forget",
                "spec_observability", "rlx docs recurrent-ppo --run", ("recurrent-ppo",)),
    DesignTopic("configuring-replay-buffers", "Replay buffers", ALGORITHM,
                "replay buffer prioritised prioritized per hindsight her sumtree warm-up experience transitions "
                "sample size priority priorities old capacity important goal relabel relabelling update ratio ram "
                "fit million",
                "replay_too_small, learning_starts_late", "rlx docs prioritized-replay --run",
                ("prioritized-replay", "hindsight-replay")),
    DesignTopic("implementing-loss-functions", "Losses", ALGORITHM,
                "loss losses ppo clip surrogate kl gradient norm advantage gae optimiser objective clipped ratio "
                "minibatch normalise epochs grad trust region vtrace entropy compute adam",
                "update_too_large, learning_rate", "rlx docs ppo-losses --run", ("ppo-losses",)),
    DesignTopic("implementing-marl-algorithms", "Several agents: algorithms", ALGORITHM,
                "qmix mappo ippo marl algorithm mixing agents implement credit vdn coma maddpg monotonic monotone "
                "network value decomposition joint",
                "spec_agents", "rlx docs qmix --run", ("qmix", "independent-ppo")),
    DesignTopic("implementing-offline-rl", "Offline RL", ALGORITHM,
                "offline cql iql dataset batch rl conservative logged data without environment logs log fixed "
                "recorded historical previously collected past extrapolation td3bc q-learning touching simulator",
                "spec_offline", "rlx docs cql --run", ("cql", "iql")),
    DesignTopic("implementing-imitation-learning", "Imitation: implementation", ALGORITHM,
                "imitation behaviour cloning behavior dagger gail discriminator clone implement bc behavioural "
                "expert airl drift drifts compound teacher supervised adversarial state states",
                "spec_demonstrations", "rlx docs gail --run", ("behaviour-cloning", "dagger", "gail")),
    DesignTopic("training-rlhf-reward-model", "Reward model from preferences", ALGORITHM,
                "preferences reward model bradley terry rlhf learned human feedback pairwise comparison comparisons "
                "compare ranking ranked clips trajectories overoptimisation dpo rate users people like better "
                "scoring which clip humans judge",
                "spec_preferences", "rlx docs reward-model --run", ("reward-model",)),
    DesignTopic("setting-up-experiment-tracking", "Experiment tracking", OPERATIONS,
                "tracking log metrics wandb tensorboard dashboard record experiment mlflow logging logger history "
                "compare store stored settings provenance runs monitor see where",
                "missing_metric", "rlx ls", (),
                "rlx itself is the tracker: `rlx train` and `rlx.start` store every metric"),
    DesignTopic("configuring-hyperparameter-tuning", "Hyperparameter tuning", OPERATIONS,
                "hyperparameter tuning optuna search sweep hpo trials tune learning rate hyperparameters grid "
                "random bayesian asha halving pruning prune ranges parameter trial budget",
                "outdone, selection_bias", "rlx settle A B", ("search-confirmation",)),
    DesignTopic("configuring-distributed-rollouts", "Rollouts and batches", OPERATIONS,
                "rollouts batch size num_envs workers parallel minibatch arithmetic distributed n_steps n_envs "
                "nsteps environments divide vectorised subproc throughput sampling many asynchronous worker",
                "spec_batch", "rlx docs batch-calculator --run", ("batch-calculator",)),
    DesignTopic("configuring-checkpoint-strategy", "Checkpoints", OPERATIONS,
                "checkpoint checkpoints retention save keep best latest resume disk model crash crashed continue "
                "interrupted recover restore restart weights delete load reload full saved space models",
                "spec_evaluation, cut_short", "rlx resume RUN", ("checkpoint-retention",)),
    DesignTopic("setting-up-offline-rl-datasets", "Offline datasets", OPERATIONS,
                "offline dataset minari build collect episodes hdf5 transitions store trajectory trajectories "
                "record recording format d4rl export file data npz",
                "spec_offline", "rlx docs offline-dataset --run", ("offline-dataset",)),
    DesignTopic("setting-up-rlhf-data-pipeline", "Preference data", OPERATIONS,
                "preference data annotators labels agreement kappa hold-out pipeline pairs human label labelling "
                "labelled annotator people raters rater disagree differently split validation preferences clips "
                "quality compare comparison agree",
                "spec_preferences", "rlx docs preference-pipeline --run", ("preference-pipeline",)),
    DesignTopic("designing-deterministic-eval-loop", "Evaluation protocol", EVALUATION,
                "evaluation deterministic protocol episodes seeds greedy test measure score evaluate exploration "
                "noise fixed fair number average mean many reliable validate testing",
                "spec_evaluation, greedy_gap, selection_bias", "rlx eval RUN", ("episode-count",)),
    DesignTopic("creating-ood-robustness-tests", "Robustness and shifts", EVALUATION,
                "robustness ood out of distribution shift perturbation brittle control arm stress generalise robust "
                "noise delay sensor gravity changes change unseen conditions disturbance push generalisation wind "
                "work vary survive slippery floor unknown never saw",
                "spec_robustness, train_eval_gap", "rlx stress RUN", ("ood-suite",)),
    DesignTopic("implementing-rendering-and-plotting", "Pictures and curves", EVALUATION,
                "plot curves video render film figure iqm bootstrap bands picture graph chart confidence interval "
                "plotting rendering trained movie gif seeds learning visualise visualize draw shaded area curve "
                "gifs",
                "seeds_disagree", "rlx plot RUN", ("interquartile-mean",)),
    DesignTopic("analyzing-saliency-and-values", "Saliency", EVALUATION,
                "saliency attribution integrated gradients explain inputs grad-cam attention which inputs heatmap "
                "pixels pixel look important importance feature features decision decide interpret interpretability "
                "shap understand matter matters caused cause why chose action sensor explanation",
                "spec_leak", "rlx docs integrated-gradients --run", ("integrated-gradients",)),
    DesignTopic("diagnosing-training-failures", "Training failures", EVALUATION,
                "diagnose failure not learning collapse plateau nan stuck flat diverge training fails wrong broken "
                "drop drops suddenly bad worse improve improving explode debug reward decreases stopped forgets "
                "unstable works nothing poor",
                "rlx diagnose", "rlx diagnose RUN", (),
                "it needs your run: `rlx diagnose RUN` applies every rule to it"),
    DesignTopic("evaluating-marl-equilibria", "Equilibria of several agents", EVALUATION,
                "equilibrium nash exploitability cross-play elo self-play best response zero-sum exploit "
                "exploitable poker game games opponent opponents regret zero sum strategy league rating ratings "
                "tournament strong counter beats beat bot exploiter",
                "spec_agents", "rlx docs exploitability --run", ("exploitability", "cross-play")),
    DesignTopic("conducting-adversarial-rl-testing", "Adversarial testing", EVALUATION,
                "adversarial attack fgsm worst epsilon perturb observations attack test adversary small robust fool "
                "attacker worst-case perturbation perturbed gradient change fail tiny trick pixel changes "
                "manipulated spoof",
                "spec_robustness", "rlx docs fgsm --run", ("fgsm", "worst-of-k")),
    DesignTopic("mobile-robots", "Pack: mobile robots", ARCHITECT,
                "mobile robot navigation obstacle avoidance social docking exploration planner wheeled lidar drive "
                "driving car rover corridor goal pedestrian pedestrians people walking crowd map mapping laser slam "
                "path planning local vehicle warehouse dock station charging delivery amr agv slalom",
                "spec_observation", "rlx cards --for 'mobile robot navigation'", ("potential-shaping",)),
    DesignTopic("manipulation", "Pack: manipulation", ARCHITECT,
                "manipulation grasp lift place insertion assembly dexterous hand bimanual deformable tactile arm "
                "gripper reorient cube peg hole pick push door drawer object objects finger fingers cloth rope "
                "robot touch screw gripping franka ur5 fold towel two arms stacking blocks handover",
                "spec_action", "rlx cards --for 'grasp and place'", ("hindsight-replay",)),
    DesignTopic("whole-body", "Pack: legged and whole-body control", ARCHITECT,
                "legged quadruped humanoid walking locomotion terrain gait whole-body command tracking leg legs "
                "four-legged biped bipedal walk run stairs balance robot dog motion mocap joint g1 spot stand "
                "anymal stumble stumbles velocity commands walks jump jumping legged-gym",
                "spec_curriculum", "rlx cards --for 'quadruped on terrain'", ("adr",)),
    DesignTopic("sim-to-real", "Pack: simulation to hardware", EVALUATION,
                "sim-to-real sim2real transfer hardware deploy deployment real robot gap simulation works physical "
                "safely actuator latency onboard transferring field machine later react motors deployed",
                "spec_robustness, spec_randomisation", "rlx stress RUN", ("adr", "ood-suite")),
    DesignTopic("stacks", "Pack: foreign stacks", OPERATIONS,
                "isaac lab mjlab rsl_rl sb3 cleanrl rllib skrl stack framework repository adopt existing isaaclab "
                "codebase project library integrate import rl_games torchrl code script repo stable-baselines3 "
                "stable-baselines tool keep own",
                "rlx task", "rlx cards --for 'isaaclab rsl_rl'", (),
                "a foreign stack runs in its own interpreter: `rlx task new` reads it without running code"),
)  # fmt: skip
"""The 45 topics."""


@cache
def topic_names() -> frozenset[str]:
    """Return the names of all topics."""
    return frozenset(topic.name for topic in TOPICS)


def find_topic(name: str) -> DesignTopic | Workflow:
    """Return a topic or a workflow by its name."""
    known: dict[str, DesignTopic | Workflow] = {topic.name: topic for topic in TOPICS}
    known |= {workflow.name: workflow for workflow in WORKFLOWS}
    if name in known:
        return known[name]
    near = did_you_mean(name, list(known))
    raise NotFound(f"no topic `{name}`", hint=f"rlx docs {near}" if near else "rlx docs topics")


def cards_of(topic: str) -> tuple[str, ...]:
    """Return the ids of a topic's cards; those of a workflow are its topics' cards."""
    names = {topic} | {row.name for row in TOPICS if row.workflow == topic}
    return tuple(card.id for card in cards() if names & set(card.topics))


def table_rows() -> Iterator[dict[str, str]]:
    """Yield the table: topic, cards, check, recipe and command; a topic without a recipe says why."""
    for topic in TOPICS:
        recipe = ", ".join(topic.recipes) or f"none: {topic.why_no_recipe}"
        yield {"topic": topic.name, "title": topic.title, "workflow": topic.workflow, "check": topic.check,
               "cards": ", ".join(cards_of(topic.name)), "recipe": recipe, "command": topic.command}  # fmt: skip
    for workflow in WORKFLOWS:
        topics = [topic for topic in TOPICS if topic.workflow == workflow.name]
        recipes = dict.fromkeys(recipe for topic in topics for recipe in topic.recipes)
        yield {"topic": workflow.name, "title": workflow.title, "workflow": workflow.name, "check": workflow.check,
               "cards": f"the {len(cards_of(workflow.name))} cards of its {len(topics)} topics",
               "recipe": ", ".join(recipes), "command": workflow.command}  # fmt: skip
