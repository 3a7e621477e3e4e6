"""The picture of an explanation: how much each number of the observation matters, and the value over two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlx.hosts.plots import style

MOST_BARS = 20
METHODS = {"permutation": "permutation", "integrated": "integrated gradients", "gradient": "gradient"}


def draw(
    features: Sequence[Mapping[str, Any]], out: Path, *, slice_of: Any = None, heat: Any = None,
    attention: Mapping[int, float] | None = None,
) -> None:  # fmt: skip
    """Write the picture: bars relative to the largest of each method, and the value's slice, a map, or attention."""
    second = slice_of is not None or heat is not None or bool(attention)
    figure, panels = style.blank(columns=2 if second else 1)
    _bars(panels[0], features[:MOST_BARS])
    if second:
        panels[1].remove()
        axes = figure.add_subplot(1, 2, 2)
        if attention:
            _attention(axes, attention)
            style.save(figure, out)
            return
        mesh: Any
        if slice_of is not None:
            mesh = axes.pcolormesh(slice_of.x, slice_of.y, slice_of.values, cmap="cividis", shading="nearest")
            axes.set_xlabel(slice_of.names[0])
            axes.set_ylabel(slice_of.names[1])
            axes.set_title("value, all others at their median", fontsize="medium")
        else:
            mesh = axes.imshow(heat, cmap="cividis")
            axes.set_title("occlusion: change of the actions", fontsize="medium")
        figure.colorbar(mesh, ax=axes)
    style.save(figure, out)


def _attention(axes: Any, attention: Mapping[int, float]) -> None:
    places = np.arange(len(attention))
    axes.bar(places, list(attention.values()), color=style.COLOURS[0])
    axes.set_xticks(places, [str(lag) for lag in attention])
    axes.set_xlabel("steps back")
    axes.set_title("change of the action if that observation is exchanged", fontsize="medium")


def _bars(axes: Any, features: Sequence[Mapping[str, Any]]) -> None:
    names = [feature["name"] for feature in features]
    present = [key for key in METHODS if any(feature.get(key) is not None for feature in features)]
    places = np.arange(len(names))
    width = 0.8 / max(1, len(present))
    for number, key in enumerate(present):
        values = np.array([feature.get(key) or 0.0 for feature in features])
        share = values / (values.max() or 1.0)
        axes.barh(places + number * width - 0.4 + width / 2, share, width * 0.9, label=METHODS[key],
                  color=style.COLOURS[number])  # fmt: skip
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlabel("importance, relative to the largest")
    axes.legend(fontsize="small", frameon=False, loc="lower right")
