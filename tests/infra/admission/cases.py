"""The golden table of pods: where each may run. It is tried with the policy's expressions, and on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from tests.infra.admission.case import KEYS, OWN, Case, Hosts, extended, jobset, left_alone, of, static
from tests.infra.admission.held import HELD
from tests.infra.admission.pods import (
    COMPLETION_INDEX,
    GROUP,
    IDLE,
    JOB_UID,
    SELECTOR,
    UID,
    Json,
    a_container,
    a_pod,
    group_together,
    of_group,
    of_job,
    of_jobset,
    requiring,
    term,
    together,
    within,
)
from tests.infra.admission.settings import HINT, HINT_KEY, OPTED_OUT, OTHERS, SERVE, STRIP
from tpu_slices.domain.model.facts import INJECT_SLICE_SELECTOR, PROVISIONING_REQUESTS, SLICE_TOPOLOGY
from tpu_slices.domain.planning.host_labels import (
    CAPACITY_KEYS,
    GKE_PROVISIONERS,
    GROUP_KEYS,
    NAMESPACED_JOB,
    NODE_POOL,
    TOPOLOGY,
)


def _shape(topology: str) -> dict[str, str]:
    return {**SELECTOR, TOPOLOGY: topology}


def of_jobsets() -> Iterator[Case]:
    """Yield pods of JobSets."""
    yield jobset("of a JobSet", of_jobset())
    yield jobset("a follower", of_jobset(labels={COMPLETION_INDEX: "3"}))
    yield jobset("after a restart of its JobSet", of_jobset(labels={"jobset.sigs.k8s.io/restart-attempt": "2"}))
    first = {"jobset.sigs.k8s.io/job-index": "0", "jobset.sigs.k8s.io/job-global-index": "0"}
    yield jobset("of the first Job", of_jobset(labels=first), keys=(f"{UID}.j0", f"{UID}.r0"))
    selects = {**SELECTOR, NAMESPACED_JOB: "default_llama-workers-1"}
    yield jobset("placed by node selector", of_jobset(nodeSelector=selects))
    yield jobset("kept together", of_jobset(annotations=together()), Hosts.STATIC)
    yield jobset("kept together by zone", of_jobset(annotations=together("topology.kubernetes.io/zone")))
    yield jobset("with a group's annotation", of_jobset(annotations=group_together()))
    pool = {**SELECTOR, NODE_POOL: "static-1"}
    yield jobset("that selects a node pool", of_jobset(nodeSelector=pool), Hosts.STATIC)
    yield jobset("of a team of its own", of_jobset(namespace="kube-public"))
    no_index = {"jobset.sigs.k8s.io/job-global-index": None}
    yield static("without its index among all Jobs", of_jobset(labels=no_index))
    wrong = {"jobset.sigs.k8s.io/job-global-index": "x"}
    yield static("with an index that is no number", of_jobset(labels=wrong))
    huge = {"jobset.sigs.k8s.io/job-global-index": "9" * 20}
    yield static("with an index beyond all numbers", of_jobset(labels=huge))
    before = {"jobset.sigs.k8s.io/job-global-index": "0"}
    yield static("with an index before its replicatedJob's", of_jobset(labels=before))
    no_uid = {"jobset.sigs.k8s.io/jobset-uid": None}
    yield static("of a JobSet of a version that does not label its UID", of_jobset(labels=no_uid))
    yield static("of a Job of a JobSet that is not Indexed", of_jobset(labels={COMPLETION_INDEX: None}))
    alone = of_jobset(a_container(chips="8"), labels={COMPLETION_INDEX: None}, nodeSelector=_shape("2x4"))
    yield jobset("of a Job of a JobSet that is not, filling a slice", alone, Hosts.STATIC)
    yield jobset("that tolerates everything", of_jobset(tolerations=[{"operator": "Exists"}]))


def of_one_host() -> Iterator[Case]:
    """Yield pods that may have all chips of their slice, by what they select and request."""
    for topology, chips, one in (
        ("2x4", "8", True),
        ("2x2x1", "4", True),
        ("2x4", "4", False),
        ("4x4", "8", False),
        ("axb", "4", False),
        ("2x2x2x2", "16", False),
        ("9999x1", "4", False),
        ("2", "2", False),
        ("0x4", "4", False),
    ):
        pod = of_jobset(a_container(chips=chips), nodeSelector=_shape(topology))
        yield jobset(f"{chips} chips of {topology}", pod, *([Hosts.STATIC] if one else []))
    of_affinity = requiring(term(within(TOPOLOGY, "2x4")))
    yield jobset(
        "a topology by affinity",
        of_jobset(a_container(chips="8"), nodeSelector=None, affinity=of_affinity),
        terms=(term(within(TOPOLOGY, "2x4")),),
    )
    yield jobset("no node selector", of_jobset(nodeSelector=None))
    selected = [term(within(NODE_POOL, "static-1")), term(within(NODE_POOL, "static-2"))]
    in_pools = of_jobset(affinity=requiring(*selected))
    yield jobset("a node pool by affinity in each term", in_pools, Hosts.STATIC, terms=tuple(selected))
    either = term(within(NODE_POOL, "static-1", "static-2"))
    yield jobset("one of two node pools", of_jobset(affinity=requiring(either)), terms=(either,))
    by_kueue = {"kueue.x-k8s.io/podset-required-topology": NODE_POOL}
    yield jobset("kept together by Kueue", of_jobset(annotations=by_kueue), Hosts.STATIC)
    two = [a_container("one"), a_container("two")]
    yield jobset("chips in two containers", of_jobset(*two, nodeSelector=_shape("2x4")))
    beside = of_jobset(IDLE, a_container(chips="8"), nodeSelector=_shape("2x4"))
    yield jobset("an idle container beside", beside, Hosts.STATIC)


def of_jobs() -> Iterator[Case]:
    """Yield pods of Jobs by themselves."""
    yield Case(name="of an Indexed Job", pod=of_job(), hosts=OWN, keys=(UID,))
    by_annotation = of_job(labels={COMPLETION_INDEX: None}, annotations={COMPLETION_INDEX: "0"})
    yield Case(name="indexed by annotation alone", pod=by_annotation, hosts=OWN, keys=(UID,))
    marked = of_job(annotations=together())
    yield Case(name="with the annotation that only JobSet heeds", pod=marked, hosts=OWN, keys=(UID,))
    one = of_job(a_container(chips="8"), nodeSelector=_shape("2x4"))
    yield Case(name="of a Job of one host", pod=one, hosts=(*OWN, Hosts.STATIC), keys=(UID,))
    yield static("of a Job that is not Indexed", of_job(labels={COMPLETION_INDEX: None}))
    alone = of_job(a_container(chips="8"), labels={COMPLETION_INDEX: None}, nodeSelector=_shape("2x4"))
    yield Case(name="of one that is not, filling a slice", pod=alone, hosts=(*OWN, Hosts.STATIC), keys=(UID,))
    part = of_job(a_container(chips="4"), labels={COMPLETION_INDEX: None}, nodeSelector=_shape("2x4"))
    yield static("of one that is not, with a part of a slice", part)
    two = [a_container("one"), a_container("two")]
    parts = of_job(*two, labels={COMPLETION_INDEX: None}, nodeSelector=_shape("2x4"))
    yield static("of one that is not, with a slice in two containers", parts)
    referred = of_job(by=("batch.example/v1", "Job", "alone"))
    yield static("of a Job of another API", referred)


def of_groups() -> Iterator[Case]:
    """Yield pods of LeaderWorkerSets."""
    early = of_group(labels={"leaderworkerset.sigs.k8s.io/group-key": None})
    yield Case(name="a leader before LeaderWorkerSet's webhook", pod=early, hosts=(Hosts.GROUPS,))
    kept_early = of_group(labels={"leaderworkerset.sigs.k8s.io/group-key": None}, annotations=group_together())
    yield Case(name="one that is kept together", pod=kept_early, hosts=(Hosts.GROUPS, Hosts.STATIC))
    named = a_pod(labels={"leaderworkerset.sigs.k8s.io/name": "vllm"})
    yield Case(name="a pod that says it is a group's", pod=named, hosts=(Hosts.GROUPS,))
    subgroups = of_group(annotations={"leaderworkerset.sigs.k8s.io/subgroup-size": "2"})
    yield static("of subgroups", subgroups)
    yield Case(name="a group's leader", pod=of_group(), hosts=OWN, keys=(GROUP,))
    worker = of_group(labels={"leaderworkerset.sigs.k8s.io/worker-index": "1"})
    yield Case(name="a group's worker", pod=worker, hosts=OWN, keys=(GROUP,))
    kept = of_group(annotations=group_together())
    yield Case(name="a group that is kept together", pod=kept, hosts=(*OWN, Hosts.STATIC), keys=(GROUP,))
    placed = of_group(nodeSelector={**SELECTOR, NODE_POOL: "static-1"})
    yield Case(name="a worker beside its leader", pod=placed, hosts=(*OWN, Hosts.STATIC), keys=(GROUP,))
    marked = of_group(annotations=together())
    yield Case(name="a group with a JobSet's annotation", pod=marked, hosts=OWN, keys=(GROUP,))


def of_others() -> Iterator[Case]:
    """Yield pods that get no slice of their own."""
    filling = a_pod(a_container(chips="8"), by=("apps/v1", "ReplicaSet", "other"), nodeSelector=_shape("2x4"))
    yield static("of a ReplicaSet, filling a slice", filling)
    for api, kind in (
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("ray.io/v1", "RayCluster"),
        ("kubeflow.org/v1", "PyTorchJob"),
    ):
        yield static(f"of a {kind}", a_pod(by=(api, kind, "other")))
    yield static("of no controller", a_pod())
    yield static("of a ReplicaSet that tolerates everything", a_pod(tolerations=[{"operator": "Exists"}]))
    yield static("that selects nothing", a_pod(nodeSelector=None))
    yield static("that says it is of a JobSet", a_pod(labels={"jobset.sigs.k8s.io/jobset-uid": UID}))
    for where in ("labels", "annotations"):
        yield static(f"of a JobSet, opted out by its {where}", of_jobset(**{where: {OPTED_OUT: "true"}}))
        yield jobset(f"not opted out by its {where}", of_jobset(**{where: {OPTED_OUT: "false"}}))
    yield static("of a Job that opted out", of_job(labels={OPTED_OUT: "true"}))


def by_themselves() -> Iterator[Case]:
    """Yield pods that get a slice each where the settings serve them."""
    whole: Json = {"by": ("apps/v1", "ReplicaSet", "web"), "nodeSelector": _shape("2x4")}
    all_chips = a_container(chips="8")
    web, alone = a_pod(all_chips, **whole), a_pod(all_chips, nodeSelector=_shape("2x4"))
    served: Json = {"hosts": (Hosts.KEYED, Hosts.STATIC), "settings": SERVE}
    yield Case(name="of a Deployment that is served", pod=web, keys=(JOB_UID,), **served)
    yield static("of a Deployment that is not", web)
    yield static("of a Deployment where others are served", web, settings=OTHERS)
    yield static("of a Deployment, with a part of its host", a_pod(**whole), settings=SERVE)
    yield static("of one that opted out", a_pod(all_chips, annotations={OPTED_OUT: "true"}, **whole), settings=SERVE)
    for api, kind in (("apps/v1", "DaemonSet"), ("ray.io/v1", "RayCluster")):
        yield static(f"of a {kind}, whole", a_pod(all_chips, **{**whole, "by": (api, kind, "other")}), settings=SERVE)
    of_set = a_pod(all_chips, **{**whole, "by": ("apps/v1", "StatefulSet", "web")})
    yield Case(name="of a StatefulSet that is served", pod=of_set, keys=(JOB_UID,), **served)
    yield Case(name="a pod alone that is served", pod=alone, keys=("pod-.pod",), **served)
    for name, key in (("notebook", "notebook.pod"), ("a" * 70, f"{'a' * 59}.pod")):
        named = {**alone, "metadata": {"name": name, "namespace": "default"}}
        yield Case(name=f"a pod alone, {name}", pod=named, keys=(key,), **served)
    yield Case(name="of an Indexed Job beside", pod=of_job(), hosts=OWN, keys=(UID,), settings=SERVE)
    yield jobset("of a JobSet beside", of_jobset(), settings=SERVE)
    forged = term(within("google.com/tpu-slice-key", UID))
    asked = a_pod(all_chips, affinity=requiring(forged), **whole)
    yield Case(name="of a Deployment, with a key of another", pod=asked, keys=(JOB_UID,), terms=(forged,), **served)


def of_gke() -> Iterator[Case]:
    """Yield pods whose hosts, or slices, GKE makes itself."""
    for key in GKE_PROVISIONERS:
        yield static(f"that selects {key}", of_jobset(nodeSelector={**SELECTOR, key: "some"}))
    for key in PROVISIONING_REQUESTS:
        yield static(f"with the annotation {key}", of_jobset(annotations={key: "some"}))
    for where in ("labels", "annotations"):
        yield static(f"slices of parts, by its {where}", of_jobset(**{where: {INJECT_SLICE_SELECTOR: "true"}}))
    yield static("of a part of a slice", of_jobset(annotations={SLICE_TOPOLOGY: "2x4"}))
    yield jobset("of a whole slice", of_jobset(annotations={SLICE_TOPOLOGY: "4x4"}))


def of_nobody() -> Iterator[Case]:
    """Yield pods that are none of ours."""
    yield left_alone("without chips", a_pod(IDLE))
    yield left_alone("of a JobSet, without chips", of_jobset(IDLE))
    yield left_alone("with no chips", of_jobset(a_container(chips="0")))
    for key in sorted(GROUP_KEYS):
        yield left_alone(f"that selects {key}", of_jobset(nodeSelector={**SELECTOR, key: "some"}))


def with_chips() -> Iterator[Case]:
    """Yield pods that request chips in other places than a container's limits."""
    sidecar = a_container("sidecar", restartPolicy="Always")
    for name, init in {"an init container": a_container("prepare"), "a sidecar": sidecar}.items():
        yield jobset(f"chips of {name}", of_jobset(IDLE, initContainers=[init]))
    asked: Json = {**IDLE, "resources": {"requests": {"google.com/tpu": "4"}}}
    yield jobset("chips that are requested alone", of_jobset(asked), refused="Limit must be set")


