"""The features stage: samples to features, as the method of the job does it."""

from typing import Any

from eigenscape.context import Context
from eigenscape.features.method import feature_method


def features_stage(context: Context) -> dict[str, Any]:
    """Write ``features/values`` (sample, feature), by `eigenscape.features.method.FeatureMethod.write`."""
    return feature_method(context.job).write(context)
