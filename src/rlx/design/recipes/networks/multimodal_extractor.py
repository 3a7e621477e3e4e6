"""A multi-modal extractor: a CNN for the picture, an MLP for the vector, LayerNorm, then one joint representation.

The target depends on both parts. Shuffling either part must destroy the prediction, or the network ignores it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most


class MultimodalExtractor(nn.Module):
    """Encodes each part by its kind and concatenates the parts."""

    def __init__(self, *, channels: int, vector: int, features: int = 32) -> None:
        super().__init__()
        self.picture = nn.Sequential(
            nn.Conv2d(channels, 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip
        self.vector = nn.Sequential(nn.Linear(vector, 32), nn.ReLU())
        self.joint = nn.Sequential(nn.LazyLinear(features), nn.LayerNorm(features), nn.ReLU())

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        parts = [self.picture(observation["picture"]), self.vector(observation["vector"])]
        joint: Tensor = self.joint(torch.cat(parts, dim=1))
        return joint


def observations(count: int) -> tuple[dict[str, Tensor], Tensor]:
    """Return pictures with one bright column, vectors, and a target that needs both."""
    columns = torch.randint(0, 8, (count,))
    picture = torch.zeros(count, 1, 8, 8)
    picture[torch.arange(count), 0, :, columns] = 1.0
    vector = torch.randn(count, 4)
    target = (columns.float() - 3.5) / 2.3 + vector[:, 0]
    return {"picture": picture, "vector": vector}, target


def explained(network: nn.Module, inputs: dict[str, Tensor], target: Tensor) -> float:
    """Return the share of the target's variance that the network explains."""
    with torch.no_grad():
        missed = (network(inputs).squeeze(1) - target).pow(2).mean()
    return float(1 - missed / target.var())


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Train on the target, then shuffle one part at a time."""
    torch.manual_seed(seed)
    network = nn.Sequential(MultimodalExtractor(channels=1, vector=4), nn.Linear(32, 1))
    inputs, target = observations(512)
    network(inputs)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(int(300 * scale) + 150):
        loss = (network(inputs).squeeze(1) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    fresh, wanted = observations(512)
    order = torch.randperm(512)
    return [
        at_least("explained on fresh data", explained(network, fresh, wanted), 0.9),
        at_most(
            "explained with shuffled pictures",
            explained(network, {**fresh, "picture": fresh["picture"][order]}, wanted),
            0.6,
        ),
        at_most(
            "explained with shuffled vectors",
            explained(network, {**fresh, "vector": fresh["vector"][order]}, wanted),
            0.6,
        ),
    ]
