"""Print a page: documentation, an agent's skill or reference, a design topic or a recipe. Without a topic, list them.

Several words are a question: rlx names the two topics that fit best, and says if it is not sure. A design topic prints
its cards, check, recipes and command. A recipe prints its source, to read and to copy. --run runs the recipes of a
topic: each one checks its claims about measured numbers. If a claim fails, the exit code is 1.

Example: rlx docs
         rlx docs quickstart
         rlx docs guides/rewards
         rlx docs contract
         rlx docs topics
         rlx docs 'which discount fits my horizon?'
         rlx docs implementing-offline-rl --run
         rlx docs qmix --run
"""

from rlx.errors import NotFound, UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.output import labelled, say, table
from rlx.number_format import listed

ALL_TOPICS = "topics"
MOST_RECIPES = 2
"""The list of topics names at most so many recipes per topic."""


def arguments(parser: Parser) -> None:
    text = "a page, a skill, a design topic, a recipe, `topics`, or a question in your own words"
    parser.add_argument("topic", nargs="*", help=text)
    parser.add_argument("--run", action="store_true", dest="is_run", help="run the topic's recipes")


def run(args: Args) -> Data:
    from rlx.hosts.agents import guides, packaged_skills

    name = " ".join(args.topic)
    if not name:
        if args.is_run:
            raise UsageError("--run needs a topic", hint="rlx docs qmix --run")
        topics = packaged_skills.topics()
        rows = [{"topic": topic.name, "skill": topic.skill, "title": topic.title} for topic in topics]
        pages = [{"page": page.name, "title": page.title} for page in guides.guides()]
        next_command = f"rlx docs TOPIC, or rlx docs {ALL_TOPICS} for design topics and recipes"
        return {"topics": rows, "pages": pages, "next": next_command}
    if name == ALL_TOPICS:
        from rlx.design.topic_table import table_rows

        return {"design_topics": list(table_rows()), "next": "rlx docs TOPIC --run"}
    if _is_design(name):
        return _run_recipes(name) if args.is_run else _design_topic(name)
    if args.is_run:
        raise UsageError(f"`{name}` has no recipe", hint=_recipe_hint(name))
    if " " in name:
        return _answer(name)
    try:
        topic = packaged_skills.topic(name)
    except NotFound as error:
        page = guides.find_guide(name)
        if page is None:
            raise NotFound(error.message, hint=_hint(name, error.hint)) from None
        return {"topic": page.name, "skill": None, "title": page.title, "text": page.path.read_text(encoding="utf-8")}
    return {"topic": topic.name, "skill": topic.skill, "title": topic.title, "text": topic.text}


def _answer(question: str) -> Data:
    """Return the topics that a question is about. If it shares few words with any, the closest ones are a guess."""
    from rlx.design.topic_search import closest_topics, sure_topics
    from rlx.hosts.agents.topic_skills import skill_of

    sure = sure_topics(question)
    found = sure or closest_topics(question)
    if not found:
        raise NotFound(f"no topic fits `{question}`", hint=f"rlx docs {ALL_TOPICS}")
    rows = [{"topic": topic.name, "title": topic.title, "skill": skill_of(topic), "command": topic.command}
            for topic in found]  # fmt: skip
    return {"question": question, "is_sure": bool(sure), "found": rows, "next": f"rlx docs {found[0].name}"}


def _is_design(name: str) -> bool:
    from rlx.design.recipe_index import recipe_names
    from rlx.design.topic_table import WORKFLOWS, topic_names

    return name in topic_names() or name in recipe_names() or name in [workflow.name for workflow in WORKFLOWS]


def _recipe_hint(name: str) -> str | None:
    from rlx.design.recipe_index import recipe_names
    from rlx.design.topic_table import topic_names
    from rlx.errors import hint_for

    return hint_for(name, [*topic_names(), *recipe_names()], otherwise=f"rlx docs {ALL_TOPICS}")


