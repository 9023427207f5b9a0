"""Arguments that estimators of other libraries have: errors that say what there is instead."""

import inspect
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, Self

_OF_SOLVERS: Final = (
    "The default solver chooses it from public numbers; a solver with settings is given as solver="
)
_LENGTHS: Final = "Rows are scaled to a public length by themselves: leave it out"
_NOT_NEEDED: Final = "Nothing here depends on it: leave it out"
_INSTEAD: Final[Mapping[str, str]] = {
    "C": "The weight of the penalty is alpha, about 1 / (C * number of rows)",
    **dict.fromkeys(("max_iter", "tol", "n_iter_no_change", "early_stopping"), _OF_SOLVERS),
    **dict.fromkeys(("learning_rate", "learning_rate_init", "lr", "epochs"), _OF_SOLVERS),
    **dict.fromkeys(("max_grad_norm", "noise_multiplier", "batch_size"), _OF_SOLVERS),
    **dict.fromkeys(("data_norm", "normalize", "intercept_scaling"), _LENGTHS),
    **dict.fromkeys(("warm_start", "dual", "precompute", "selection"), _NOT_NEEDED),
    **dict.fromkeys(("multi_class", "copy_X"), _NOT_NEEDED),
    "n_jobs": "The environment variable HUSHFIT_THREADS sets the number of threads",
}
# Other names of what is here; the first that an estimator has is meant.
_RENAMED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("eps", "target_epsilon"), ("epsilon",)),
    "target_delta": ("delta",),
    **dict.fromkeys(("bounds", "bounds_X", "feature_range"), ("feature_bounds", "bounds")),
    "bounds_y": ("target_bounds",),
    "accountant": ("ledger",),
    "relation": ("adjacency",),
    "hidden_layer_sizes": ("hidden",),
    "seed": ("random_state",),
    "k": ("n_features_to_select",),
    **dict.fromkeys(("param_grid", "param_distributions"), ("candidates",)),
    "cv": ("holdout",),
    "n_iter": ("n_candidates",),
}


class ExplainsArguments:
    """An estimator that says what to use instead of an argument that it does not have.

    In ``__new__``, since scikit-learn reads the parameters of an estimator from ``__init__``.
    """

    def __new__(cls, *args: Any, **given: Any) -> Self:
        if given:
            _refuse_unknown(cls, given)
        return super().__new__(cls)


def _refuse_unknown(kind: type, given: Mapping[str, Any]) -> None:
    parameters = inspect.signature(kind).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    for name in given:
        # `class_weight` has an error of its own where it would make sense.
        if name not in parameters and name != "class_weight":
            advice = _advice(name, list(parameters))
            raise TypeError(f"{kind.__name__} has no argument {name!r}. {advice}.")


def _advice(name: str, known: Sequence[str]) -> str:
    if name in _INSTEAD:
        return _INSTEAD[name]
    renamed = [other for other in _RENAMED.get(name, ()) if other in known]
    similar = renamed or get_close_matches(name, known, n=1)
    return f"Use {similar[0]}" if similar else f"It has {', '.join(known)}"
