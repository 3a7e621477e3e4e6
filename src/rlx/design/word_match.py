"""The words of a text without endings that vary, for matching a user's words with topics and cards."""

from __future__ import annotations

import re

_COMMON = (
    "a about after again all already also always am an and another any anything are as at away be because been "
    "before between both but by can could did do does doing don each either enough every everything far few find "
    "first for four from get gets give gives go goes going good got had has have her here his how i if in instead "
    "into is isn it its just keep kind last let like ll made make makes many may me mean means might more most much "
    "must my need needs never new no not now of off often on once one only or other our out over own please put "
    "quite rather really s same see should since so some something somewhat start still such t take takes tell ten "
    "than that the their them then there these they thing things think this those three through to too try trying "
    "turn two up us use used uses using very want was way we well were what when where whether which while who why "
    "will with without work works worth would yes yet you your"
)
COMMON_WORDS = frozenset(_COMMON.split())
"""Words of everyday English that say nothing about the topic of a sentence."""
ENDINGS = re.compile(
    r"(?:i[sz]ations?|i[sz](?:es?|ed|ers?|ing)|ations?|at(?:es?|ed|ing|ors?)|abilit(?:y|ies)|[ai]ble|ements?|ions?|"
    r"ings?|ally|ed|ers?|es|s|e|y|ies)$"
)
SHORT_NAMES = ("q",)
"""Single letters that name something: the action values of Q-learning."""
SHORTEST_STEM = 3


def words_by_stem(text: str) -> dict[str, str]:
    """Return the words of a text by their stem: the word without an ending that varies (plural, -ing, -ed, -ation)."""
    words: dict[str, str] = {}
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        if word not in COMMON_WORDS and (len(word) > 1 or word in SHORT_NAMES):
            words[_stem(word)] = word
    return words


def word_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text."""
    return frozenset(words_by_stem(text))


def _stem(word: str) -> str:
    """Return a word without its ending. British and American spellings have one stem."""
    plain = word.replace("our", "or").replace("grey", "gray")
    if len(plain) > 7 and plain.endswith("al"):
        plain = plain[:-2]
    stem = ENDINGS.sub("", plain)
    if len(stem) < SHORTEST_STEM:
        return plain
    if len(stem) > SHORTEST_STEM and stem[-1] == stem[-2] and stem[-1] in "bdgmnprt":
        return stem[:-1]
    return stem
