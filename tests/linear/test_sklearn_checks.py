"""scikit-learn's own estimator checks. What needs pandas or an array API is skipped by them."""

from __future__ import annotations

import warnings

import pytest

from minitorch.linear import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LinearSVM,
    LogisticRegression,
    Ridge,
)

checks = pytest.importorskip("sklearn.utils.estimator_checks")

ESTIMATORS = [
    LogisticRegression(tol=1e-8),
    LinearSVM(tol=1e-8),
    LinearRegression(tol=1e-8),
    Ridge(tol=1e-8),
    Lasso(tol=1e-8),
    ElasticNet(tol=1e-8),
]
# These compare two fits to 1e-7, weights as repetitions; that takes a certificate far below.
EQUIVALENCE = [
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
]
TIGHT = {"tol": 1e-18, "max_iter": 50_000}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_all_checks(estimator):
    tight = dict.fromkeys(EQUIVALENCE, "needs a tighter tolerance, see the next test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(
            estimator, expected_failed_checks=tight, on_skip=None, on_fail=None
        )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) > 50


# Left out: LinearRegression. The check drops samples until fewer are left than there are features,
# and least squares without a penalty has no unique answer then.
@pytest.mark.parametrize("name", EQUIVALENCE)
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(**TIGHT),
        LinearSVM(C=0.3, **TIGHT),
        Ridge(**TIGHT),
        Lasso(alpha=0.1, **TIGHT),
        ElasticNet(alpha=0.1, **TIGHT),
    ],
    ids=lambda e: type(e).__name__,
)
def test_weights_are_repetitions(estimator, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(checks, name)(type(estimator).__name__, estimator)
