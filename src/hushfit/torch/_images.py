"""Images in local files: the formats of MNIST (idx) and of CIFAR-10 (binary batches).

Nothing is downloaded. Pixels are mapped from 0..255 to [-1, 1], a public range.
"""

import gzip
import os
from pathlib import Path

import numpy as np

from hushfit._typing import AnyArray
from hushfit.errors import InvalidArgument

_IDX_BYTES = 0x08  # the type of an idx file whose entries are unsigned bytes
_CIFAR_SHAPE = (3, 32, 32)
_CIFAR_RECORD = 1 + 3 * 32 * 32
SPLITS = ("train", "test")


def read_idx(path: str | os.PathLike[str]) -> AnyArray:
    """Read an idx file of bytes, plain or gzipped.

    Parameters
    ----------
    path : path or str

    Returns
    -------
    array of uint8

    Examples
    --------
    >>> from pathlib import Path
    >>> from hushfit.torch import read_idx
    >>> labels = Path("t10k-labels-idx1-ubyte")
    >>> _ = labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> read_idx(labels)
    array([7, 2, 1], dtype=uint8)
    """
    raw = _bytes_of(Path(path))
    dimensions = raw[3] if len(raw) >= 4 else 0
    start = 4 + 4 * dimensions
    if len(raw) < start or raw[:2] != b"\0\0" or raw[2] != _IDX_BYTES or dimensions == 0:
        raise InvalidArgument(f"{path} is not an idx file of bytes. Give the original file.")
    shape = tuple(int.from_bytes(raw[4 + 4 * k : 8 + 4 * k], "big") for k in range(dimensions))
    if len(raw) - start != int(np.prod(shape, dtype=np.int64)):
        raise InvalidArgument(
            f"{path} should have entries of shape {shape} and has another length. It is damaged, "
            "or was not copied as a whole."
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def load_mnist(folder: str | os.PathLike[str], split: str = "train") -> tuple[AnyArray, AnyArray]:
    """Images and labels of MNIST, or of a set in its format such as Fashion-MNIST.

    Parameters
    ----------
    folder : path or str
        With ``train-images-idx3-ubyte`` and the like, plain or with ``.gz``.
    split : {"train", "test"}, default="train"

    Returns
    -------
    images : float32 array of shape (n, 1, height, width)
        In [-1, 1].
    labels : int array of shape (n,)

    Examples
    --------
    >>> from pathlib import Path
    >>> from hushfit.torch import load_mnist
    >>> sizes = b"".join(size.to_bytes(4, "big") for size in (2, 28, 28))
    >>> _ = Path("t10k-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3]) + sizes + bytes(1568))
    >>> _ = Path("t10k-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 1]))
    >>> images, labels = load_mnist(".", "test")
    >>> images.shape, labels
    ((2, 1, 28, 28), array([7, 1]))
    """
    part = {"train": "train", "test": "t10k"}[_checked(split)]
    images = read_idx(_found(Path(folder), f"{part}-images-idx3-ubyte"))
    labels = read_idx(_found(Path(folder), f"{part}-labels-idx1-ubyte"))
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise InvalidArgument(f"The images and labels in {folder} do not belong together.")
    return _scaled(images[:, None]), labels.astype(np.int64)


def load_cifar10(folder: str | os.PathLike[str], split: str = "train") -> tuple[AnyArray, AnyArray]:
    """Images and labels of CIFAR-10 in its binary version.

    Parameters
    ----------
    folder : path or str
        With ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``, plain or with
        ``.gz``.
    split : {"train", "test"}, default="train"

    Returns
    -------
    images : float32 array of shape (n, 3, 32, 32)
        In [-1, 1].
    labels : int array of shape (n,)

    Examples
    --------
    >>> from pathlib import Path
    >>> from hushfit.torch import load_cifar10
    >>> _ = Path("test_batch.bin").write_bytes(bytes([3, *[128] * 3072]))
    >>> images, labels = load_cifar10(".", "test")
    >>> images.shape, labels
    ((1, 3, 32, 32), array([3]))
    """
    train = [f"data_batch_{k}.bin" for k in range(1, 6)]
    names = train if _checked(split) == "train" else ["test_batch.bin"]
    records = [_cifar_records(_found(Path(folder), name)) for name in names]
    together = np.concatenate(records)
    labels = together[:, 0].astype(np.int64)
    if len(labels) and labels.max() > 9:
        raise InvalidArgument(
            f"A file in {folder} has labels beyond 9, so it is not CIFAR-10 in its binary version."
        )
    return _scaled(together[:, 1:].reshape(-1, *_CIFAR_SHAPE)), labels


def _cifar_records(path: Path) -> AnyArray:
    raw = _bytes_of(path)
    if len(raw) == 0 or len(raw) % _CIFAR_RECORD:
        raise InvalidArgument(
            f"{path} is not a whole number of records of {_CIFAR_RECORD} bytes. Give the binary "
            "version of CIFAR-10, as it is."
        )
    return np.frombuffer(raw, np.uint8).reshape(-1, _CIFAR_RECORD)


def _checked(split: str) -> str:
    if split not in SPLITS:
        raise InvalidArgument(f"split={split!r} is not known. Use 'train' or 'test'.")
    return split


def _found(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise InvalidArgument(f"{folder} has neither {name} nor {name}.gz. Check the folder.")


def _bytes_of(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            return file.read()
    except (OSError, EOFError) as error:
        raise InvalidArgument(f"{path} cannot be read ({type(error).__name__}).") from None


def _scaled(pixels: AnyArray) -> AnyArray:
    return pixels.astype(np.float32) / np.float32(127.5) - np.float32(1)
