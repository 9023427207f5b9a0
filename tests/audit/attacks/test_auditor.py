"""Attacks: likelihood ratios are exact, canaries attain the claim, and bugs are detected."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from hushfit import PrivateLogisticRegression
from hushfit.audit import (
    TARGETS,
    Claim,
    Verdict,
    attack_on,
    audit,
    audit_solver,
    estimator_mechanism,
    log_density,
    owner_attacks,
    row_level_attack,
)
from hushfit.audit.attacks import RANKING_TARGETS, proved
from hushfit.errors import InvalidArgument, UnsupportedRelation
from hushfit.privacy import RECORD_RELATIONS, Budget, Relation, SeededSampler, gaussian_mu
from hushfit.solvers import SOLVERS
from hushfit.solvers.ranking import RANKING_SOLVERS

MILD = Budget(1.0, 1e-5)
original_gaussian, original_laplace = SeededSampler.gaussian, SeededSampler.laplace


@pytest.fixture
def half_the_noise(monkeypatch):
    """A sampler with half of the requested noise."""
    monkeypatch.setattr(
        SeededSampler,
        "gaussian",
        lambda self, log2_variance, size: original_gaussian(self, log2_variance, size) // 2,
    )
    monkeypatch.setattr(
        SeededSampler,
        "laplace",
        lambda self, log2_scale, size: original_laplace(self, log2_scale, size) // 2,
    )


def gaussian_mechanism(mu):
    return lambda world, seed: float(np.random.default_rng(seed).normal(mu * (1 - world)))


def test_a_mechanism_of_any_kind_gets_its_verdict():
    claim, mu = Claim.gaussian(4.0, 1e-5), gaussian_mu(4.0, 1e-5)
    assert audit(gaussian_mechanism(mu), claim, 4000).verdict is Verdict.CONSISTENT
    assert audit(gaussian_mechanism(2 * mu), claim, 2000).verdict is Verdict.VIOLATED
    assert audit(gaussian_mechanism(0.01), claim, 2000).verdict is Verdict.NO_POWER


def test_arrays_get_a_score_of_their_own():
    """The signal is the difference of two coordinates that share large noise."""
    mu = gaussian_mu(4.0, 1e-5)

    def mechanism(world, seed):
        common, own = np.random.default_rng(seed).normal(size=2)
        return np.array([100 * common + own + mu * (1 - world), 100 * common, 0.0])

    found = audit(mechanism, Claim.gaussian(4.0, 1e-5), 4000)
    assert 0.6 < found.ratio <= 1.0


def test_watch_sees_every_trial_and_too_few_trials_are_refused():
    done = []
    audit(gaussian_mechanism(1.0), Claim(1.0, 1e-5), 100, watch=done.append)
    assert done == list(range(2, 101, 2))
    with pytest.raises(InvalidArgument, match="too few"):
        audit(gaussian_mechanism(1.0), Claim(1.0, 1e-5), 10)


def test_every_private_solver_is_a_target():
    missing = {name for name in SOLVERS if name != "exact"} - set(TARGETS)
    assert not missing, (
        f"{sorted(missing)}: add a target, with few steps, to TARGETS in audit/attacks/_targets.py."
    )


def test_every_ranking_solver_is_a_target():
    assert set(RANKING_TARGETS) == set(RANKING_SOLVERS)
    assert set(RANKING_TARGETS.values()) <= set(TARGETS)


def test_ranking_solvers_protect_lists_labels_and_persons():
    """Every unit that a ranking solver supports is attacked."""
    attacked = {
        (solver, attack_on(name, relation).problem.privacy_unit.in_words, str(relation))
        for solver, first in RANKING_TARGETS.items()
        for name in TARGETS
        if name == first or name.startswith(f"{first}, person")
        for relation in TARGETS[name].relations
    }
    labels = {("one list", "label"), ("one person", "person-label")}
    records = {
        (unit, relation)
        for unit in ("one list", "one person")
        for relation in ("replace-one", "add-remove")
    }
    assert attacked == {
        (solver, *pair)
        for solver in RANKING_TARGETS
        for pair in (labels if solver in ("one-release", "privbr") else records)
    }


@pytest.mark.parametrize(
    "name", ["one-release-ranking", pytest.param("whitened-lists", marks=pytest.mark.slow)]
)
def test_half_the_noise_on_lists_is_seen(half_the_noise, name):
    relation = TARGETS[name].relations[0]
    assert audit_solver(name, relation, trials=600).verdict is Verdict.VIOLATED


CASES = [(name, relation) for name in TARGETS for relation in TARGETS[name].relations]


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        pytest.param(
            name,
            relation,
            id=f"{name}, {relation}",
            marks=[pytest.mark.slow] if name.startswith("privbr") else [],  # half a minute each
        )
        for name, relation in CASES
    ],
)
def test_likelihood_ratios_are_ratios_of_laws(name, relation):
    """Under the second distribution exp(score) has mean one, under the first exp(-score): false for
    any score that is not the log-likelihood ratio.

    Within six standard errors; the ratio of objectives leaves out output noise, which changes it
    by less than that.
    """
    try:
        attack = attack_on(name, relation, MILD)
        _ = attack.quote
    except UnsupportedRelation:
        assert name in ("rsgd-ar", "nsgd", "dp-vradmm, single noise", "proximal-gd, fixed size")
        return
    for world, sign in ((1, 1.0), (0, -1.0)):
        ratios = np.exp([sign * attack.white_box(world, 1000 * world + k) for k in range(30)])
        assert abs(ratios.mean() - 1) <= 6 * ratios.std(ddof=1) / math.sqrt(len(ratios)) + 1e-6
        assert ratios.std() > 0


@pytest.mark.parametrize("name", ["proximal-gd", "objective", "output"])
def test_full_batches_and_objectives_are_attained(name):
    found = audit_solver(name, trials=1200)
    assert found.verdict is Verdict.CONSISTENT
    assert 0.6 < found.ratio <= 1.0


def test_sampled_batches_are_attained_by_half_at_least():
    found = audit_solver("dp-sgd", "add-remove", trials=1600)
    assert found.verdict is Verdict.CONSISTENT


@pytest.mark.parametrize("name", ["ss-admm", "objective", "bls, all rows", "dp-agd", "nsgd"])
def test_half_the_noise_is_seen(half_the_noise, name):
    assert audit_solver(name, trials=800).verdict is Verdict.VIOLATED


def test_the_final_model_gives_half_the_noise_away_too(half_the_noise):
    assert audit_solver("proximal-gd", view="black-box", trials=800).verdict is Verdict.VIOLATED


def test_the_final_model_is_consistent():
    found = audit_solver("proximal-gd", view="black-box", trials=2000)
    assert found.verdict is not Verdict.VIOLATED
    assert found.ratio > 0.5
    with pytest.raises(InvalidArgument, match="view"):
        audit_solver("proximal-gd", view="grey")


@pytest.mark.parametrize("relation", list(RECORD_RELATIONS), ids=str)
def test_owners_are_attacked_by_their_neighbours(relation):
    for name, attack in owner_attacks(relation).items():
        found = audit(attack.white_box, attack.claim, 300, name=name)
        assert found.verdict is not Verdict.VIOLATED
        assert found.ratio > 0.2


def test_owners_with_half_the_noise_are_seen(half_the_noise):
    attack = owner_attacks()["owner, pp-admm"]
    assert audit(attack.white_box, attack.claim, 500).verdict is Verdict.VIOLATED


def test_estimators_are_audited_by_what_they_hand_out():
    X = np.zeros((8, 2))
    X[0, 0] = 1.0
    y = np.array([1, 0, 0, 0, 0, 0, 0, 1])
    tables = (X, y), (X, np.where(np.arange(8) == 0, 0, y))
    mechanism = estimator_mechanism(
        lambda: PrivateLogisticRegression(
            epsilon=8.0, delta=1e-5, classes=[0, 1], solver="proximal-gd"
        ),
        tables,
    )
    assert mechanism(0, 5).shape == (3,)
    np.testing.assert_array_equal(mechanism(0, 5), mechanism(0, 5))
    assert audit(mechanism, Claim.gaussian(8.0, 1e-5), 200).verdict is not Verdict.VIOLATED


@pytest.mark.parametrize("relation", list(RECORD_RELATIONS), ids=str)
def test_a_fit_of_persons_keeps_its_claim_and_a_fit_of_rows_does_not_hold_for_a_person(relation):
    name = "proximal-gd, person of 40 rows"
    found = audit_solver(name, relation, trials=600)
    assert found.verdict is Verdict.CONSISTENT
    assert 0.5 < found.ratio <= 1.0
    assert "one person" in str(found)
    rows = row_level_attack(name, relation)
    assert rows.neighbours.first.n_units == 47
    read = audit(rows.white_box, rows.claim, 200)
    assert read.verdict is Verdict.VIOLATED
    assert read.ratio > 1.5
    with pytest.raises(InvalidArgument, match="not known"):
        row_level_attack("proximal-gd")


def test_estimators_of_persons_are_audited_with_their_ids():
    """Person 0 has three rows, or one; its records are the only ones that are not zero."""
    tables = []
    for k, label in ((3, 1), (1, 0)):
        X = np.zeros((7 + k, 2))
        X[:k, 0] = 1.0
        y = np.array([label] * k + [0, 0, 0, 0, 0, 0, 1])
        tables.append((X, y, [0] * k + list(range(1, 8))))
    mechanism = estimator_mechanism(
        lambda: PrivateLogisticRegression(
            epsilon=8.0, delta=1e-5, classes=[0, 1], solver="proximal-gd"
        ),
        tuple(tables),
    )
    claim = Claim.gaussian(8.0, 1e-5)
    assert audit(mechanism, claim, 200).verdict is not Verdict.VIOLATED


def test_secure_noise_is_audited_as_releases_draw_it():
    assert audit_solver("proximal-gd", trials=400, secure=True).verdict is not Verdict.VIOLATED


def test_what_is_not_known_is_refused():
    with pytest.raises(InvalidArgument, match="not known"):
        attack_on("magic")
    with pytest.raises(InvalidArgument, match="has no output distribution"):
        log_density(object(), None, None)
    assert not proved("rsgd-ar", Relation.ADD_REMOVE)


def test_an_audit_tells_itself():
    found = audit(gaussian_mechanism(1.0), Claim.gaussian(4.0, 1e-5), 400, name="mine")
    values = found.to_dict()
    assert values["name"] == "mine"
    assert values["trials"] == 400
    assert str(found.verdict) in str(found)
    assert SimpleNamespace(**values).level == pytest.approx(1e-3)
