"""A TPUNodeGroup on a real API server, from `kubectl apply` to `kubectl delete`, with the relay's own account."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
import yaml

from infra.kubernetes.overlay import NAMESPACE, account_of
from infra.local.relay_account import manifests
from relay.cluster import sources
from relay.connection import Connection
from relay.node_groups.calls import SelfManagedCluster
from relay.node_groups.evictor import Eviction, Evictor
from relay.node_groups.keeper import NodeGroupKeeper
from relay.node_groups.labeler import NodeLabeler
from relay.node_groups.writer import NodeGroupWriter
from relay.objects import Kind, PoolKey, Workload
from relay.watch import page_of
from tests.builders import NOW, an_owner, with_fields
from tests.cluster.accounts import token_of
from tests.cluster.asking import Answer, Api, done, path
from tests.cluster.servers import PATIENT
from tests.domain.planning.test_node_groups import self_managed
from tests.domain.reporting.test_node_groups import a_group, a_group_record, hosts
from tests.kubernetes.cluster import NODE_GROUPS, Cluster, Json
from tests.node_groups import two_hosts
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.node_groups import FINALIZER
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadJob, WorkloadUid
from tpu_slices.domain.planning.expected_nodes import nodes_expected
from tpu_slices.domain.planning.node_groups import declared_slice
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.node_groups import status_of
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.publisher import NodeGroupUpdate
from tpu_standins.kubeconfig import for_token_file
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

CLUSTER = "own"
HOSTS_IN = "projects/demo-project/locations/us-central1"
ROOT = "/apis/tpu.google.com/v1alpha1/namespaces/default/tpunodegroups"


@dataclass(frozen=True)
class Site:
    """The API server asked by its administrator, and by the relay of a self-managed cluster."""

    cluster: Cluster
    admin: Api
    relay: Api
    connection: Connection

    @property
    def calls(self) -> SelfManagedCluster:
        return SelfManagedCluster(self.connection)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        said = self.cluster.kubectl(*arguments, stdin=stdin)
        assert said.code == 0, said.error
        return said.out

    def applied(self, name: str) -> Owner:
        """Apply the manifest of TPU operator's README as its user does."""
        self.kubectl("apply", "-f", "-", stdin=orjson.dumps(two_hosts(name)).decode())
        uid = WorkloadUid(self.group(name)["metadata"]["uid"])
        return an_owner(name, kind=OwnerKind.TPU_NODE_GROUP, namespace="default", uid=uid)

    def group(self, name: str) -> Json:
        found: Json = self.admin.read(f"{ROOT}/{name}")
        return found

    def seen(self) -> list[Workload]:
        """Return the groups as the relay's watch lists them."""
        [source] = [each for each in sources(self.connection, hosts_in=HOSTS_IN) if each.kind is Kind.NODE_GROUPS]
        assert source.is_installed()
        found = [source.read(each) for each in page_of(source.fetch(_preload_content=False).data).items]
        return [each for each in found if isinstance(each, Workload)]

    def kept(self, name: str) -> list[str]:
        """Let the relay hold the groups that it does not hold; return the finalizers of one."""
        keeper = NodeGroupKeeper(lambda: [each for each in self.seen() if not each.held], self.calls, lambda: NOW)
        keeper.look()
        finalizers: list[str] = self.group(name)["metadata"].get("finalizers", [])
        return finalizers

    def held(self, name: str) -> None:
        until(lambda: self.kept(name) == [FINALIZER], f"{name} to be held")

    def told(self, owner: Owner, record: SliceRecord, **own: object) -> None:
        """Let the functions say how far the slice is."""
        known = a_group(owner=owner, **{"generation": 1, **own})
        update = NodeGroupUpdate(owner=owner, slice_id=record.maker, status=status_of(record, known), at=NOW)

        def written() -> bool:
            with suppress(Temporary):
                NodeGroupWriter(self.calls, lambda _: False).write(update)
                return True
            return False

        until(written, f"an answer about {owner.name}")

    def record(self, owner: Owner) -> SliceRecord:
        [group] = [each.group for each in self.seen() if each.ref.owner == owner]
        job = WorkloadJob.declared(self_managed().cluster, owner)
        assert group is not None
        spec = declared_slice(group, job, self_managed())
        return a_group_record(job=job, spec=spec)


