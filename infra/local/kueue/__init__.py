"""What the local stack has of Kueue: queues with a quota in chips, which JobSets wait for in order of priority.

A plain client of a kubeconfig, for clusters without Kueue. ClusterQueue, LocalQueue, ResourceFlavor,
WorkloadPriorityClass and Workload mean what they mean there; conditions, reasons and messages are Kueue's. Only
google.com/tpu is counted. Not here: cohorts, admission checks, topologies, fair sharing, waitForPodsReady.

`quota` and `workloads` decide, and are pure; `controller` writes; `install` brings the kinds and the webhook.

Facts: sigs.k8s.io/kueue 0.19, apis/kueue/v1beta1, pkg/scheduler, pkg/workload, pkg/controller/jobs/jobset.
"""
