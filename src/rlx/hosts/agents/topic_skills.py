"""Which skill of the plugin leads to a design topic: the first step; `rlx docs TOPIC` is the second."""

from __future__ import annotations

from rlx.design.topic_table import ALGORITHM, ARCHITECT, ENVIRONMENT, EVALUATION, OPERATIONS, DesignTopic, Workflow

OF_WORKFLOW = {
    ARCHITECT: "rl-design",
    ENVIRONMENT: "rl-design",
    ALGORITHM: "rl-design",
    EVALUATION: "rl-experiment",
    OPERATIONS: "rl-experiment",
}
OTHERS = {
    "designing-reward-function": "rl-reward",
    "implementing-domain-randomization": "rl-randomisation",
    "creating-ood-robustness-tests": "rl-randomisation",
    "conducting-adversarial-rl-testing": "rl-randomisation",
    "sim-to-real": "rl-randomisation",
    "designing-adversarial-environments": "rl-curriculum",
    "diagnosing-training-failures": "rl-diagnose",
    "analyzing-saliency-and-values": "rl-design",
    "evaluating-marl-equilibria": "rl-design",
    "setting-up-offline-rl-datasets": "rl-design",
    "setting-up-rlhf-data-pipeline": "rl-design",
    "configuring-distributed-rollouts": "rl-design",
    "stacks": "rl-study-setup",
}
"""Topics that another skill than that of their workflow leads to."""


def skill_of(topic: DesignTopic | Workflow) -> str:
    """Return the name of the skill that leads to a topic."""
    if isinstance(topic, Workflow):
        return OF_WORKFLOW[topic.name]
    return OTHERS.get(topic.name, OF_WORKFLOW[topic.workflow])
