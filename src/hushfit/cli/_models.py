"""From the options of ``hushfit fit`` to an estimator: by the kind of target, and by name."""

from dataclasses import dataclass
from typing import Any, Final

from hushfit.cli._penalties import ChosenPenalty
from hushfit.cli._printing import at_terminal

# The default model for each kind of target, and what else can be fitted to it.
BY_TARGET: Final = {
    "categorical": ("logistic", "svm", "mlp"),
    "numeric": ("linear", "ridge", "lasso", "elasticnet", "huber", "mlp"),
    "ordinal": ("linear", "ridge", "lasso", "elasticnet", "huber", "mlp"),
    "count": ("poisson",),
}
MODELS: Final = tuple(dict.fromkeys(name for names in BY_TARGET.values() for name in names))
_TARGETS_IN_WORDS: Final = {
    "categorical": "classes",
    "numeric": "numbers",
    "ordinal": "grades",
    "count": "counts",
}
# The penalty of each model of numbers that has one. Its alpha is chosen from releases unless it is
# given. The first model with a penalty is the one that its name means.
_PENALTY_OF: Final = {
    "ridge": "l2",
    "lasso": "l1",
    "elasticnet": "elasticnet",
    "huber": "l2",
    "poisson": "l2",
}
# Models that take no feature map: they choose columns one by one.
_OF_SINGLE_COLUMNS: Final = ("lasso", "elasticnet")
_USUAL_ALPHA: Final = 1e-4
# Models whose coefficients can have intervals.
_WITH_INTERVALS: Final = ("logistic", "linear", "poisson")


