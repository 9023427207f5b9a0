"""Transformers that cost what they say: public ranges, private quantiles, vocabularies, and
pipelines with one guarantee.

BoundedScaler               Clip every column to its public range and map it to [0, 1]
LOST_SHARE_OF_VOCABULARIES  Part of delta for naming a text that only one record has
SchemaEncoder               Encode a table with a public schema
is_private                  Whether an estimator pays for what it learns
private_parts               The parts that pay, under the names that ``set_params`` knows them by
refuse_choices_by_rows      Refuse a column transformer whose columns or layout the rows would
                            decide
PrivatePipeline             A scikit-learn pipeline with one privacy budget for preprocessing and
                            model together
pipeline_guarantee          One guarantee for a fitted scikit-learn pipeline whose steps paid for
                            themselves
LOOKS                       Names of the two releases of the quantile scaler
PrivateQuantileScaler       Clip every column to two of its quantiles, found privately, and map it
                            to [0, 1]
spreads_of                  Two looks: where the values are, then how they are spread there
"""

from hushfit.preprocessing._bounded import BoundedScaler
from hushfit.preprocessing._encoder import LOST_SHARE_OF_VOCABULARIES, SchemaEncoder
from hushfit.preprocessing._parts import is_private, private_parts, refuse_choices_by_rows
from hushfit.preprocessing._pipeline import PrivatePipeline, pipeline_guarantee
from hushfit.preprocessing._quantile_scaler import LOOKS, PrivateQuantileScaler, spreads_of

__all__ = [
    "LOOKS",
    "LOST_SHARE_OF_VOCABULARIES",
    "BoundedScaler",
    "PrivatePipeline",
    "PrivateQuantileScaler",
    "SchemaEncoder",
    "is_private",
    "pipeline_guarantee",
    "private_parts",
    "refuse_choices_by_rows",
    "spreads_of",
]
