from tests.kubernetes.conftest import cluster

__all__ = ["cluster"]
