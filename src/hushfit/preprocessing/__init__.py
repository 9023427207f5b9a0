"""Transformers that cost what they say: public ranges, private quantiles, vocabularies, and pipelines with one guarantee."""

from hushfit.preprocessing._bounded import BoundedScaler
from hushfit.preprocessing._encoder import SchemaEncoder
from hushfit.preprocessing._pipeline import PrivatePipeline, pipeline_guarantee
from hushfit.preprocessing._quantile_scaler import PrivateQuantileScaler

__all__ = ["BoundedScaler", "PrivatePipeline", "PrivateQuantileScaler", "SchemaEncoder", "pipeline_guarantee"]
