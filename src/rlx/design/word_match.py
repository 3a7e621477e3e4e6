"""The words of a text without endings that vary, for matching a user's words with topics and cards."""

from __future__ import annotations

import re

COMMON_WORDS = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "how", "i", "if", "in", "is",
    "it", "me", "my", "need", "not", "of", "on", "or", "our", "should", "that", "the", "then", "there", "this", "to",
    "use", "want", "we", "what", "when", "which", "with", "you", "your",
))  # fmt: skip


def word_stems(text: str) -> frozenset[str]:
    """Return the words of a text without endings that vary: plurals, -ing, -ed, -ation."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    stems = {re.sub(r"(?:ations?|ions?|ings?|ed|es|s|e)$", "", word) for word in words if word not in COMMON_WORDS}
    return frozenset(stem for stem in stems if len(stem) > 1)
