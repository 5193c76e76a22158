"""A stand-in for Kueue: queues, quotas and the admission of JobSets in the local cluster.

It creates a Workload for each JobSet of a queue, admits the Workloads by quota, and starts and stops the JobSets.
Decisions are pure; only `controller` reads and writes objects. What the API server needs, the fields of
kueue.x-k8s.io/v1beta1 and the rules of its schemas and webhooks, is in `kueue_api`.
How a JobSet runs once it is resumed belongs to `controllers`. Nothing here knows about slices, node pools or the
provisioner. Cohorts, admission checks, topologies and MultiKueue are not covered: objects that use them are
refused, or their Workloads stay pending with the reason.

Facts, condition reasons and messages: sigs.k8s.io/kueue 0.19 (apis/kueue/v1beta1, pkg/scheduler, pkg/workload,
pkg/controller/core, pkg/controller/jobframework, pkg/controller/jobs/jobset), feature gates at their defaults.
"""
