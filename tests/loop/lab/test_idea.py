"""What identifies an idea, and which code names the evaluator."""

from __future__ import annotations

import pytest

from rlx.loop.lab.idea import module_uses
from rlx.loop.lab.staged_change import StagedChange
from rlx.study.candidate.diff_scope import FileChange

NAMES = (
    "import evaluator.env",
    "from evaluator import env",
    "from .. import evaluator",
    "import importlib\nimportlib.import_module('evaluator.env')",
    "__import__('evaluator')",
    "exec('from evaluator import env')",
    "exec(b'import evaluator.scenarios')",
    "open('../evaluator/env.py')",
    "open(f'{root}/evaluator/env.py')",
    "sys.path.append('evaluator/')",
)
MERELY_SAYS = (
    "'the evaluator decides'",
    '"""The score comes from evaluator/env.py."""',
    "# evaluator/env.py\nx = 1",
    "import evaluators",
    "'my_evaluator.x'",
)


def places(source: str, *module: str) -> list[str]:
    change = FileChange("candidate/env.py", b"", source.encode(), None, None)
    return module_uses(StagedChange((change,), {}, b""), *module)


@pytest.mark.parametrize("source", NAMES)
def test_code_that_names_the_evaluator_is_found_with_its_line(source: str) -> None:
    assert places(source) == [f"candidate/env.py:{source.count(chr(10)) + 1}"]


@pytest.mark.parametrize("source", MERELY_SAYS)
def test_a_sentence_about_the_evaluator_is_no_import(source: str) -> None:
    assert places(source) == []


def test_another_module_is_found_in_the_same_way() -> None:
    assert places("import rlx.envs.success_env as judge", "rlx")
    assert places("__import__('rlx')", "rlx")
    assert not places("import rlxtra\nx = 'rlx measures it'", "rlx")
