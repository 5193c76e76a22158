"""A stand-in for Kueue: queues, quota and admission of JobSets in the local cluster.

Here live the fields of kueue.x-k8s.io/v1beta1 and what its schemas and webhooks refuse (`schema`, `rules`,
which the API server uses), and what Kueue does: it makes a Workload for each JobSet of a queue, admits the
Workloads by quota, starts and stops the JobSets. Decisions are pure; `controller` alone reads and writes objects.
How a JobSet runs once it is resumed belongs to `controllers`. Nothing here knows slices, node pools or the
provisioner. Cohorts, admission checks, topologies and MultiKueue are not here: objects that ask for them are
refused, or their Workloads stay pending and say why.

Facts, condition reasons and messages: sigs.k8s.io/kueue 0.19 (apis/kueue/v1beta1, pkg/scheduler, pkg/workload,
pkg/controller/core, pkg/controller/jobframework, pkg/controller/jobs/jobset), feature gates at their defaults.
"""
