"""Checks of what users pass, in scikit-learn's words, before anything is computed."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np

from . import _sklearn
from .problem import is_sparse

__all__ = [
    "check_classes_count",
    "check_features",
    "check_matrix",
    "check_same_length",
    "check_total",
    "check_weights",
    "class_targets",
    "feature_names",
    "flag",
    "number",
    "numeric_targets",
    "seed_of",
]

_FLOATS = (np.float32, np.float64)


def _check_finite(values: np.ndarray, name: str) -> None:
    # A sum is finite if all terms are, and far cheaper than a mask; overflow is looked at closely.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    if np.isnan(values).any():
        raise ValueError(f"Input {name} contains NaN.")
    if np.isinf(values).any():
        raise ValueError(
            f"Input {name} contains infinity or a value too large for {values.dtype!r}."
        )


def _as_array(data: Any, name: str) -> np.ndarray:
    array = np.asarray(data)
    if np.iscomplexobj(array):
        raise ValueError(f"Complex data not supported\n{array}\n")
    if array.dtype.kind in "OUS":
        if array.dtype.kind == "O" and any(is_sparse(item) for item in array.ravel()[:1]):
            raise ValueError(f"{name} must be an array, not an object that holds one")
        try:
            array = array.astype(np.float64)
        except TypeError as error:
            raise TypeError(f"{name}: argument must be a string or a number ({error})") from None
        except ValueError as error:
            raise ValueError(f"{name} must be numeric: {error}") from None
    return array


def check_matrix(X: Any) -> Any:
    """Return X as C-contiguous float32 or float64 array, or as SciPy CSR with sorted indices.

    Raises
    ------
    ValueError
        Not two-dimensional, no samples, no features, not numeric, complex, NaN or infinity.
    """
    if is_sparse(X):
        if X.dtype.kind == "c":
            raise ValueError(f"Complex data not supported\n{X}\n")
        if X.ndim != 2:
            raise ValueError(f"Expected 2D input, got input with shape {X.shape}.")
        matrix = X.tocsr()
        if matrix.dtype.type not in _FLOATS:
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format or len(matrix.data) != matrix.indptr[-1]:
            matrix = matrix.copy()  # the user's own matrix stays as it is
            matrix.sum_duplicates()
            matrix.prune()  # entries beyond the last row
        values = matrix.data
    else:
        matrix = _as_array(X, "X")
        if matrix.ndim == 0:
            raise ValueError(f"Expected 2D array, got scalar array instead:\narray={matrix}.")
        if matrix.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {matrix.ndim}D array instead:\narray={matrix}.\n"
                "Reshape your data either using array.reshape(-1, 1) if your data has a single "
                "feature or array.reshape(1, -1) if it contains a single sample."
            )
        if matrix.dtype.type not in _FLOATS:
            matrix = matrix.astype(np.float64)
        matrix = values = np.ascontiguousarray(matrix)
    for size, what in zip(matrix.shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={matrix.shape}) while a minimum of 1 is "
                "required."
            )
    _check_finite(values, "X")
    return matrix


def check_same_length(X: Any, y: Any) -> None:
    """Raise ValueError if there are not as many targets as samples."""
    if X.shape[0] != len(y):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{X.shape[0]}, {len(y)}]"
        )


def feature_names(X: Any) -> np.ndarray | None:
    """Return the column names of a data frame, if all are strings."""
    columns = getattr(X, "columns", None)
    if columns is None or is_sparse(X) or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(columns, dtype=object)


def check_features(estimator: Any, data: Any, X: Any) -> None:
    """Raise ValueError if the columns (of `data`, checked: X) are not those of the fit."""
    names, fitted = feature_names(data), getattr(estimator, "feature_names_in_", None)
    if names is not None and fitted is not None and list(names) != list(fitted):
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same order: "
            f"{list(fitted)}, got {list(names)}."
        )
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def _targets(estimator: Any, y: Any, *, columns: bool) -> np.ndarray:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    if is_sparse(y):
        raise ValueError("Sparse data was passed for y, but dense data is required.")
    array = np.asarray(y)
    if np.iscomplexobj(array):
        raise ValueError(f"Complex data not supported\n{array}\n")
    if array.ndim == 2 and array.shape[1] == 1 and not columns:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples, ), for example using ravel().",
            _sklearn.exception("DataConversionWarning"),
            stacklevel=4,
        )
        array = array.ravel()
    if array.ndim != 1 and not (columns and array.ndim == 2):
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    return array


def numeric_targets(estimator: Any, y: Any) -> np.ndarray:
    """Return regression targets as float array, shape (n,) or (n, outputs)."""
    array = _as_array(_targets(estimator, y, columns=True), "y").astype(np.float64)
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(f"Found array with 0 target(s) (shape={array.shape}) in y.")
    _check_finite(array, "y")
    return array


def class_targets(estimator: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return classes, sorted, and the class number of each sample.

    Raises
    ------
    ValueError
        Values that are no classes (fractions, NaN), or fewer than two of them.
    """
    array = _targets(estimator, y, columns=False)
    if array.dtype.kind == "f":
        _check_finite(array, "y")
        if np.any(array != np.rint(array)):
            raise ValueError(
                "Unknown label type: continuous. Maybe you are trying to fit a classifier, which "
                "expects discrete classes on a regression target with continuous values."
            )
    if array.dtype.kind in "mM" and np.isnat(array).any():
        raise ValueError("Input y contains NaT.")
    if array.dtype.kind == "O":
        if any(not isinstance(label, str | numbers.Real) for label in array):
            raise ValueError("Unknown label type: unknown. Labels must be numbers or strings.")
        if len({isinstance(label, str) for label in array}) > 1:
            raise ValueError("Mix of label input types (string and number)")
        if any(label != label for label in array):
            raise ValueError("Input y contains NaN.")
    classes, numbers_ = np.unique(array, return_inverse=True)
    labels = numbers_.reshape(-1)
    check_classes_count(None, classes, labels)
    return classes, labels