@pytest.fixture(scope="module")
def site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    text = yaml.safe_dump_all(manifests(CLUSTER, hosts_in=HOSTS_IN))
    applied = cluster.apply("-f", "-", stdin=text)
    assert (applied.code, applied.error) == (0, "")
    cluster.knows(NODE_GROUPS)
    folder: Path = tmp_path_factory.mktemp("relay")
    with closing(Api(cluster.plane.kubeconfig)) as admin:
        token = token_of(admin, NAMESPACE, account_of(CLUSTER))
        (folder / "token").write_text(token)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(for_token_file(cluster.plane.kubeconfig.read_text(), folder / "token"))
        with closing(admin.with_token(token)) as relay, Connection({"KUBECONFIG": str(kubeconfig)}) as connection:
            one = Site(cluster, admin, relay, connection)
            until(lambda: _may_list(one), "the roles to take effect")
            yield one
            connection.rest_client.pool_manager.clear()


def _may_list(site: Site) -> bool:
    return site.relay.ask("GET", ROOT).code == 200


def test_its_user_applies_it_waits_for_it_and_deletes_it(site: Site) -> None:
    owner = site.applied("whole")
    site.held("whole")
    record = site.record(owner)
    site.told(owner, record.transitioned(NOW, Reason.CREATION_STARTED, "Creating."))
    assert site.kubectl("get", "tng", "whole", "--no-headers").split()[1:6] == [
        "2x2x2",
        "2",
        "0",
        "False",
        "Provisioning",
    ]
    ready = with_fields(record.transitioned(NOW, Reason.READY, "All 2 hosts are ready."), hosts=hosts(2))
    site.told(owner, ready)
    site.kubectl("wait", "tng/whole", "--for=condition=Ready", PATIENT)
    assert site.group("whole")["status"]["nodeSummary"] == {"ready": 2, "reconciling": 0, "failed": 0}
    assert site.group("whole")["status"]["observedGeneration"] == 1
    events = site.kubectl("get", "events", "-o", "jsonpath={.items[?(@.involvedObject.name=='whole')].reason}")
    assert {"ChildResourcesProvisioned", "Provisioned"} <= {*events.split()}

    site.kubectl("delete", "tng", "whole", "--wait=false")
    until(lambda: "deletionTimestamp" in site.group("whole")["metadata"], "the deletion to be asked for")
    node = {"metadata": {"name": "gone-host", "labels": _labels(record)}}
    site.admin.create(path("nodes"), node)
    closing_hosts = ready.transitioned(NOW, Reason.CLOSING_HOSTS, "Releasing: pods are evicted.")
    site.told(owner, closing_hosts, state=WorkloadState.DELETED, generation=2)
    assert site.group("whole")["status"]["conditions"][-1]["reason"] == "ClosingHosts"
    gone = closing_hosts.transitioned(NOW, Reason.RELEASED, "Released.")
    site.told(owner, gone, state=WorkloadState.DELETED, generation=2)
    assert site.admin.ask("GET", f"{ROOT}/whole").code == 404
    assert site.admin.ask("GET", path("nodes", name="gone-host")).code == 404


def _labels(record: SliceRecord) -> Json:
    return {"google.com/nodepool-manager": "tpu-provisioner", "google.com/tpu-slice-id": record.maker}


def test_a_status_that_is_written_twice_changes_nothing(site: Site) -> None:
    owner = site.applied("twice")
    record = site.record(owner).transitioned(NOW, Reason.STOCKOUT, "us-central1-c is out of tpu7x 2x2x2.")
    site.told(owner, record)
    before = site.group("twice")
    site.told(owner, record)
    assert site.group("twice") == before
    site.kubectl("delete", "tng", "twice")


def test_what_a_controller_of_ours_does_not_hold_may_be_deleted_at_once(site: Site) -> None:
    site.applied("unheld")
    site.kubectl("delete", "tng", "unheld", PATIENT)


def test_an_update_about_an_earlier_object_of_that_name_is_ignored(site: Site) -> None:
    owner = site.applied("again")
    record = site.record(owner)
    site.told(replace(owner, uid=WorkloadUid("earlier")), record.transitioned(NOW, Reason.READY, "Ready."))
    assert "status" not in site.group("again")
    site.kubectl("delete", "tng", "again")


