"""The public names, by module, and the directive that documents a module of them.

Users and the policy of versions (docs/contribute/versioning.md) rely on these names. What a package
exports beyond them serves other packages of the library, and whoever extends it; the reference
lists those names with a line each.
"""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PUBLIC = {
    "hushfit": """PrivateLogisticRegression PrivateLinearSVC PrivateGraphLogisticRegression
        PrivateLinearRegression PrivateRidge PrivateLasso PrivateElasticNet PrivateHuberRegressor
        PrivatePoissonRegressor PrivateRanker PrivateFeatureSelector PrivateSearchCV BoundedScaler
        PrivateQuantileScaler SchemaEncoder PublicFeatures PrivatePipeline pipeline_guarantee
        Budget Guarantee Ledger Relation load_model save_model""",
    "hushfit.statistics": """describe quote mean median quantile proportion mean_difference
        proportion_difference histogram counts Estimate Bars Description""",
    "hushfit.privacy": """epsilon_of delta_of calibrate compose repeat gaussian_mu gaussian_delta
        GaussianCost PoissonGaussianCost FixedSizeGaussianCost PureCost RdpCost ComposedCost
        ObjectiveCost ClassicObjectiveCost PersonObjectiveCost MixtureGaussianCost
        PermutedGaussianCost ThresholdedGaussianCost AboveThresholdCost GatedCost BoundedRangeCost
        ApproximateCost cost_from_dict GaussianFilter RdpOdometer GroupGuarantee ReleaseRecord
        Receipt Spent SecureSampler SeededSampler OpenDPSampler sampler_for discretisation_loss""",
    "hushfit.unit": "PrivacyUnit AccountUnit",
    "hushfit.losses": """Logistic HuberHinge Squared LeastSquares SaturatingSquares Poisson Softmax
        OneVsRest Loss""",
    "hushfit.penalties": """L1 ElasticNet ScaledL2 WeightedL1 GroupLasso SparseGroup FusedLasso
        TotalVariation Slope Nuclear SCAD MCP LHalf Lq Box NonNegative L1Ball L2Ball Zero
        penalty_from_name Penalty""",
    "hushfit.constraints": "Constraint identity graph chain group copied_groups consensus "
    "generalised",
    "hushfit.solvers": """WhitenedGradientDescent ProxNewton HeavyBall ProximalGradient SSADMM
        MPADMM DPSADMM DPVRADMM DPSC ObjectivePerturbation ClassicObjective OutputPerturbation
        PermutedSGD DPSGD DPAdam DPSVRG DPBLS DPAGD DoubleNoiseNewton FrankWolfe PrivGene
        SufficientStatistics OneRelease TwoReleases WhitenedLeastSquares WhitenedPoisson
        ExactMinimiser PrivateGraph PublicGraph choose_solver solver_from Solver""",
    "hushfit.features": "AdditiveFeatures HashedText ScatteringMap FeatureMap",
    "hushfit.datasets": """load_adult load_heart simulate_heart load_ipums_br
        make_sparse_classification Adult Heart LabelledRows SparseClassification""",
    "hushfit.data.schema": """Schema SchemaFile NumericColumn CategoricalColumn DateColumn
        HashedColumn CountTarget OrdinalTarget read_schema schema_to_toml""",
    "hushfit.data.tables": "CodedRows find_tables",
    "hushfit.estimators": "LayerMap QuadraticMap ChainedMaps",
    "hushfit.models": "Model Provenance read_model save_ranker load_ranker",
    "hushfit.federated": """fit_together Network Together PPADMM IPPADMM
        DVP MADMM RADMM DPADMM""",
    "hushfit.forecast": "forecast rows_needed interval_forecast Forecast IntervalForecast",
    "hushfit.theory": """Setting Bound all_bounds ss_admm mp_admm rsgd_ar pp_admm ipp_admm dp_sadmm
        dp_vradmm smoothing_gain""",
    "hushfit.report": "report_page model_card number_forecast ranking_forecast",
    "hushfit.audit": "audit audit_solver lower_bound Audit Bound Claim Verdict",
    "hushfit.torch": """PrivateMLPClassifier PrivateMLPRegressor PrivateNeuralClassifier fit_private
        NetworkFit Progress FrozenModule multilayer_perceptron save_network load_network export_onnx
        load_mnist load_cifar10 read_idx""",
    "hushfit.torch.solvers": "NetworkSGD NetworkAdam NetworkBLS NetworkSolver State",
    "hushfit.mlflow": "save_pyfunc",
    "hushfit.dask": "DaskRows connected ClusterLost",
    "hushfit.errors": """HushfitError InvalidArgument UnknownName BudgetExceeded LedgerError
        UnsupportedRelation InfeasibleBudget NotCertified TooFewRows NonFiniteRecords OutOfMemory
        NoIntervals ApprovalNeeded OldJournal UndeclaredRelease PrivacyLeakWarning
        WeakGuaranteeWarning MissingBoundsWarning TooLittleDataWarning InsecureNoiseWarning
        NotConvergedWarning""",
}

