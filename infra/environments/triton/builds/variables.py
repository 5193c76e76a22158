"""What the substitutions of a build say to the root."""

INFRASTRUCTURE = "infrastructure"
VARIABLES = {
    INFRASTRUCTURE: {
        "PROJECT_ID": "project_id",
        "_REGION": "region",
        "_ZONE": "zone",
        "_NETWORK_NAME": "network_name",
        "_SUBNET_NAME": "subnet_name",
        "_GCS_BUCKET_NAME": "repository_bucket_name",
        "_GKE_CLUSTER_NAME": "cluster_name",
        "_TRITON_SA_NAME": "triton_sa_name",
        "_TRITON_NAMESPACE": "triton_namespace",
        "_MACHINE_TYPE": "machine_type",
        "_ACCELERATOR_TYPE": "accelerator_type",
        "_ACCELERATOR_COUNT": "accelerator_count",
    }
}