def test_pods_are_evicted_unless_a_budget_keeps_them(site: Site) -> None:
    site.admin.create(path("nodes"), {"metadata": {"name": "host-e"}})
    for name in ("free", "kept"):
        pod = {
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"nodeName": "host-e", "containers": [{"name": "main", "image": "train"}]},
        }
        site.admin.create(path("pods", "default"), pod)
        running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        done(site.admin.patch(path("pods", "default", name, "status"), {"status": running}))
    budget = {"metadata": {"name": "kept"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}}
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    site.admin.create(budgets, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", **budget})
    until(lambda: (site.admin.read(f"{budgets}/kept").get("status") or {}).get("currentHealthy") == 1, "the budget")
    over: list[object] = []
    pool = PoolKey(a_group_record().maker, 1)
    evictor = Evictor(lambda: [Eviction(pool, ("host-e",), whole=True)], site.calls, over.append)

    def gone(name: str) -> bool:
        answer = site.admin.ask("GET", path("pods", "default", name))
        return answer.code == 404 or "deletionTimestamp" in answer.body["metadata"]

    def evicted() -> bool:
        evictor.look()
        return gone("free")

    def ended() -> bool:
        evictor.look()
        return bool(over)

    until(evicted, "the eviction")
    assert (gone("kept"), over) == (False, [])
    done(site.admin.delete(f"{budgets}/kept"))
    for name in ("free", "kept"):
        done(site.admin.ask("DELETE", path("pods", "default", name), gracePeriodSeconds="0"))
    until(ended, "nothing to evict any more")
    assert over == [pool]
    done(site.admin.delete(path("nodes", name="host-e")))


def await_refusal(ask: Callable[[], Answer], message: str) -> None:
    """Ask for what changes nothing until a policy refuses it: each takes effect some time after it was applied."""

    def refused() -> bool:
        answer = ask()
        return answer.refusal == (403, "Forbidden") and message in answer.body["message"]

    until(refused, f"the refusal: {message}")


def test_the_relay_may_do_nothing_else_to_groups_and_nodes(site: Site) -> None:
    site.applied("guarded")
    site.admin.create(path("nodes"), {"metadata": {"name": "strangers-host", "labels": {"team": "a"}}})
    where = f"{ROOT}/guarded"
    anothers = {"metadata": {"finalizers": ["example.com/theirs"]}}
    await_refusal(lambda: site.relay.patch(where, anothers, dryRun="All"), "Of finalizers the relay may change")
    labels = {"metadata": {"labels": {"team": "b"}}}
    rest = "neither spec, labels, annotations nor owners"
    await_refusal(lambda: site.relay.patch(where, labels, dryRun="All"), rest)
    stranger = path("nodes", name="strangers-host")
    await_refusal(lambda: site.relay.ask("DELETE", stranger, dryRun="All"), "Node objects of slices only")
    with suppress(Temporary, Permanent):
        site.calls.delete_node("strangers-host")
    assert site.admin.ask("GET", path("nodes", name="strangers-host")).code == 200
    assert site.relay.patch(where, {"metadata": {"finalizers": [FINALIZER]}}, dryRun="All").code == 200
    done(site.admin.delete(path("nodes", name="strangers-host")))
    site.kubectl("delete", "tng", "guarded")


def _host(provider: str, **labels: str) -> Json:
    return {"metadata": {"name": "unlabelled", "labels": labels}, "spec": {"providerID": provider}}


def test_a_node_of_the_pools_group_is_labelled_and_no_other(site: Site) -> None:
    record = a_group_record().transitioned(NOW, Reason.HOSTS_JOINING, "0 of 2 hosts are ready.")
    expected = nodes_expected(record, self_managed())
    assert expected is not None
    labeler = NodeLabeler(site.calls, lambda: datetime.now(UTC))
    labeler.expect(expected)
    where = path("nodes", name="unlabelled")
    site.admin.create(path("nodes"), _host(f"{expected.instances}x7k2", team="a"))

    def labelled() -> bool:
        labeler.look()
        labels = site.admin.read(where)["metadata"]["labels"]
        return bool({"team": "a", **dict(expected.labels)}.items() <= labels.items())

    until(labelled, "the node to be labelled")
    done(site.admin.patch(where, {"metadata": {"labels": {"kubernetes.io/arch": None}}}))
    until(labelled, "what is missing of its labels to be added")
    team = {"metadata": {"labels": {"team": "b"}}}
    await_refusal(lambda: site.relay.patch(where, team, dryRun="All"), "Of labels the relay")
    done(site.admin.delete(where))

    site.admin.create(path("nodes"), _host("gce://demo-project/us-central1-c/their-machine"))
    patch = {"metadata": {"labels": dict(expected.labels)}}
    await_refusal(lambda: site.relay.patch(where, patch, dryRun="All"), "nodes of slices only")
    done(site.admin.delete(where))