_ENTRIES_OF_A_SCREEN = 3

# Steps of a fit that other packages of the library take; users call `fit` and `quote`.
STEPS = [
    "accept",
    "feature_map",
    "inferred",
    "keep_inference",
    "list_person_unit",
    "person_unit",
    "prepare",
    "problem",
    "public_length",
]


def public_names() -> Iterator[tuple[str, str]]:
    """(module, name) of everything public."""
    for module, names in PUBLIC.items():
        yield from ((module, name) for name in names.split())


def is_documented(thing: Any) -> bool:
    """Whether a name can have a docstring of its own; aliases of types and constants cannot."""
    return inspect.isclass(thing) or inspect.isfunction(thing)


def first_line(thing: Any) -> str:
    """The first sentence of a docstring."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


class PublicNames(SphinxDirective):
    """A table of a module's public names, their entries, and a line for each other export."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write the entries as reStructuredText, and have it parsed."""
        module = self.arguments[0]
        home, public = import_module(module), PUBLIC[module].split()
        lines = [f".. currentmodule:: {module}", "", *_table(module, home, public)]
        for name in public:
            lines += [*self._entry(module, name, getattr(home, name)), ""]
        shown = {*public, *PUBLIC["hushfit"].split()}
        others = [name for name in getattr(home, "__all__", ()) if name not in shown]
        others = [name for name in others if is_documented(getattr(home, name))]
        if module != "hushfit" and others:
            lines += [".. rubric:: For extensions", ""]
            for name in sorted(others, key=str.lower):
                lines += [f"``{name}``", f"    {first_line(getattr(home, name))}", ""]
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, source=module), 0, holder)
        entries = [child for child in holder.children if isinstance(child, addnodes.desc)]
        if len(entries) != len(public):  # such as all of them, where Markdown is parsed
            raise self.error(f"{len(entries)} of {len(public)} names of {module} became entries.")
        return list(holder.children)

    @staticmethod
    def _entry(module: str, name: str, thing: Any) -> list[str]:
        kind = "class" if inspect.isclass(thing) else "function"
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            kind = "exception"
        return [f".. auto{kind}:: {module}.{name}", *_members(thing)]


def _table(module: str, home: Any, names: list[str]) -> list[str]:
    """A line for each name, with a link to its entry, where there are more than a screen shows."""
    if len(names) <= _ENTRIES_OF_A_SCREEN:
        return []
    lines = [".. list-table::", "   :class: names", "   :widths: 32 68", ""]
    for name in names:
        lines += [
            f"   * - :py:obj:`{name} <{module}.{name}>`",
            f"     - {first_line(getattr(home, name))}",
        ]
    return [*lines, ""]


def _members(thing: Any) -> list[str]:
    """Methods of a class and of its bases here; what scikit-learn adds is documented there."""
    if not inspect.isclass(thing) or issubclass(thing, BaseException):
        return []
    foreign = [
        base.__name__ for base in thing.__mro__ if base.__module__.split(".")[0] != "hushfit"
    ]
    return [
        "   :members:",
        f"   :inherited-members: {', '.join(foreign)}",
        f"   :exclude-members: {', '.join(STEPS)}",
    ]


def _skips(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Methods by which scikit-learn routes metadata are documented there."""
    del app, what, thing, options
    routing = name == "get_metadata_routing" or re.fullmatch(r"set_\w+_request", name)
    return True if routing else (skip or None)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-skip-member", _skips)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
