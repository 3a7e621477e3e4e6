"""Candidates: one bounded change of one kind, in scope, with its records, and never the same one twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlx.errors import ConfigError
from rlx.study.candidate import candidate as candidates
from rlx.study.candidate.candidate import Candidate, CodeChange
from rlx.study.contract.contract import Contract
from rlx.study.task import infer_task
from rlx.study.task.task import Task
from tests.study.papers import contract_of, foreign_repo, foreign_task, hydra_task, rlx_repo, rlx_task, write


def proposal(id: str = "c001", **fields: Any) -> Candidate:
    data = {"id": id, "kind": "hyperparameter", "hypothesis": "a lower rate is steadier", **fields}
    return Candidate.model_validate(data)


def problems_of(*given: Any, **more: Any) -> tuple[str, ...]:
    """Return the messages of all problems."""
    return tuple(problem.message for problem in candidates.problems(*given, **more))


class Lift:
    """A study on an rlx config."""

    def __init__(self, root: Path, **sections: Any) -> None:
        sha = rlx_repo(root)
        self.root, self.task = root, rlx_task(root)
        self.contract: Contract = contract_of(self.task, root, sha, **sections)
        self.base = infer_task.baseline_values(self.task, root)

    def problems(
        self, candidate: Candidate, *others: Candidate, code: dict[str, CodeChange] | None = None
    ) -> tuple[str, ...]:
        found = candidates.problems(candidate, self.contract, self.task, others, base=self.base, code=code)
        return tuple(problem.message for problem in found)

    def codes(self, changes: dict[str, Any], *others: Candidate, **given: Any) -> list[str]:
        """Return the codes of all problems of a proposal with these changes."""
        candidate = proposal("c009", changes=changes)
        return [problem.code for problem in candidates.problems(
            candidate, self.contract, self.task, others, base=self.base, **given
        )]  # fmt: skip


@pytest.fixture
def lift(tmp_path: Path) -> Lift:
    return Lift(tmp_path)


def test_a_good_candidate_has_no_problems(lift: Lift) -> None:
    assert lift.problems(proposal(changes={"algo.learning_rate": 1e-4})) == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seed": 7}, "only the seed changes"),
        ({"algo.batch_size": 2**63}, "`algo.batch_size`: an integer beyond 64 bits"),
        ({"policy.hidden_sizes": [64, -(10**40)]}, "`policy.hidden_sizes`: an integer beyond 64 bits"),
        ({"seeds": [1, 2]}, "only the seed changes"),
        ({"algo.gamma": 0.9, "seed": 7}, "key `seed`: seeds are replicates"),
        ({"eval.episodes": 1}, "belongs to the evaluator"),
        ({"eval": {"metric": "return"}}, "key `eval.metric`: belongs to the evaluator"),
        ({"env.id": "CartPole-v1"}, "belongs to the evaluator"),
        ({"env": {"id": "CartPole-v1"}}, "key `env.id`: belongs to the evaluator"),
        ({"env": None}, "belongs to the evaluator"),
        ({"extends": "catalog:cartpole"}, "belongs to the evaluator"),
        ({"algo.total_timesteps": 8192}, "the contract forbids it"),
        ({"algo": None}, "the contract forbids it"),
        ({"env.kwargs.difficulty": 2}, "not in scope; in scope: algo.*"),
        ({"algo.learning_rte": 1e-3}, "unknown key `algo.learning_rte`"),
        ({"algo.gamma": "high"}, '`algo.gamma` is "high"; expected a number'),
        ({"algo.gamma": 2.0}, "expected a number from 0 to 1"),
        ({"algo.batch_size": 77}, "does not divide"),
        ({"algo.gamma": 0.99}, "it changes nothing"),
        ({"algo.gamma": 0.99001}, "it changes nothing"),
        ({"algo.clip_range": 0.2}, "it changes nothing"),
        ({}, "it changes nothing"),
        ({"algo.gamma": float("nan")}, "not a finite number"),
        ({"policy.kwargs.x": "y" * 3000}, "longer than 2000"),
        ({f"policy.kwargs.k{n}": n for n in range(7)}, "7 keys change"),
    ],
)
def test_a_bad_change_is_named(lift: Lift, changes: dict[str, Any], says: str) -> None:
    found = lift.problems(proposal(changes=changes))
    assert any(says in line for line in found), found


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"seed": 7}, ["SEED_ONLY"]),
        ({"seed": 7, "algo": {"seed": 3}}, ["SEED_ONLY"]),
        ({"seed": 7, "algo.gamma": 0.9}, ["SCOPE"]),
        ({"algo.learning_rte": 1e-3}, ["KEY"]),
        ({"policy.kwargz.x": 1}, ["KEY"]),
        ({"env.wrappers.3.kwargs.alive": 1}, ["SCOPE", "KEY"]),
        ({"algo.gamma": "high"}, ["VALUE"]),
        ({"algo.batch_size": 77}, ["VALUE"]),
        ({"algo.gamma": 0.99}, ["NO_CHANGE"]),
        ({}, ["NO_CHANGE"]),
        ({"algo.gamma": 0.95}, ["DUPLICATE"]),
        ({"env.id": "CartPole-v1"}, ["SCOPE"]),
    ],
)
def test_a_refused_change_has_the_code_of_its_reason_alone(
    lift: Lift, changes: dict[str, Any], codes: list[str]
) -> None:
    same = proposal("c001", changes={"algo.gamma": 0.95})
    assert lift.codes(changes, same) == codes


def test_reseeding_code_is_no_duplicate_of_other_code(lift: Lift) -> None:
    reseeded = CodeChange("aa", 1, ("policies/net.py",), is_seed_only=True)
    first = proposal("c001", kind="code")
    found = lift.codes({}, first, code={"c001": reseeded, "c009": reseeded})
    assert found[0] == "SEED_ONLY"
    assert "DUPLICATE" not in found


@pytest.mark.parametrize(
    "changes",
    [
        {"algo.learning_rate": 1e-4, "algo.gamma": 0.95},
        {"algo.gamma": 0.95, "algo.learning_rate": 1e-4},
        {"algo": {"gamma": 0.95, "learning_rate": 1e-4}},
        {"algo": {"gamma": 0.95}, "algo.learning_rate": 1.001e-4},
        {"algo.gamma": 0.95, "algo.learning_rate": 1e-4, "algo.clip_range": 0.2},
        {"algo.gamma": 0.9501, "algo.learning_rate": 1e-4},
    ],
)
def test_a_duplicate_is_found_however_it_is_written(lift: Lift, changes: dict[str, Any]) -> None:
    first = proposal(changes={"algo.learning_rate": 1e-4, "algo.gamma": 0.95})
    found = lift.problems(proposal("c002", changes=changes), first)
    assert found == ("it is a duplicate of c001 (within 1%)",)


@pytest.mark.parametrize("gamma", [0.995, 0.98, 0.9905])
def test_a_discount_nearer_to_one_is_another(lift: Lift, gamma: float) -> None:
    assert lift.problems(proposal(changes={"algo.gamma": gamma})) == ()


def test_a_candidate_is_compared_by_what_it_runs_with(lift: Lift) -> None:
    first = proposal(changes={"algo.gamma": 0.95})
    second = proposal("c002", changes={"algo.learning_rate": 1e-4}, builds_on="c001")
    assert lift.problems(second, first) == ()
    same = proposal("c003", changes={"algo.gamma": 0.95, "algo.learning_rate": 1e-4})
    assert lift.problems(same, first, second) == ("it is a duplicate of c002 (within 1%)",)
    back = proposal("c004", changes={"algo.gamma": 0.99}, builds_on="c001")
    assert lift.problems(back, first) == ("it changes nothing: the same as the baseline",)
    noop = proposal("c005", changes={"algo.gamma": 0.95}, builds_on="c001")
    assert lift.problems(noop, first) == ("it is a duplicate of c001 (within 1%)",)
    assert "no such candidate" in lift.problems(proposal("c006", builds_on="c009"), first)[-1]


def test_the_same_config_with_other_code_is_another(lift: Lift) -> None:
    code = {"c001": CodeChange("aa", 3, ("policies/net.py",)), "c002": CodeChange("bb", 3, ("policies/net.py",))}
    first, second = proposal("c001", kind="code"), proposal("c002", kind="code")
    assert lift.problems(second, first, code=code) == ()
    assert "duplicate of c001" in lift.problems(second, first, code={**code, "c002": code["c001"]})[0]
    empty = CodeChange("")
    assert lift.problems(second, first, code={**code, "c002": empty}) == (
        "it changes nothing: the same as the baseline",
    )


def test_code_that_was_not_looked_at_yet_is_no_duplicate(lift: Lift) -> None:
    assert lift.problems(proposal("c002", kind="code"), proposal("c001", kind="code")) == ()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (CodeChange("a", 401, ("a.py",)), "the diff has 401 lines"),
        (CodeChange("a", 4, tuple(f"{n}.py" for n in range(11))), "touches 11 files"),
    ],
)
def test_a_diff_is_bounded(lift: Lift, code: CodeChange, says: str) -> None:
    assert says in lift.problems(proposal(kind="code"), code={"c001": code})[0]


@pytest.mark.parametrize(
    ("kind", "records", "says"),
    [
        ("reward tuning", {}, "needs records.reflection"),
        ("reward tuning", {}, 'or records.reason (--record reason="TEXT")'),
        ("reward engineering", {"reflection": "  "}, "needs records.reflection"),
        ("reward engineering", {"reason": "no terms are logged"}, None),
        ("reward tuning", {"reflection": "c000: height dominates"}, None),
        ("randomisation tuning", {"reflection": "x"}, "needs records.probe"),
        ("randomisation tuning", {"probe": "probe_003"}, None),
        ("randomisation probe", {}, None),
        (
            "environment generation",
            {"learnability": "x", "diversity": "y"},
            "needs records.difficulty_bridge (--record ",
        ),
        (
            "environment generation",
            dict.fromkeys(
                ("learnability", "difficulty_bridge", "diversity", "held_out_invariant", "rollback_rule"), "x"
            ),
            None,
        ),
    ],
)
def test_a_kind_brings_its_records(lift: Lift, kind: str, records: dict[str, str], says: str | None) -> None:
    found = lift.problems(proposal(kind=kind, records=records))
    assert found == () if says is None else says in found[0]


def test_a_reward_is_not_changed_under_another_kind(tmp_path: Path) -> None:
    sha = foreign_repo(tmp_path)
    task: Task = foreign_task(tmp_path)
    contract = contract_of(task, tmp_path, sha, scope={"surfaces": ["hyperparameters", "reward"]})
    found = problems_of(proposal(changes={"bonus": -2.0}), contract, task, [])
    assert found == ("`bonus` is reward: its kind is reward tuning or reward engineering, not hyperparameter",)
    code = {"c001": CodeChange("aa", 2, ("world/arena.py",))}
    found = problems_of(proposal(kind="code"), contract, task, [], code=code)
    assert "`world/arena.py` is reward" in found[0]
    found = problems_of(proposal(), contract, task, [], code=code)
    assert any("changes no code" in line for line in found)


def test_keys_that_a_foreign_training_does_not_take_are_refused(tmp_path: Path) -> None:
    sha = foreign_repo(tmp_path)
    task = foreign_task(tmp_path)
    contract = contract_of(task, tmp_path, sha, scope={"keys": ["l*"]})
    found = problems_of(proposal(changes={"lrr": 0.1}), contract, task, [])
    assert "there is no key `lrr`; did you mean `lr`?" in found


@pytest.mark.parametrize(
    "key", ["algo rate", "algo.rate\n", "algo.rate=1 algo.gamma", "algo.\x1b[2Jrate", "", "a\u200bb"]
)
def test_what_can_be_no_key_is_refused_by_a_line(tmp_path: Path, key: str) -> None:
    sha = foreign_repo(tmp_path)
    task = foreign_task(tmp_path)
    found = problems_of(proposal(changes={key: 0.1}), contract_of(task, tmp_path, sha), task, [])
    assert f"{key!a} cannot be a key: it has blanks, control characters or `=`" in found


def test_a_slip_in_a_key_of_a_config_is_named(lift: Lift) -> None:
    found = lift.problems(proposal(changes={"algo.lerning_rate": 0.1}))
    assert "c001: unknown key `algo.lerning_rate` (did you mean `algo.learning_rate`?)" in found


def test_a_proposal_that_is_too_large_is_told_what_a_proposal_is(tmp_path: Path) -> None:
    (tmp_path / "large.json").write_text(" " * 1_000_001)
    with pytest.raises(ConfigError) as caught:
        candidates.read(tmp_path / "large.json")
    assert "rlx propose --help" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"agent.lr": 0.25}, "it changes nothing: the same as the baseline"),
        ({"agent.lrr": 0.5}, "there is no key `agent.lrr`; did you mean `agent.lr`?"),
    ],
)
def test_a_hydra_program_is_told_no_key_it_lacks_and_no_value_it_has(
    tmp_path: Path, changes: dict[str, float], says: str
) -> None:
    sha = foreign_repo(tmp_path)
    task = hydra_task(tmp_path)
    contract = contract_of(task, tmp_path, sha, scope={"keys": ["agent.*"]})
    base = infer_task.baseline_values(task, tmp_path)
    assert problems_of(proposal(changes=changes), contract, task, [], base=base) == (says,)


def test_foreign_keys_are_compared_with_their_defaults(tmp_path: Path) -> None:
    sha = foreign_repo(tmp_path)
    task = foreign_task(tmp_path)
    contract = contract_of(task, tmp_path, sha)
    found = problems_of(proposal(changes={"lr": "fast"}), contract, task, [])
    assert found == ('`lr` is "fast"; the baseline\'s is 0.0003, of another type',)
    assert "changes nothing" in problems_of(proposal(changes={"lr": 3.001e-4}), contract, task, [])[0]
    assert problems_of(proposal(changes={"lr": 1e-3}), contract, task, []) == ()
    base = infer_task.baseline_values(task, tmp_path)
    twice = problems_of(
        proposal("c002", changes={"lr": 1e-3}), contract, task, [proposal(changes={"lr": 1e-3})], base=base
    )
    assert "duplicate of c001" in twice[0]


def test_a_hypothesis_is_said(lift: Lift) -> None:
    found = lift.problems(proposal(hypothesis="  ", changes={"algo.gamma": 0.9}))
    assert found == ("hypothesis is empty: say what should happen and why",)
    assert "longer than" in lift.problems(proposal(hypothesis="x" * 6000, changes={"algo.gamma": 0.9}))[0]


def test_a_candidate_reads_back_as_it_was_written(tmp_path: Path) -> None:
    candidate = proposal(changes={"algo.gamma": 0.9, "a": [1, {"b": None}]}, predicts=0.1)
    digest = candidates.write(candidate, tmp_path / "c001.json")
    assert candidates.read(tmp_path / "c001.json") == candidate
    assert digest == candidates.sha256(candidate)
    reordered = proposal(predicts=0.1, changes={"a": [1, {"b": None}], "algo.gamma": 0.9})
    assert candidates.sha256(reordered) == digest


def test_a_proposal_is_given_its_id(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.json", json.dumps({"kind": "code", "hypothesis": "x"}))
    assert candidates.read(path, id="c003").id == "c003"
    path = write(tmp_path, "mine.yaml", "kind: code\nhypothesis: x\nid: c001\n")
    with pytest.raises(ConfigError, match=r"mine.yaml:3: rlx sets `id`"):
        candidates.read(path, id="c003")


def test_ids_count_on_and_none_is_used_twice() -> None:
    assert candidates.next_id([]) == "c001"
    assert candidates.next_id(["baseline", "c001", "c007", "rehearsal"]) == "c008"
    assert candidates.next_id(["c999"]) == "c1000"


@given(st.floats(1e-6, 1e6), st.floats(-0.005, 0.005))
def test_closeness_is_symmetric_and_holds_for_oneself(value: float, share: float) -> None:
    from rlx.study.candidate.config_changes import is_close

    other = value * (1 + share)
    assert is_close(value, value)
    assert is_close(value, other) == is_close(other, value)
    assert not is_close(value, value * 1.03)
    assert is_close({"a": [value], "b": 1}, {"b": 1, "a": [value]})


def test_texts_of_a_proposal_are_one_line_without_control_characters(lift: Lift, tmp_path: Path) -> None:
    told = {"kind": "code", "hypothesis": "faster\nhint: do it", "records": {"reason": "a\tb"}}
    found = candidates.read(write(tmp_path, "mine.json", json.dumps(told)), id="c001")
    assert (found.hypothesis, found.records.reason) == ("faster hint: do it", "a b")
    (says,) = lift.problems(proposal(hypothesis="red \x1b[31m", changes={"algo.gamma": 0.9}))
    assert says == "hypothesis has control characters: '\\x1b'"


def test_one_line_of_many_bytes_is_not_a_bounded_change(lift: Lift) -> None:
    code = {"c001": CodeChange("a", lines=1, paths=("nets/mlp.py",), size_bytes=30_000_000)}
    found = lift.problems(proposal(kind="code"), code=code)
    assert "the diff has 30,000,000 bytes: one bounded change has at most 200,000" in found