@dataclass(frozen=True)
class FitOptions:
    """The options of a fit that say what to fit.

    Parameters
    ----------
    given : dict
        All options, by name.
    schema : Schema
    penalty : ChosenPenalty
    """

    given: dict[str, Any]
    schema: Any
    penalty: ChosenPenalty

    @property
    def classes(self) -> bool:
        """Whether the target is one of several classes."""
        return bool(self.schema.target.kind == "categorical")

    @property
    def model(self) -> str:
        """The name of the model: as given, or the default for the target."""
        from hushfit.errors import InvalidArgument

        target = self.schema.target
        known, chosen = BY_TARGET[target.kind], self.given["model"]
        if chosen is None:
            meant = (name for name in known if _PENALTY_OF.get(name) == self.penalty.name)
            return next(meant, known[0])
        if chosen not in known:
            what = _TARGETS_IN_WORDS[target.kind]
            other = next(kind for kind, names in BY_TARGET.items() if chosen in names)
            raise InvalidArgument(
                f"--model {chosen} is not for the target {target.name!r}, which the schema "
                f"describes as {what} (kind = {target.kind!r}). Nothing was spent. Use --model "
                f"{' or '.join(known)}, or describe the target as kind = {other!r}."
            )
        return str(chosen)

    def estimator(self) -> Any:
        """The estimator, not fitted."""
        from hushfit import Budget

        Budget(self.given["epsilon"], self.given["delta"])  # refused before a large file is read
        return self._classifier() if self.classes else self._regressor()

    @property
    def _common(self) -> dict[str, Any]:
        given = self.given
        return {
            **{name: given[name] for name in ("epsilon", "delta", "adjacency", "solver")},
            "person_weight": self.schema.privacy_unit.weighting,
            "rows_per_person": self.schema.rows_per_person,
            "random_state": given["seed"],
            "verbose": int(at_terminal(given["as_json"])),
            **self._intervals,
        }

    @property
    def _intervals(self) -> dict[str, Any]:
        """The settings of a model with intervals; none for another."""
        from hushfit.data.design import MainEffects
        from hushfit.errors import InvalidArgument

        if not self.given["inference"]:
            stated = (self.given["cov_type"], self.given["expected_mean"])
            if stated != (None, None) or self.given["even_weights"]:
                raise InvalidArgument(
                    "--cov-type, --even-weights and --expected-mean are for --inference. Give it "
                    "too."
                )
            return {}
        if self.model not in _WITH_INTERVALS:
            raise InvalidArgument(
                f"--inference is for --model {', '.join(_WITH_INTERVALS)}, not for {self.model}. "
                "Nothing was spent."
            )
        bounds = MainEffects(self.schema).bounds
        kind = self.given["cov_type"] or "model"
        even = self.given["even_weights"]
        return {
            "inference": True,
            "cov_type": kind,
            "even_weights": even,
            "feature_bounds": bounds,
            **self._expected_mean,
        }

    @property
    def _expected_mean(self) -> dict[str, float]:
        from hushfit.errors import InvalidArgument

        mean = self.given["expected_mean"]
        if mean is None:
            return {}
        if self.model == "linear":
            raise InvalidArgument(
                "--expected-mean is for classes and counts: what intervals of a linear model take "
                "does not depend on the mean. Nothing was spent. Leave it out."
            )
        return {"expected_mean": mean}

    def _classifier(self) -> Any:
        from hushfit import PrivateLinearSVC, PrivateLogisticRegression
        from hushfit.errors import InvalidArgument

        alpha = self._alpha(_USUAL_ALPHA)
        kind = {"logistic": PrivateLogisticRegression, "svm": PrivateLinearSVC}[self.model]
        settings = {
            "features": self.features(),
            "threshold": _threshold(self.given["threshold"]),
        }
        if self.penalty.name == "graph" and self.given["solver"] != "auto":
            raise InvalidArgument(
                f"{self.penalty.called('name')} has its own solver, dp-sadmm. Nothing was spent. "
                "Leave --solver out."
            )
        return kind(**{**self._common, **settings, **self.penalty.settings(alpha)})

    def _regressor(self) -> Any:
        import hushfit

        name, target = self.model, self.schema.target
        self._refuse_options_of_classifiers()
        features = self.features()
        own: dict[str, Any] = {"alpha": self._alpha("auto")} if name in _PENALTY_OF else {}
        if name not in _OF_SINGLE_COLUMNS:
            own["features"] = features
        if name == "poisson":
            return hushfit.PrivatePoissonRegressor(target.high, **self._common, **own)
        own["target_bounds"] = (target.low, target.high)
        if name == "elasticnet":
            own["l1_ratio"] = self.penalty.l1_ratio
        kind = {
            "linear": hushfit.PrivateLinearRegression,
            "ridge": hushfit.PrivateRidge,
            "lasso": hushfit.PrivateLasso,
            "elasticnet": hushfit.PrivateElasticNet,
            "huber": hushfit.PrivateHuberRegressor,
        }[name]
        return kind(**self._common, **own)

    def _refuse_options_of_classifiers(self) -> None:
        from hushfit.errors import InvalidArgument

        penalty, choice = self.penalty, self.penalty.choice
        if penalty.name not in ("none", _PENALTY_OF.get(self.model)):
            known = BY_TARGET[self.schema.target.kind]
            named = next((name for name in known if _PENALTY_OF.get(name) == penalty.name), None)
            remedy = "Leave it out" if named is None else f"Use --model {named}"
            raise InvalidArgument(
                f"{penalty.called('name')} is not for --model {self.model} of "
                f"{_TARGETS_IN_WORDS[self.schema.target.kind]}. Nothing was spent. {remedy}."
            )
        if choice.constraint is not None:
            raise InvalidArgument(
                f"{penalty.called('constraint')} is for classes. Nothing was spent. Leave it out."
            )
        if self.model == "linear" and choice.alpha is not None:
            raise InvalidArgument(
                f"{penalty.called('alpha')} is the weight of a penalty, and --model linear has "
                "none. Nothing was spent. Use --model ridge, or leave it out."
            )

    def _alpha(self, default: Any) -> Any:
        """The weight of the penalty: a number, or how it is chosen."""
        from hushfit.errors import InvalidArgument

        text = self.penalty.choice.alpha
        if text is None:
            return default
        if text in ("auto", "select") and default == "auto":
            return text
        try:
            return float(text)
        except ValueError:
            choice = ", auto, or (lasso, elasticnet) select" if default == "auto" else ""
            raise InvalidArgument(
                f"{self.penalty.called('alpha')} is not a number{choice}."
            ) from None

    def features(self) -> Any:
        """What the model is to be linear in: by the options, or else by the schema."""
        from hushfit.errors import InvalidArgument
        from hushfit.features import AdditiveFeatures

        given, schema = self.given, self.schema
        chosen, shaped = schema.features, given["monotone"] or given["smoothness"]
        if chosen != "linear" and self.model in _OF_SINGLE_COLUMNS:
            raise InvalidArgument(
                f"--model {self.model} chooses single columns, and with --features {chosen} those "
                "of a number mean nothing by themselves. Nothing was spent. Use --model linear, or "
                "leave --features out of the options and of the schema."
            )
        if chosen != "additive":
            if shaped:
                raise InvalidArgument(
                    "--monotone and --smoothness are for additive models. Nothing was spent. Give "
                    "--features additive too."
                )
            return chosen
        settings = AdditiveFeatures(
            monotone=dict(map(_direction, given["monotone"])), smoothness=given["smoothness"]
        )
        settings.directions(schema.inputs)  # refuses names that are no columns
        return settings if shaped else chosen


def _threshold(given: str | None) -> Any:
    """A number if it is one; the estimator refuses what is none."""
    try:
        return None if given is None else float(given)
    except ValueError:
        return given


def _direction(text: str) -> tuple[str, int]:
    from hushfit.errors import InvalidArgument

    name, _, way = text.rpartition("=")
    if not name or way not in ("+1", "1", "-1"):
        raise InvalidArgument(
            f"--monotone {text} is not understood. Write COLUMN=+1 for a rising shape or COLUMN=-1 "
            "for a falling one."
        )
    return name, int(way)
