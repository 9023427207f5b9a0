"""Noise drawn ahead in a thread is used once.

False alarms: one check at level 1e-6.
"""

import copy
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from hushfit.privacy.noise import AheadSampler, SecureSampler

SIZE = 1 << 14


class Counting:
    """Hands out numbers that never repeat, and remembers who asked."""

    secure = True

    def __init__(self):
        self.drawn = 0

    def gaussian(self, log2_variance, size):
        self.drawn += 1
        return np.full(size, self.drawn, dtype=np.int64)

    def laplace(self, log2_scale, size):
        return np.full(size, -1, dtype=np.int64)


def test_every_draw_is_handed_out_once():
    sampler = AheadSampler(Counting())
    assert [sampler.gaussian(62, SIZE)[0] for _ in range(5)] == [1, 2, 3, 4, 5]
    assert sampler.secure
    assert sampler.laplace(3, 2).tolist() == [-1, -1]


def test_noise_of_another_kind_is_not_taken_for_it():
    """A draw for another size or variance would have the wrong scale: it is thrown away."""
    sampler = AheadSampler(Counting())
    assert len(sampler.gaussian(62, SIZE)) == SIZE
    assert len(sampler.gaussian(62, SIZE + 1)) == SIZE + 1
    numbers = [sampler.gaussian(60, SIZE)[0], sampler.gaussian(60, SIZE)[0]]
    assert len(set(numbers)) == 2
    assert sampler.gaussian(62, 3).shape == (3,)


def test_threads_never_get_the_same_noise():
    sampler = AheadSampler(SecureSampler())
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: sampler.gaussian(62, SIZE)[:4].tobytes(), range(24)))
    assert len(set(found)) == 24


def test_the_distribution_is_that_of_the_sampler():
    sampler = AheadSampler(SecureSampler())
    values = np.concatenate([sampler.gaussian(40, SIZE) for _ in range(3)]) / 2.0**20
    assert stats.kstest(values, "norm").pvalue > 1e-6


def _first_of(sampler, answers):
    answers.put(sampler.gaussian(62, SIZE)[:4].tobytes())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_neither_a_fork_nor_a_copy_repeats_noise():
    sampler = AheadSampler(SecureSampler())
    sampler.gaussian(62, SIZE)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_first_of, args=(sampler, answers))
    child.start()
    theirs = answers.get(timeout=60)
    child.join()
    assert theirs != sampler.gaussian(62, SIZE)[:4].tobytes()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="used twice"):
            duplicate(sampler)
