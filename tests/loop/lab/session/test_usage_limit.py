"""The usage limits of coding agents, as they print them, and the time at which each resets."""

from __future__ import annotations

import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from rlx.loop.lab.session.usage_limit import find_usage_limit

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 17, 22, 30, tzinfo=BERLIN).timestamp()
HOUR = 3600.0


def at(*numbers: int, zone: str = "Europe/Berlin") -> float:
    return datetime(*numbers, tzinfo=ZoneInfo(zone)).timestamp()  # type: ignore[arg-type,misc]


SENTENCES = {
    f"Claude AI usage limit reached|{int(NOW + HOUR)}": float(int(NOW + HOUR)),
    "Claude usage limit reached. Your limit will reset at 3am (Europe/Berlin).": at(2026, 11, 18, 3),
    "5-hour limit reached ∙ resets 11pm (Europe/Berlin)": at(2026, 11, 17, 23),
    "You've hit your limit · resets 2:30am (Europe/Berlin)": at(2026, 11, 18, 2, 30),
    "You've hit your session limit · resets 4pm (America/New_York)": at(2026, 11, 18, 16, zone="America/New_York"),
    "Weekly limit reached ∙ resets Nov 20, 5pm (Europe/Berlin)": at(2026, 11, 20, 17),
    "You've hit your weekly limit · resets Nov 20 at 10am (UTC)": at(2026, 11, 20, 10, zone="UTC"),
    "You're out of extra usage · resets 5pm (America/Los_Angeles)": at(2026, 11, 17, 17, zone="America/Los_Angeles"),
    "You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again in 2 hours 13 minutes.":
        NOW + 2 * HOUR + 13 * 60,
    "You've hit your usage limit. Upgrade to Plus or try again in 2 days 17 hours 14 minutes.":
        NOW + 65 * HOUR + 14 * 60,
    "Rate limit reached for gpt-5.5-codex in organization org-x. Please try again in 1.898s.": NOW + 1.898,
    "Rate limit reached for gpt-5.5-codex on tokens per min. Please try again in 340ms.": NOW + 0.34,
    "ERROR: You've hit your usage limit. try again at Nov 18th, 2026 9:07 PM (Europe/Berlin).": at(2026, 11, 18, 21, 7),
    "usage limit reached, resets at 2026-11-18T01:00:00Z": at(2026, 11, 18, 1, zone="UTC"),
    "Weekly limit reached, resets Thu 9am (Europe/Berlin)": at(2026, 11, 19, 9),
    "API Error: 429 rate_limit_error: Number of requests has exceeded your rate limit": None,
    "You exceeded your current quota, please check your plan and billing details.": None,
    "Credit balance is too low": None,
    "You've hit your usage limit. Or try again later.": None,
}  # fmt: skip


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_about_a_limit_is_recognised_with_its_reset_time(sentence: str) -> None:
    limit = find_usage_limit(f"Working …\n{sentence}\n", now=NOW)
    assert limit is not None
    assert limit.says == sentence
    assert limit.resets == SENTENCES[sentence]


EVENTS = {
    "claude event": (
        {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": int(NOW + HOUR),
                                                         "rateLimitType": "five_hour"}},
        float(int(NOW + HOUR)),
    ),
    "claude result": (
        {"type": "result", "is_error": True, "result": "You've hit your limit · resets 3am (Europe/Berlin)"},
        at(2026, 11, 18, 3),
    ),
    "codex turn": (
        {"type": "turn.failed", "error": {"message": "You've hit your usage limit. Try again in 3 hours 5 minutes."}},
        NOW + 3 * HOUR + 300,
    ),
    "codex error": (
        {"type": "error", "error": {"type": "usage_limit_reached", "message": "The usage limit has been reached",
                                    "resets_in_seconds": 9568}},
        NOW + 9568,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_about_a_limit_is_recognised_with_its_reset_time(name: str) -> None:
    event, resets = EVENTS[name]
    limit = find_usage_limit(json.dumps(event), now=NOW)
    assert limit is not None
    assert limit.resets == resets


NOT_LIMITS = (
    "Context limit reached · /compact or /clear to continue",
    "the rate of 5 limits the step",
    "Concurrent subagent limit reached.",
    json.dumps({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "resetsAt": int(NOW + HOUR)}}),
    json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "usage limit reached|9999"}]}}),
    json.dumps({"type": "result", "is_error": False, "result": "I handled: You've hit your usage limit."}),
)  # fmt: skip


@pytest.mark.parametrize("text", NOT_LIMITS)
def test_other_limits_and_what_a_model_says_are_not_usage_limits(text: str) -> None:
    assert find_usage_limit(text, now=NOW) is None


def test_a_reset_that_nobody_can_wait_for_is_not_believed() -> None:
    limit = find_usage_limit("Claude AI usage limit reached|9999999999", now=NOW)
    assert limit is not None
    assert limit.resets is None


def test_only_the_end_of_the_output_counts() -> None:
    output = "You've hit your usage limit. Try again in 3 hours.\n" + "step\n" * 200
    assert find_usage_limit(output, now=NOW) is None
