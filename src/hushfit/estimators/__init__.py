"""scikit-learn estimators on top of the solvers.

ExplainsArguments               An estimator that says what to use instead of an argument that it
                                does not have
Prepared                        Rows ready to be fitted, and the public half of the fit
ChosenScaling                   The scaling of records, and the public length they are divided by
PrivateLinearSVC                Linear support vector machine (huberised hinge loss) with a
                                differential-privacy guarantee
PrivateLogisticRegression       Logistic regression with a differential-privacy guarantee
PrivateGraphLogisticRegression  Logistic regression with a graph-guided fused lasso and a
                                differential-privacy guarantee
FormulaModel                    A model whose columns are the terms of a formula
Inference                       Estimates and their covariance
INTERCEPT                       The name of the intercept among coefficients
Line                            One line of the table of coefficients
MarginalEffects                 Changes of the mean of the response, with intervals
Parts                           Covariance of coefficients: sampling, and what noise adds
middle_of                       The middle of the public range of every column
require_feasible                Refuse a fit whose intervals noise would hide
LINEAR                          The name of features that are the columns themselves
needs_class_counts              Whether a threshold needs the frequencies of the classes
additive_settings               The settings of an additive model; None for any other argument
data_size                       N = n mu / a: how much the rows can show through the noise
public_map                      The map of a step that knows no budget
as_frame                        Tables of any library as rows
labels_of                       Rows as a frame, and labels as given or of the column named
unwrapped                       Rows as scikit-learn reads them
input_names                     Names of the columns that an estimator was given
refusal_of_shape                What to raise for rows of a wrong shape, without cells or sizes
as_cells                        Labels or targets as an array, each as it is
encode_labels                   Labels as numbers, by the public label set
places_of                       The number of the class of each label
public_classes                  The label set, sorted
public_of                       What a fit by a schema takes as public, in words
TargetScale                     Targets mapped to [-1, 1] by their public range
with_missing_targets            Checked rows and targets, of which some may be missing
with_numbers                    Rows in which objects and texts are floats, each read by itself
with_unknown_labels             Checked rows and labels, of which some may be unknown
no_cell_quoted                  Report rows that are no table without quoting cells or sizes
progress_bar                    A progress bar on the terminal
refuse_extras                   Refuse sample weights and unknown arguments of ``fit``
PersonSettings                  The settings of an estimator that say what the rows of one person
                                weigh
ProtectsPersons                 An estimator whose ``fit`` takes ``groups``
column_names                    Names of the columns of a frame or mapping
features_of                     Rows without the column of ids
persons_in                      The persons of a fit with the settings of an estimator
refuse_unused_settings          Refuse weights for the rows of a person where there are no ids
split_groups                    The features, and whose row each is
feature_ranges                  The ranges of the columns of an estimator, by position
ranges_by_place                 Ranges in the order of the columns, if they were given by name
Fit                             Result of a private fit
private_fit                     Fit one model
STORED_MAPS                     Public feature maps of rankers that a model file can hold
ChainedMaps                     Several feature maps, one after the other
DocumentMap                     A map from documents to features that can be written down
LayerMap                        A layer with public weights
QuadraticMap                    All columns, and all products of two of them
feature_map_from                Read what ``to_dict`` of a feature map wrote
PrivateRanker                   Learning to rank with a differential-privacy guarantee
mean_ndcg                       Mean NDCG over lists at several depths
PrivateHuberRegressor           Linear regression that a few wild targets hardly move, with a
                                differential-privacy guarantee
PrivateLinearRegression         Least squares with a differential-privacy guarantee, without tuning
PrivatePoissonRegressor         Regression of counts, with a log link and a differential-privacy
                                guarantee
PrivateRidge                    Linear regression with a squared penalty and a differential-privacy
                                guarantee
PrivateElasticNet               Linear regression with L1 and squared penalties and a
                                differential-privacy guarantee
PrivateLasso                    Linear regression with an L1 penalty and a differential-privacy
                                guarantee
TableFit                        A fit of a table
TableRows                       Rows that a public schema has encoded, as a source
fit_table                       Fit an estimator to the rows of a table
EncodedRows                     Rows whose columns a public schema has mapped to [0, 1]
EncodedUnits                    Units of features in [0, 1], of which some were mapped to [-1, 1]
PredictionRanges                The public ranges that a fitted regressor clips columns and
                                predictions to
fit_encoded                     Fit a regressor to encoded rows
PrivateFeatureSelector          Keep the columns with the largest coefficients of a private
                                logistic regression
"""