def check_classes_count(
    weights: np.ndarray | None, classes: np.ndarray, labels: np.ndarray
) -> None:
    """Raise ValueError if fewer than two classes have samples that count."""
    if weights is not None:
        if not np.any(weights > 0):
            raise ValueError("all samples have weight zero: at least one must count.")
        classes = classes[np.unique(labels[weights > 0])]
    if len(classes) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data contains "
            f"only one class: {classes[:1].tolist()[0] if len(classes) else None!r}"
            + ("" if weights is None else " (samples of weight zero do not count)")
        )


def check_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Return sample weights as float64, shape (n,), or None if none were passed."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        weights = np.full(n, float(sample_weight))
    else:
        weights = _as_array(sample_weight, "sample_weight").astype(np.float64)
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(weights) != n:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}!")
    _check_finite(weights, "sample_weight")
    if np.any(weights < 0):
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not np.any(weights > 0):
        raise ValueError("sample_weight has only zeros: at least one sample must count.")
    check_total(weights, "sample_weight")
    return weights


def check_total(weights: np.ndarray, name: str) -> None:
    """Raise ValueError if weights are so large that their sum is not finite."""
    with np.errstate(over="ignore"):
        fine = np.isfinite(weights.sum())
    if not fine:
        raise ValueError(f"The sum of {name} is too large for {weights.dtype!r}: scale it down.")


def number(
    estimator: Any,
    name: str,
    low: float,
    high: float = np.inf,
    *,
    inclusive: bool = True,
    whole: bool = False,
) -> float:
    """Return a numeric parameter, checked.

    Raises
    ------
    ValueError
        Not a number in [low, high], or (low, high] if not `inclusive`.
    """
    value = getattr(estimator, name)
    kind: Any = numbers.Integral if whole else numbers.Real
    fine = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
    fine = fine and (value >= low if inclusive else value > low) and value <= high
    if not fine:
        raise ValueError(
            f"The {name!r} parameter of {type(estimator).__name__} must be "
            f"{'an int' if whole else 'a float'} in the range "
            f"{'[' if inclusive else '('}{low:g}, {high:g}{']' if high < np.inf else ')'}. "
            f"Got {value!r} instead."
        )
    return value


def flag(estimator: Any, name: str) -> None:
    """Raise ValueError if a parameter is neither true nor false."""
    value = getattr(estimator, name)
    if not isinstance(value, bool | np.bool_ | numbers.Integral):
        raise ValueError(
            f"The {name!r} parameter of {type(estimator).__name__} must be a bool. Got {value!r} "
            "instead."
        )


def seed_of(random_state: Any) -> int:
    """Return the seed that a `random_state` stands for.

    None is 0: where a fit ends is decided by its certificate, not by its seed, so there is no
    reason to be irreproducible. A generator is drawn from.
    """
    if random_state is None:
        return 0
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    raise ValueError(
        f"{random_state!r} cannot be used to seed; random_state must be None, an int, a "
        "numpy.random.RandomState or a numpy.random.Generator."
    )
