"""The words of a text without endings that vary, for matching a user's words with topics and cards."""

from __future__ import annotations

import re

COMMON_WORDS = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "how", "i", "if", "in", "is",
    "it", "me", "my", "need", "not", "of", "on", "or", "our", "should", "that", "the", "then", "there", "this", "to",
    "use", "want", "we", "what", "when", "which", "with", "you", "your",
))  # fmt: skip


def words_by_stem(text: str) -> dict[str, str]:
    """Return the words of a text by their stem: the word without an ending that varies (plural, -ing, -ed, -ation)."""
    words: dict[str, str] = {}
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        stem = re.sub(r"(?:ations?|ions?|ings?|ed|es|s|e)$", "", word)
        if word not in COMMON_WORDS and len(stem) > 1:
            words[stem] = word
    return words


def word_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text."""
    return frozenset(words_by_stem(text))
