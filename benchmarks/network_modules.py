"""The networks of the benchmarks. Imports torch alone: Opacus's interpreter reads it too."""

from collections.abc import Callable

from torch import nn


def mlp() -> nn.Module:
    """The thesis' perceptron for MNIST, 795,010 weights."""
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 10))


def small_mlp() -> nn.Module:
    """The thesis' perceptron for Fashion-MNIST, 269,322 weights."""
    widths = nn.Linear(784, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10)
    return nn.Sequential(nn.Flatten(), *widths)


def thesis_cnn() -> nn.Module:
    """The thesis' convolutional network, 102,550 weights."""
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)),
    )


def small_cnn() -> nn.Module:
    """The network of Papernot et al. (2020), 26,010 weights."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 8, 2, 3), nn.Tanh(), nn.MaxPool2d(2, 1)),
        *(nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten()),
        *(nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10)),
    )


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "mlp": mlp,
    "small-mlp": small_mlp,
    "thesis-cnn": thesis_cnn,
    "cnn": small_cnn,
}
