from rlx.diagnose.finding import Evidence, Finding


def test_a_finding_is_told_with_its_evidence_and_leaves_out_what_it_has_not():
    evidence = Evidence("train/approx_kl", 0.4, limit=0.3, steps=(0, 512), seeds=(0, 2))
    finding = Finding(
        "update_too_large",
        "high",
        "the policy moves 0.4 nats an update",
        (evidence, Evidence("seen", "NaN")),
        ("lower algo.learning_rate",),
        ({"algo.learning_rate": 1e-4},),
    )
    assert finding.document() == {
        "rule": "update_too_large",
        "severity": "high",
        "claim": "the policy moves 0.4 nats an update",
        "evidence": [
            {"what": "train/approx_kl", "value": 0.4, "limit": 0.3, "steps": [0, 512], "seeds": [0, 2]},
            {"what": "seen", "value": "NaN"},
        ],
        "try": ["lower algo.learning_rate"],
        "changes": [{"algo.learning_rate": 1e-4}],
    }
