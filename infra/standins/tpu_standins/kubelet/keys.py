"""Labels and annotations by which pods say what they are to do."""

RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"

RUN_SECONDS = "local.kubelet/run-seconds"
FAIL_UNTIL_RESTART = "local.kubelet/fail-until-restart"
