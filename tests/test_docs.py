"""The documents are true: commands parse and run, links lead somewhere, generated pages are fresh."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlx.hosts.cli.commands import COMMANDS, module_name
from rlx.hosts.cli.parser import parser_of

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
SCRIPTS = [*(ROOT / "examples").rglob("*.sh")]
WALKTHROUGHS = [DOCS / "quickstart.md", *sorted((DOCS / "tutorials").glob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, the file it is saved as, and its text."""

    language: str
    title: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', text, flags=re.S | re.M)
    assert len(fences) * 2 == len(re.findall(r"^```", text, flags=re.M)), f"{page.name}: a fence does not match"
    return [Block(*fence) for fence in fences]


def without_code(page: Path) -> str:
    """Return the prose of a page. Links and headings inside code blocks do not count."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


# Commands


def command_lines() -> list[tuple[str, str]]:
    """Return every `rlx …` line inside a code block of a page or in an example script."""
    found = []
    for page in PAGES:
        for block in blocks_of(page):
            if block.language in ("sh", "bash", "console"):
                found += [(page.name, line) for line in lines_in(block.text)]
    for script in SCRIPTS:
        found += [(script.name, line) for line in lines_in(script.read_text(encoding="utf-8"))]
    return found


def lines_in(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    lines = [re.sub(r"^\$ ", "", line.strip()) for line in joined.splitlines()]
    parts = [part.strip() for line in lines for part in re.split(r"&&|\|\||;", line.split("  #")[0])]
    parts = [re.sub(r"^(step|\[.*?\])\s+", "", part) for part in parts]
    return [part for part in parts if part.startswith("rlx ")]


def words_of(line: str) -> list[str]:
    """Return the words that `rlx` receives from a shell line, without comments and redirections."""
    plain = re.sub(r"\s\d?>>?\s*\S+", "", line.split("  #")[0])
    return shlex.split(plain)[1:]


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_every_printed_command_line_parses(page: str, line: str) -> None:
    words = words_of(line)
    if words[0] in ("--help", "--version"):
        return
    parser_of(words[0]).parse_args(words[1:])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example_that_parses(command: str) -> None:
    __import__(module_name(command))
    text = sys.modules[module_name(command)].__doc__ or ""
    lines = re.findall(r"^(?:Examples?:)? +(rlx .*)$", text, flags=re.M)
    assert lines, f"rlx {command} --help shows no example"
    for line in lines:
        words = words_of(line)
        assert words[0] == command
        parser_of(command).parse_args(words[1:])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", WALKTHROUGHS, ids=lambda page: page.stem)
def test_every_command_of_a_walkthrough_runs(page: Path, tmp_path: Path) -> None:
    """Save titled blocks as files and run the `sh` blocks in order, in one shell. `text` blocks are for people."""
    script = ["set -euo pipefail"]
    for block in blocks_of(page):
        if block.title:
            folder = shlex.quote(str(Path(block.title).parent))
            script.append(f"mkdir -p {folder}")
            script.append(f"cat > {shlex.quote(block.title)} <<'END_OF_FILE'\n{block.text}END_OF_FILE")
        elif block.language == "sh":
            script.append(block.text)
        else:
            assert block.language == "text", f"{page.name}: mark the block as sh or text, or give it a title"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RLX_", "GIT_"))}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RLX_CLONE": str(ROOT),
        "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
    }
    (tmp_path / "gitconfig").write_text("[user]\n\tname = me\n\temail = me@example.org\n")
    place = tmp_path / "work"
    place.mkdir()
    done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_import_on_a_page_works(page: Path) -> None:
    code = "\n".join(block.text for block in blocks_of(page) if block.language == "python")
    for module, names in re.findall(r"^from (rlx[\w.]*) import (.+)$", code, flags=re.M):
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name), f"{page.name}: {module} has no {name}"


# Pages


def links_of(page: Path) -> list[tuple[Path, str]]:
    """Return the file and the anchor that each relative link of a page names."""
    targets = re.findall(r"\]\(([^)\s]+)\)", without_code(page))
    local = [target.partition("#") for target in targets if "://" not in target]
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in local]


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    headings = [re.sub(r"[*`]", "", heading).strip().lower() for heading in re.findall(r"^#+ (.+)$", text, flags=re.M)]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


def test_every_link_and_anchor_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target, anchor in links_of(page):
            has_anchor = not anchor or (target.suffix == ".md" and target.exists() and anchor in anchors_of(target))
            if not target.exists() or not has_anchor:
                broken.append(f"{page.relative_to(ROOT)} → {target.name}#{anchor}")
    assert broken == []


def test_every_page_is_reachable_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        waiting += [target for target, _ in links_of(page) if target.suffix == ".md" and DOCS in target.parents]
    assert set(DOCS.rglob("*.md")) - reached == set()


def test_every_page_begins_with_its_reader_and_ends_with_the_next_page() -> None:
    incomplete = []
    for page in DOCS.rglob("*.md"):
        if page.parent.name == "reference":
            continue
        paragraphs = page.read_text(encoding="utf-8").strip().split("\n\n")
        if not paragraphs[1].startswith("For ") or not paragraphs[-1].startswith("Next: "):
            incomplete.append(str(page.relative_to(ROOT)))
    assert incomplete == []


def test_every_picture_is_small() -> None:
    pictures = [*DOCS.rglob("*.png")]
    assert pictures
    assert [picture.name for picture in pictures if picture.stat().st_size > 80_000] == []


def test_every_path_that_the_readme_names_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:tests|bench|docs|examples)/[\w/.]*)`", text)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_module_in_the_readmes_tree_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = re.sub(r"\([^)]*\)", "", text.split("src/rlx/\n")[1].split("docs/ ")[0])
    missing = []
    for line in tree.splitlines():
        columns = re.split(r"\s{2,}", line.strip())
        if not line.startswith("    "):
            room = ROOT / "src" / "rlx" / columns[0]
            columns = columns[2:]
        names = " ".join(columns).replace(",", " ").split()
        places = [room, *(room / name for name in names[:1])]
        for name in names:
            if not any((place / name).is_dir() or (place / f"{name}.py").is_file() for place in places):
                missing.append(f"{room.name}/{name}")
    assert missing == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


def test_generated_pages_are_fresh() -> None:
    words = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_ledger_page_documents_every_refusal_code() -> None:
    from rlx.study.refusal import CODES

    table = (DOCS / "concepts" / "ledger.md").read_text(encoding="utf-8").split("## Refusal codes")[1]
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", table, flags=re.M)) == set(CODES)


def test_the_python_examples_import_names_that_exist() -> None:
    missing = []
    for page in PAGES:
        for block in blocks_of(page):
            imports = re.findall(r"^from (rlx[\w.]*) import (.+)$", block.text, flags=re.M)
            for module, names in imports if block.language == "python" else []:
                loaded = importlib.import_module(module)
                missing += [f"{page.name}: {module}.{name}" for name in names.split(", ") if not hasattr(loaded, name)]
    assert missing == []
