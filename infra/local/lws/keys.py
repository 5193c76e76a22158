"""Keys of labels and annotations that LeaderWorkerSet reads and writes (sigs.k8s.io/lws api/leaderworkerset/v1)."""

_PREFIX = "leaderworkerset.sigs.k8s.io"

NAME = f"{_PREFIX}/name"
GROUP_INDEX = f"{_PREFIX}/group-index"
WORKER_INDEX = f"{_PREFIX}/worker-index"
GROUP_KEY = f"{_PREFIX}/group-key"
SUBGROUP_INDEX = f"{_PREFIX}/subgroup-index"
SUBGROUP_KEY = f"{_PREFIX}/subgroup-key"
REVISION = f"{_PREFIX}/template-revision-hash"

SIZE = f"{_PREFIX}/size"
REPLICAS = f"{_PREFIX}/replicas"
LEADER_NAME = f"{_PREFIX}/leader-name"
EXCLUSIVE_TOPOLOGY = f"{_PREFIX}/exclusive-topology"
SUBGROUP_SIZE = f"{_PREFIX}/subgroup-size"
SUBGROUP_TYPE = f"{_PREFIX}/subgroup-policy-type"
SUBGROUP_EXCLUSIVE_TOPOLOGY = f"{_PREFIX}/subgroup-exclusive-topology"
