"""The features stage: samples to features, as the method of the job does it, filtered in space or not."""

from typing import Any

from eigenscape.context import Context
from eigenscape.features.method import feature_method
from eigenscape.features.spatial.filtering import write_filtered


def features_stage(context: Context) -> dict[str, Any]:
    """Write ``features/values`` (sample, feature), by `eigenscape.features.method.FeatureMethod.write`.

    With ``[features.spatial]`` by `eigenscape.features.spatial.filtering.write_filtered`.
    """
    method = feature_method(context.job)
    return method.write(context) if method.spatial is None else write_filtered(context, method)
