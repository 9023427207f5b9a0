"""Image files in the formats of MNIST and CIFAR-10, made up."""

import gzip

import numpy as np
import pytest

from hushfit.errors import InvalidArgument
from hushfit.torch import load_cifar10, load_mnist, read_idx


def idx(values):
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    return bytes([0, 0, 8, values.ndim]) + sizes + values.astype(np.uint8).tobytes()


def test_mnist_reads_plain_and_gzipped_files(tmp_path):
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(0, 256, (7, 5, 4)), rng.integers(0, 10, 7)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(pixels))
    with gzip.open(tmp_path / "train-labels-idx1-ubyte.gz", "wb") as file:
        file.write(idx(labels))
    X, y = load_mnist(tmp_path)
    assert X.shape == (7, 1, 5, 4)
    assert X.dtype == np.float32
    np.testing.assert_allclose(X[:, 0], pixels / 127.5 - 1, atol=1e-6)
    assert y.tolist() == labels.tolist()
    with pytest.raises(InvalidArgument, match="neither t10k-images"):
        load_mnist(tmp_path, "test")
    with pytest.raises(InvalidArgument, match="not known"):
        load_mnist(tmp_path, "valid")
    with gzip.open(tmp_path / "train-labels-idx1-ubyte.gz", "wb") as file:
        file.write(idx(labels[:3]))
    with pytest.raises(InvalidArgument, match="do not belong together"):
        load_mnist(tmp_path)


def test_cifar_reads_its_binary_batches(tmp_path):
    rng = np.random.default_rng(0)
    batches = [rng.integers(0, 256, (3, 3073)).astype(np.uint8) for _ in range(6)]
    for k, batch in enumerate(batches):
        batch[:, 0] %= 10
        name = "test_batch.bin" if k == 5 else f"data_batch_{k + 1}.bin"
        (tmp_path / name).write_bytes(batch.tobytes())
    X, y = load_cifar10(tmp_path)
    assert X.shape == (15, 3, 32, 32)
    assert y.tolist() == np.concatenate([batch[:, 0] for batch in batches[:5]]).tolist()
    # Red comes first, row by row.
    np.testing.assert_allclose(X[4, 0, 1, 2], batches[1][1, 1 + 32 + 2] / 127.5 - 1, atol=1e-6)
    assert load_cifar10(tmp_path, "test")[0].min() >= -1
    (tmp_path / "test_batch.bin").write_bytes(b"short")
    with pytest.raises(InvalidArgument, match="whole number of records"):
        load_cifar10(tmp_path, "test")
    (tmp_path / "test_batch.bin").write_bytes(bytes([11] * 3073))
    with pytest.raises(InvalidArgument, match="labels beyond 9"):
        load_cifar10(tmp_path, "test")


@pytest.mark.parametrize(
    "raw",
    [b"", b"\0\0\x0d\x01\0\0\0\1\0", idx(np.zeros((2, 2)))[:-1]],
    ids=["empty", "type", "cut"],
)
def test_damaged_idx_files_are_refused(tmp_path, raw):
    (tmp_path / "file").write_bytes(raw)
    with pytest.raises(InvalidArgument, match=r"idx file|another length"):
        read_idx(tmp_path / "file")
    (tmp_path / "file.gz").write_bytes(b"no gzip")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        read_idx(tmp_path / "file.gz")
