"""A convolutional network that learns to tell bright halves apart, captured."""

from collections.abc import Callable

from tinygrad import Context, GlobalCounters, Tensor, TinyJit, nn
from tinygrad.helpers import colored, getenv, trange


class Model:
    def __init__(self):
        self.layers: list[Callable[[Tensor], Tensor]] = [
            nn.Conv2d(1, 4, 3),
            Tensor.relu,
            nn.BatchNorm(4),
            Tensor.max_pool2d,
            lambda x: x.flatten(1),
            nn.Linear(36, 2),
        ]

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.layers)


if __name__ == "__main__":
    Tensor.manual_seed(0)
    count = 64
    Y = (Tensor.arange(count) % 2).realize()
    column = Tensor.arange(8).reshape(1, 1, 1, 8)
    side = Y.reshape(count, 1, 1, 1)
    bright = ((column < 4) == (side == 0)).cast("float32")
    X = (bright.expand(count, 1, 8, 8) + Tensor.rand(count, 1, 8, 8) * 0.1).realize()

    model = Model()
    opt = nn.optim.Adam(nn.state.get_parameters(model), lr=0.02)

    @TinyJit
    @Context(TRAINING=1)
    def train_step() -> Tensor:
        opt.zero_grad()
        samples = Tensor.randint(getenv("BS", 32), high=X.shape[0])
        loss = model(X[samples]).sparse_categorical_crossentropy(Y[samples]).backward()
        return loss.realize(*opt.schedule_step())

    @TinyJit
    def accuracy() -> Tensor:
        return (model(X).argmax(axis=1) == Y).mean() * 100

    for _i in (t := trange(getenv("STEPS", 25))):
        GlobalCounters.reset()
        loss = train_step()
        t.set_description(f"loss: {loss.item():6.2f}")
    print("accuracy", round(accuracy().item()))
    print(colored("done", None), loss.item() < 0.1, GlobalCounters.kernel_count > 0)