VISION = term(within("team", "vision"))
A_NODE: Json = {"matchFields": [within("metadata.name", "host-0")]}
KEYED = term(*of(Hosts.KEYED, KEYS, "default"))
FREE = term(*of(Hosts.STATIC, (), "default"))


def with_terms() -> Iterator[Case]:
    """Yield pods that require something of their nodes themselves."""
    yield jobset("requiring", of_jobset(affinity=requiring(VISION)), terms=(VISION,))
    yield jobset("requiring one or the other", of_jobset(affinity=requiring(VISION, A_NODE)), terms=(VISION, A_NODE))
    both = {**VISION, **A_NODE}
    yield jobset("requiring both", of_jobset(affinity=requiring(both)), terms=(both,))
    kept = of_jobset(annotations=together(), affinity=requiring(VISION))
    yield jobset("kept together, requiring", kept, Hosts.STATIC, terms=(VISION,))
    preferring = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": VISION}]}
    yield jobset("preferring", of_jobset(affinity={"nodeAffinity": preferring}))
    yield jobset("apart from others", of_jobset(affinity={"podAntiAffinity": {}}))
    nothing = requiring({}, VISION)
    yield jobset("requiring nothing in one term", of_jobset(affinity=nothing), left=({},), terms=(VISION,))
    yield jobset("requiring nothing at all", of_jobset(affinity=requiring({})), left=({},), terms=())
    no_terms = "must have at least one node selector term"
    yield jobset("without a term", of_jobset(affinity=requiring()), terms=(), refused=no_terms)
    yield jobset("judged before", of_jobset(affinity=requiring(KEYED)), left=(KEYED,), terms=())
    more = extended(KEYED, VISION["matchExpressions"])
    yield jobset("judged before, and extended", of_jobset(affinity=requiring(more)), left=(more,), terms=())
    half = of_jobset(affinity=requiring(VISION, KEYED))
    yield jobset("judged before in one term", half, left=(KEYED,), terms=(VISION,))
    anothers = term(within("google.com/tpu-slice-key", f"{JOB_UID}.j0"))
    yield jobset("with a key of another", of_jobset(affinity=requiring(anothers)), terms=(anothers,))
    wide = term(within("google.com/tpu-slice-key", *KEYS, f"{JOB_UID}.j0"), KEYED["matchExpressions"][1])
    yield jobset("with a key more", of_jobset(affinity=requiring(wide)), terms=(wide,))
    elsewhere = term(*of(Hosts.KEYED, KEYS, "kube-system"))
    yield jobset("in a namespace of another", of_jobset(affinity=requiring(elsewhere)), terms=(elsewhere,))
    yield jobset("on static hosts, spread", of_jobset(affinity=requiring(FREE)), terms=(FREE,))
    free = of_jobset(annotations=together(), affinity=requiring(FREE))
    yield jobset("on static hosts, together", free, Hosts.STATIC, left=(FREE,), terms=())
    yield static("of no kind, with a key", a_pod(affinity=requiring(KEYED)), terms=(KEYED,))
    yield static("of no kind, on static hosts", a_pod(affinity=requiring(FREE)), left=(FREE,), terms=())


