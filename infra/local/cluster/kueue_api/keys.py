"""Labels and annotations of Kueue (pkg/controller/constants, pkg/constants, apis/kueue/v1beta1)."""

GROUP = "kueue.x-k8s.io"

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
JOB_UID = "kueue.x-k8s.io/job-uid"
PREBUILT_WORKLOAD = "kueue.x-k8s.io/prebuilt-workload-name"
MAX_EXECUTION_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
ADMISSION_GATED_BY = "kueue.x-k8s.io/admission-gated-by"

WORKLOAD = "kueue.x-k8s.io/workload"
POD_SET = "kueue.x-k8s.io/podset"
LOCAL_QUEUE = "kueue.x-k8s.io/local-queue-name"
CLUSTER_QUEUE = "kueue.x-k8s.io/cluster-queue-name"

TOPOLOGY_REQUESTS = (
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
)
"""Annotations of a pod template, each of which requests topology-aware scheduling."""

WORKLOAD_PRIORITY_CLASS = "kueue.x-k8s.io/workloadpriorityclass"
POD_PRIORITY_CLASS = "scheduling.k8s.io/priorityclass"
"""Values of spec.priorityClassSource of a Workload."""
