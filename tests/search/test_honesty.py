"""A search over nothing claims nothing, and a search learns to stay away from configs that crash."""

from __future__ import annotations

import numpy as np
import yaml

from rlx.compare import judge
from rlx.search.auto import Search, TrialJob, settings_for
from rlx.search.importance import importance
from rlx.search.observation import Observation
from rlx.search.parse_space import parse_space, space_document, space_of
from rlx.search.samplers import sampler_named
from rlx.search.space import Values
from tests.search.test_auto import played

SPACE = parse_space(["x=0:1", "y=0:1"], read=yaml.safe_load)


def test_a_parameter_without_effect_is_not_confirmed() -> None:
    confirmed = 0
    claimed = []
    for repeat in range(100):
        generator = np.random.default_rng(repeat)
        search = Search(SPACE, sampler_named("random"), settings_for(12, seed=repeat))
        winner, _ = played(search, lambda values, job, generator=generator: float(generator.normal()))
        assert winner is not None
        claimed.append(winner.score)
        base = generator.normal(size=10)
        fresh = generator.normal(size=10)
        verdicts = [judge(base, fresh[:size]).verdict for size in (3, 6, 10)]
        confirmed += "better" in verdicts
    assert np.mean(claimed) > 0.3  # the search itself is fooled
    assert confirmed <= 5


def test_the_share_of_trials_in_a_crashing_region_falls() -> None:
    def score(values: Values, job: TrialJob) -> float | None:
        if values["x"] > 0.5:  # out of memory, or NaN
            return None
        return float(values["y"] * job.share)

    early = []
    late = []
    for seed in range(5):
        search = Search(SPACE, sampler_named("model"), settings_for(48, seed=seed))
        played(search, score)
        crashed = [trial.values["x"] > 0.5 for trial in search.trials]
        early += crashed[:16]
        late += crashed[-16:]
    assert np.mean(early) > 0.35
    assert np.mean(late) < np.mean(early) - 0.15


def test_importance_names_the_parameter_that_matters() -> None:
    generator = np.random.default_rng(0)
    points = generator.random((30, 2))
    history = [Observation({"x": float(x), "y": float(y)}, float(x)) for x, y in points]
    found = importance(SPACE, history)

    assert found["x"] > 0.5
    assert found["y"] < 0.2
    assert importance(SPACE, history[:3]) == {}


def test_a_space_survives_the_log() -> None:
    texts = ["a=log:0.00001:0.01", "b=int:1:8", "c=[1,2],[3]", "d=0:1 if b=2,3"]
    space = parse_space(texts, read=yaml.safe_load)

    assert space_of(space_document(space), read=str) == space
