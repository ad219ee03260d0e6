"""What ties the estimators to scikit-learn, without needing it.

scikit-learn recognises its own exception and tag classes. If it has been imported, ours are those;
if not, they are the equivalents below. Nothing here imports scikit-learn unless scikit-learn asks.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = [
    "ConvergenceWarning",
    "DataConversionWarning",
    "NotFittedError",
    "exception",
    "make_tags",
]


class NotFittedError(ValueError, AttributeError):
    """`predict` before `fit`."""


class ConvergenceWarning(UserWarning):
    """The certificate was not reached; the message says how far away it is and what may help."""


class DataConversionWarning(UserWarning):
    """The data was understood, but not in the shape it came in."""


_OURS = {
    "NotFittedError": NotFittedError,
    "ConvergenceWarning": ConvergenceWarning,
    "DataConversionWarning": DataConversionWarning,
}
_DERIVED: dict[str, type] = {}


def exception(name: str) -> Any:
    """Return our class of this name or, with scikit-learn around, one that is also its class."""
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return _OURS[name]
    if name not in _DERIVED:
        _DERIVED[name] = type(name, (_OURS[name], getattr(theirs, name)), {"__module__": __name__})
    return _DERIVED[name]


def make_tags(kind: str, *, multi_output: bool = False, multi_class: bool = True) -> Any:
    """Return scikit-learn's description of an estimator; `kind` is "classifier" or "regressor"."""
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

    return Tags(
        estimator_type=kind,
        target_tags=TargetTags(required=True, multi_output=multi_output),
        classifier_tags=(ClassifierTags(multi_class=multi_class) if kind == "classifier" else None),
        regressor_tags=RegressorTags() if kind == "regressor" else None,
        input_tags=InputTags(sparse=True),
    )
