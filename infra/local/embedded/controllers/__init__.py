"""What acts on the objects in process: the Job controller, the scheduler, node life cycles and the pod collector.

They are controllers as those of `infra.local.clients`: level-triggered, each a `reconcile(objects, now, pace)`.
"""
