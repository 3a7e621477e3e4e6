"""How an episode ended in a vector environment: what it showed last, and whether it was a success."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SUCCESS = ("is_success", "success")


def last_observation(infos: Mapping[str, Any], index: int) -> Any:
    """Return the last observation of the episode that has just ended in environment `index`."""
    return _element(infos["final_obs"], index)


def was_success(infos: Mapping[str, Any], index: int) -> float | None:
    """Return 1 or 0 where the environment says whether its episode was a success, else None."""
    final = infos.get("final_info")
    for key in SUCCESS:
        if isinstance(final, dict) and key in final:
            mask = final.get(f"_{key}")
            if mask is None or mask[index]:
                return float(final[key][index])
    return None


def _element(batch: Any, index: int) -> Any:
    return {key: _element(part, index) for key, part in batch.items()} if isinstance(batch, dict) else batch[index]
