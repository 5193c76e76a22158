"""What the substitutions of a build say to the two roots."""

from collections.abc import Mapping

from infra.environments import substitutions
from infra.environments.substitutions import Values

ROOTS = INFRASTRUCTURE, CONFIGURATION = ("infrastructure", "configuration")
VARIABLES = {
    INFRASTRUCTURE: {
        "PROJECT_ID": "project_id",
        "_REGION": "region",
        "_ZONE": "zone",
        "_NETWORK_NAME": "network_name",
        "_SUBNET_NAME": "subnet_name",
        "_CLUSTER_NAME": "cluster_name",
        "_ARTIFACT_REPOSITORY_BUCKET_NAME": "artifact_repository_bucket_name",
        "_TPU_TYPE": "tpu_type",
        "_NUM_TPU_POOLS": "num_tpu_pools",
        "_TENSORBOARD_REGION": "tensorboard_region",
    },
    CONFIGURATION: {
        "PROJECT_ID": "project_id",
        "_TF_STATE_BUCKET": "state_bucket",
        "_NAMESPACE": "tpu_namespace",
        "_JOBSET_API_VERSION": "jobset_version",
        "_KUEUE_API_VERSION": "kueue_version",
    },
}


def given(asked: Mapping[str, str]) -> dict[str, Values]:
    """Return by root the variables that the substitutions set."""
    values = substitutions.given(asked, VARIABLES)
    values[CONFIGURATION]["state_prefix"] = f"{asked['_TF_STATE_PREFIX']}/{INFRASTRUCTURE}"
    return values
