"""An interrupted run continues where it stopped, from its releases alone."""

import numpy as np
import pytest

from hushfit.data import SeededCoins, as_source
from hushfit.errors import InvalidArgument
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Relation, SeededSampler
from hushfit.problem import Problem
from hushfit.release.curator import Curator
from hushfit.solvers import WhitenedGradientDescent, load_checkpoint, run

SOLVER = WhitenedGradientDescent(steps=12)


def make_curator(replay=(), seed=0):
    rng = np.random.default_rng(1)
    X = rng.random((400, 5))
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    problem = Problem(Logistic(), Zero(), 400, 5, Relation.REPLACE_ONE)
    plan = SOLVER.plan(problem)
    multipliers = plan.multipliers(1.0, 400)
    sampler = SeededSampler(seed)
    return problem, Curator(
        as_source(X, y),
        plan,
        multipliers,
        Relation.REPLACE_ONE,
        sampler,
        SeededCoins(0),
        replay=replay,
    )


class Crash(Exception):
    pass


def crash_after(steps):
    def watch(done):
        if done == steps:
            raise Crash

    return watch


def test_a_resumed_run_gives_the_old_answers_again_and_only_asks_for_the_rest(tmp_path):
    path = tmp_path / "run.json"
    problem, curator = make_curator()
    with pytest.raises(Crash):
        run(SOLVER, problem, curator, watch=crash_after(5), checkpoint=path)
    problem, resumed = make_curator(replay=load_checkpoint(path), seed=99)
    run(SOLVER, problem, resumed, checkpoint=path)
    before, after = curator.transcript, resumed.transcript
    assert len(before) == 6
    assert len(after) == 13
    assert all(np.array_equal(a.answer, b.answer) for a, b in zip(before, after[:6], strict=True))


def test_replaying_a_whole_run_gives_the_same_weights_to_the_bit(tmp_path):
    path = tmp_path / "run.json"
    problem, curator = make_curator()
    first = run(SOLVER, problem, curator, checkpoint=path)
    _, again = make_curator(replay=load_checkpoint(path), seed=7)
    assert np.array_equal(run(SOLVER, problem, again).w, first.w)


@pytest.mark.parametrize(
    "content",
    ["", "{}", '{"format": "other", "releases": []}', '{"format": "hushfit-checkpoint-1"}'],
)
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path, content):
    path = tmp_path / "odd.json"
    path.write_text(content)
    with pytest.raises(InvalidArgument, match="Delete it"):
        load_checkpoint(path)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    path = tmp_path / "run.json"
    problem, curator = make_curator()
    run(SOLVER, problem, curator, checkpoint=path)
    other = load_checkpoint(path)[1:]
    _, confused = make_curator(replay=other)
    with pytest.raises(InvalidArgument, match="another fit"):
        run(SOLVER, problem, confused)
