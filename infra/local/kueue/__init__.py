"""Kueue as far as the local stack needs it: JobSets wait in queues for a quota in chips, in order of priority.

A client of a kubeconfig, for clusters without Kueue. Its kinds mean what they mean there, and only google.com/tpu is
counted. Not here: cohorts, preemption, admission checks, topologies, namespace selectors, waitForPodsReady.

Facts: sigs.k8s.io/kueue 0.19, apis/kueue/v1beta1, pkg/scheduler, pkg/workload, pkg/controller/jobs/jobset.
"""