def with_settings() -> Iterator[Case]:
    """Yield pods of which more is changed, since an operator said so."""
    capacity = {**SELECTOR, "team": "vision", **dict.fromkeys(CAPACITY_KEYS, "true")}
    bare = {**SELECTOR, "team": "vision"}
    yield jobset("spot and reservations kept", of_jobset(nodeSelector=capacity))
    stripped = of_jobset(nodeSelector=capacity)
    yield jobset("spot and reservations stripped", stripped, selector=bare, settings=STRIP)
    yield jobset("nothing to strip", of_jobset(), settings=STRIP)
    yield jobset("no selectors to strip from", of_jobset(nodeSelector=None), settings=STRIP)
    yield static("of no kind, not stripped", a_pod(nodeSelector=capacity), settings=STRIP)
    hinted = {**SELECTOR, HINT_KEY: "cell-a"}
    yield jobset("a location hint", of_jobset(), selector=hinted, settings=HINT)
    yield jobset("one that is there", of_jobset(nodeSelector=hinted), settings=HINT)
    other = of_jobset(nodeSelector={**SELECTOR, HINT_KEY: "cell-b"})
    yield jobset("another location hint", other, selector=hinted, settings=HINT)
    alone = {HINT_KEY: "cell-a"}
    yield jobset("a hint and no selector", of_jobset(nodeSelector=None), selector=alone, settings=HINT)
    yield static("of no kind, without a hint", a_pod(), settings=HINT)
    both = MappingProxyType({**STRIP, **HINT})
    yield jobset("stripped, with a hint", of_jobset(nodeSelector=capacity), selector={**bare, **alone}, settings=both)


CASES = [
    *of_jobsets(),
    *of_one_host(),
    *of_jobs(),
    *of_groups(),
    *of_others(),
    *by_themselves(),
    *of_gke(),
    *of_nobody(),
    *with_chips(),
    *with_terms(),
    *with_settings(),
    *HELD,
]