def _hint(name: str, otherwise: str | None) -> str | None:
    from rlx.design.recipe_index import recipe_names
    from rlx.design.topic_search import sure_topics
    from rlx.design.topic_table import topic_names
    from rlx.errors import did_you_mean
    from rlx.hosts.agents.guides import guides
    from rlx.hosts.cli.commands import COMMANDS

    if name in COMMANDS:
        return f"rlx {name} --help"
    near = did_you_mean(name, [page.name for page in guides()])
    near = near or did_you_mean(name, [*topic_names(), *recipe_names()])
    if near:
        return f"rlx docs {near}"
    fitting = sure_topics(name)
    if fitting:
        return f"rlx docs {fitting[0].name}"
    return otherwise


def _recipes_of(name: str) -> list[str]:
    from rlx.design.recipe_index import recipe_names
    from rlx.design.topic_table import TOPICS

    if name in recipe_names():
        return [name]
    rows = [topic for topic in TOPICS if name in (topic.name, topic.workflow)]
    return list(dict.fromkeys(recipe for topic in rows for recipe in topic.recipes))


def _design_topic(name: str) -> Data:
    from rlx.design.recipe_index import recipe_names, recipe_path, recipe_title
    from rlx.design.topic_table import table_rows

    if name in recipe_names():
        path = recipe_path(name)
        text = path.read_text(encoding="utf-8")
        return {"topic": name, "title": recipe_title(name), "path": str(path), "text": text}
    row = next(row for row in table_rows() if row["topic"] == name)
    recipes = [{"recipe": recipe, "title": recipe_title(recipe)} for recipe in _recipes_of(name)]
    return {**row, "recipes": recipes, "next": row["command"]}


def _run_recipes(name: str) -> Data:
    from rlx.design.recipe_index import run_recipe

    recipes = _recipes_of(name)
    if not recipes:
        row = _design_topic(name)
        raise UsageError(f"`{name}` has no recipe ({row['recipe'].removeprefix('none: ')})", hint=f"rlx docs {name}")
    runs = []
    for number, recipe in enumerate(recipes, start=1):
        say(f"running {recipe} ({number} of {len(recipes)}) …")
        runs.append(run_recipe(recipe).document())
    holds = all(row["holds"] for row in runs)
    return {"topic": name, "runs": runs, "holds": holds, "exit_code": int(not holds)}


def render(data: Data) -> str:
    if "text" in data:
        return str(data["text"])
    if "found" in data:
        rows = [[row["topic"], row["title"], row["command"]] for row in data["found"]]
        lines = [table(["topic", "title", "command"], rows)]
        if not data["is_sure"]:
            lines.append(f"not sure: your words and these topics share little; rlx docs {ALL_TOPICS} lists all topics")
        lines.append(f"next: {data['next']}")
        return "\n".join(lines)
    if "runs" in data:
        return "\n\n".join(_run_lines(row) for row in data["runs"])
    if "recipes" in data:
        return labelled({
            "topic": f"{data['topic']}: {data['title']}",
            "cards": data["cards"],
            "check": data["check"],
            "recipe": [f"{row['recipe']}: {row['title']}" for row in data["recipes"]] or data["recipe"],
            "next": data["next"],
        })  # fmt: skip
    if "design_topics" in data:
        rows = [[row["topic"], _recipe_cell(row["recipe"]), row["command"]] for row in data["design_topics"]]
        return f"{table(['topic', 'recipe', 'command'], rows)}\nnext: {data['next']}"
    blocks = []
    if data["pages"]:
        blocks.append(table(["page", "title"], [[row["page"], row["title"]] for row in data["pages"]]))
    blocks.append(table(["topic for agents", "title"], [[row["topic"], row["title"]] for row in data["topics"]]))
    return "\n\n".join([*blocks, f"next: {data['next']}"])


def _recipe_cell(recipes: str) -> str:
    """Return the first recipes of a topic. The reason why a topic has none is on its own page."""
    return listed(recipes.partition(":")[0].split(", "), most=MOST_RECIPES)


def _run_lines(row: Data) -> str:
    lines = [f"{row['recipe']}: {'all claims hold' if row['holds'] else 'a claim fails'} ({row['cpu_seconds']} CPU-s)"]
    for claim in row["claims"]:
        mark = "ok  " if claim["holds"] else "FAIL"
        lines.append(f"  {mark} {claim['what']}: {claim['value']:.4g} ({claim['relation']} {claim['limit']:g})")
    return "\n".join(lines)
