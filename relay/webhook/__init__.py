"""The admission webhook, for API servers without MutatingAdmissionPolicy: pods run only on hosts meant for them.

A program of its own, `python -m relay.webhook`, in the relay's image. It watches nothing and knows nothing but the pod.
"""
