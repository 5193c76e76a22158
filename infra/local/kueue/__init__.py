"""Kueue as far as the local stack needs it, as a client: JobSets wait for a quota in chips, in order of priority.

Its kinds mean what they mean there, only google.com/tpu is counted. Not here: cohorts, preemption, admission checks,
topologies, namespace selectors, waitForPodsReady. Facts: sigs.k8s.io/kueue 0.19, apis/kueue/v1beta1, pkg/scheduler.
"""
