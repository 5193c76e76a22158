"""Labels and annotations by which the kubelet stand-in knows what is its own, and what pods are to do."""

NODE_POOL = "cloud.google.com/gke-nodepool"
HOST = "tpu-slices.local/host"
NODES = f"{NODE_POOL},{HOST}=true"
"""Selects the nodes that the local GKE makes."""

RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"

RUN_SECONDS = "local.kubelet/run-seconds"
FAIL_UNTIL_RESTART = "local.kubelet/fail-until-restart"
