"""A training step with nothing but the installed package: a small network learns the exclusive or.

`.ci/run` runs this file from a clean environment outside the repository.
"""

from lazulite import GlobalCounters, Tensor, nn


class Network:
    """Two layers."""

    def __init__(self) -> None:
        self.first, self.second = nn.Linear(2, 8), nn.Linear(8, 1)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).tanh())


def train(steps: int) -> tuple[float, float]:
    """The loss before and after."""
    Tensor.manual_seed(0)
    network = Network()
    optimiser = nn.optim.Adam(nn.state.get_parameters(network), lr=0.05)
    x, target = Tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), Tensor([[0.0], [1.0], [1.0], [0.0]])
    losses = []
    with Tensor.train():
        for _ in range(steps):
            optimiser.zero_grad()
            loss = (network(x) - target).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    return losses[0], losses[-1]


def main() -> None:
    first, last = train(steps=200)
    print(f"loss {first:.4f} -> {last:.6f}, {GlobalCounters.programs_compiled} programs compiled")
    if not last < first / 10:
        raise SystemExit("the network did not learn")


if __name__ == "__main__":
    main()