from typing import TYPE_CHECKING

from hushfit._on_demand import on_demand

if TYPE_CHECKING:
    from hushfit.estimators._arguments import ExplainsArguments
    from hushfit.estimators._cells import as_cells, with_numbers
    from hushfit.estimators._classifiers import Prepared
    from hushfit.estimators._encoded_fit import EncodedUnits, PredictionRanges, fit_encoded
    from hushfit.estimators._encoded_rows import EncodedRows, TableRows
    from hushfit.estimators._feature_maps import (
        STORED_MAPS,
        ChainedMaps,
        DocumentMap,
        LayerMap,
        QuadraticMap,
        feature_map_from,
    )
    from hushfit.estimators._features import LINEAR, additive_settings, data_size, public_map
    from hushfit.estimators._formula import FormulaModel
    from hushfit.estimators._frames import as_frame, labels_of, unwrapped
    from hushfit.estimators._graph import PrivateGraphLogisticRegression
    from hushfit.estimators._inference import (
        INTERCEPT,
        Inference,
        Line,
        Parts,
        middle_of,
        require_feasible,
    )
    from hushfit.estimators._labels import (
        encode_labels,
        places_of,
        public_classes,
        with_unknown_labels,
    )
    from hushfit.estimators._linear import (
        input_names,
        no_cell_quoted,
        refusal_of_shape,
        refuse_extras,
    )
    from hushfit.estimators._linear_classifiers import PrivateLinearSVC, PrivateLogisticRegression
    from hushfit.estimators._linear_regressors import (
        PrivateElasticNet,
        PrivateHuberRegressor,
        PrivateLasso,
        PrivateLinearRegression,
        PrivateRidge,
    )
    from hushfit.estimators._marginal_effects import MarginalEffects
    from hushfit.estimators._persons import (
        PersonSettings,
        ProtectsPersons,
        column_names,
        features_of,
        persons_in,
        refuse_unused_settings,
        split_groups,
    )
    from hushfit.estimators._poisson import PrivatePoissonRegressor
    from hushfit.estimators._private_fit import Fit, private_fit
    from hushfit.estimators._progress import progress_bar
    from hushfit.estimators._ranges import feature_ranges, ranges_by_place
    from hushfit.estimators._ranker import PrivateRanker, mean_ndcg
    from hushfit.estimators._scaling import ChosenScaling
    from hushfit.estimators._selector import PrivateFeatureSelector
    from hushfit.estimators._table_fit import TableFit, fit_table, public_of
    from hushfit.estimators._targets import TargetScale, with_missing_targets
    from hushfit.estimators._threshold import needs_class_counts
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "INTERCEPT",
    "LINEAR",
    "STORED_MAPS",
    "ChainedMaps",
    "ChosenScaling",
    "DocumentMap",
    "EncodedRows",
    "EncodedUnits",
    "ExplainsArguments",
    "Fit",
    "FormulaModel",
    "Inference",
    "LayerMap",
    "Line",
    "MarginalEffects",
    "Parts",
    "PersonSettings",
    "PredictionRanges",
    "Prepared",
    "PrivateElasticNet",
    "PrivateFeatureSelector",
    "PrivateGraphLogisticRegression",
    "PrivateHuberRegressor",
    "PrivateLasso",
    "PrivateLinearRegression",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivatePoissonRegressor",
    "PrivateRanker",
    "PrivateRidge",
    "ProtectsPersons",
    "QuadraticMap",
    "TableFit",
    "TableRows",
    "TargetScale",
    "additive_settings",
    "as_cells",
    "as_frame",
    "column_names",
    "data_size",
    "encode_labels",
    "feature_map_from",
    "feature_ranges",
    "features_of",
    "fit_encoded",
    "fit_table",
    "input_names",
    "labels_of",
    "mean_ndcg",
    "middle_of",
    "needs_class_counts",
    "no_cell_quoted",
    "persons_in",
    "places_of",
    "private_fit",
    "progress_bar",
    "public_classes",
    "public_map",
    "public_of",
    "ranges_by_place",
    "refusal_of_shape",
    "refuse_extras",
    "refuse_unused_settings",
    "require_feasible",
    "split_groups",
    "unwrapped",
    "with_missing_targets",
    "with_numbers",
    "with_unknown_labels",
]
