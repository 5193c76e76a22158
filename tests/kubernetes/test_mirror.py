"""The mirror on a real API server: written by the relay's own account, read by people with kubectl alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from infra.kubernetes.overlay import NAMESPACE, account_of
from infra.local.relay_account import manifests
from relay.connection import Connection
from relay.mirror.calls import MirrorCalls
from relay.mirror.writer import LISTED_EVERY, MirrorWriter
from tests.builders import NOW, a_job, a_jobset, a_record
from tests.cluster.accounts import token_of
from tests.cluster.asking import Api
from tests.kubernetes.cluster import Cluster, Json
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClusterId, OwnerKind, WorkloadUid
from tpu_slices.domain.records.mirror import Mirrored, mirrored
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.waits import QueueState
from tpu_slices.ports.publisher import MirrorChanged, MirrorConfirmed
from tpu_standins.kubeconfig import for_token_file
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

CLUSTER = "demo"
GROUP = "/apis/tpu-provisioner.cloud.google.com/v1alpha1"
SECOND = timedelta(seconds=1)
MANY = 500


@dataclass
class Site:
    """The API server asked by its administrator, and the relay's mirror."""

    cluster: Cluster
    admin: Api
    calls: MirrorCalls
    number: int = 0

    def __post_init__(self) -> None:
        self.now = NOW
        self.writer = MirrorWriter(ClusterId(CLUSTER), self.calls, lambda: self.now)

    def kubectl(self, *arguments: str, stdin: str = "", kubeconfig: Path | None = None) -> str:
        said = self.cluster.kubectl(*arguments, stdin=stdin, kubeconfig=kubeconfig)
        assert said.code == 0, said.error
        return said.out

    def shows(self, *objects: Mirrored) -> None:
        """Let the functions say what the objects are to be."""
        self.number += 1
        self.writer.put(MirrorChanged(objects=objects, at=NOW + self.number * SECOND))
        self.turns()

    def turns(self) -> None:
        while self.writer.turn():
            continue

    def status(self, name: str) -> Json:
        found: Json = self.admin.read(f"{GROUP}/namespaces/research/tpuslices/{name}")["status"]
        return found


@pytest.fixture(scope="module")
def site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    applied = cluster.apply("-f", "-", stdin=yaml.safe_dump_all(manifests(CLUSTER)))
    assert (applied.code, applied.error) == (0, "")
    for plural in ("tpuslices", "tpuworkloads", "tpumirrors"):
        cluster.knows(f"{plural}.tpu-provisioner.cloud.google.com")
    cluster.apply("-f", "-", stdin=yaml.safe_dump_all([_namespace("research"), _namespace("serving")]))
    folder: Path = tmp_path_factory.mktemp("relay")
    with closing(Api(cluster.plane.kubeconfig)) as admin:
        (folder / "token").write_text(token_of(admin, NAMESPACE, account_of(CLUSTER)))
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(for_token_file(cluster.plane.kubeconfig.read_text(), folder / "token"))
        with Connection({"KUBECONFIG": str(kubeconfig)}) as connection:
            one = Site(cluster, admin, MirrorCalls(connection))
            until(lambda: _is_kept(one), "the roles to take effect")
            yield one
            connection.rest_client.pool_manager.clear()


def _namespace(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _is_kept(site: Site) -> bool:
    site.now += LISTED_EVERY
    site.turns()
    return site.writer.digest is not None


SLICE = replace(mirrored(a_record()), price="43.20")
LATER = mirrored(a_record().transitioned(NOW, Reason.CREATING, "It is being created."))


def a_workload(uid: str) -> Mirrored:
    jobset = a_jobset(uid=WorkloadUid(uid))
    return mirrored(replace(jobset, report=report(jobset, [a_record()], QueueState(), NOW)))


def row(table: str) -> list[str]:
    return table.splitlines()[1].split()


def test_kubectl_shows_what_an_operator_sees_of_a_slice(site: Site) -> None:
    site.shows(SLICE)
    table = site.kubectl("get", "tpuslices", "-A")
    assert table.splitlines()[0].split() == (
        ["NAMESPACE", "NAME", "PHASE", "REASON", "HOSTS", "JOB", "ZONE", "USD/H", "SINCE", "OBSERVED", "AGE"]
    )
    shown = ["research", SLICE.name, "QUEUED", "Requested", "0/4", "llama-slice-0", "us-central2-b", "43.20"]
    assert row(table)[:8] == shown
    assert "tpu-v6e-slice" in site.kubectl("get", "tsl", "-n", "research", "-o", "wide")
    assert SLICE.name in site.kubectl("get", "tpu", "-A"), "by its category"


def test_what_somebody_edits_is_put_right_with_the_next_change(site: Site) -> None:
    site.shows(SLICE)
    edit = '{"status": {"phase": "READY", "note": "mine"}}'
    site.kubectl("patch", "tsl", SLICE.name, "-n", "research", "--type", "merge", "-p", edit)
    site.shows(LATER)
    assert site.status(SLICE.name)["phase"] == "PROVISIONING"


def test_a_condition_can_be_waited_for(site: Site) -> None:
    record = a_record().transitioned(NOW, Reason.READY, "All 4 hosts are ready.")
    site.shows(mirrored(record))
    site.kubectl("wait", f"tsl/{SLICE.name}", "-n", "research", "--for=condition=Ready", "--timeout=10s")


def test_the_object_of_a_workload_ends_with_its_workload(site: Site) -> None:
    site.kubectl("create", "job", "llama", "-n", "research", "--image", "main:1")
    job = site.admin.read("/apis/batch/v1/namespaces/research/jobs/llama")
    told = a_workload(job["metadata"]["uid"])
    assert told.workload is not None
    owner = replace(told.workload.owner, kind=OwnerKind.JOB)
    site.shows(replace(told, name="job-llama", workload=replace(told.workload, owner=owner)))
    assert row(site.kubectl("get", "tpuw", "-n", "research"))[:5] == (
        ["job-llama", "Job", "llama", "ACTIVE", "SlicesProvisioning"]
    )
    site.kubectl("delete", "job", "llama", "-n", "research")
    until(lambda: "job-llama" not in site.kubectl("get", "tpuw", "-A"), "the garbage collector")


def test_who_may_view_a_namespace_sees_its_objects_and_no_others_and_writes_none(site: Site) -> None:
    site.shows(LATER)
    as_tenant = ("--as", "ada", "--as-group", "system:authenticated")
    site.kubectl("create", "rolebinding", "ada", "-n", "research", "--clusterrole", "view", "--user", "ada")
    until(
        lambda: site.cluster.kubectl("get", "tsl", "-n", "research", *as_tenant).code == 0, "the role to be aggregated"
    )
    assert SLICE.name in site.kubectl("get", "tsl", "-n", "research", *as_tenant)
    for refused in (
        ("get", "tsl", "-A"),
        ("get", "tsl", "-n", "serving"),
        ("get", "tpuw", "-n", "serving"),
        ("delete", "tsl", SLICE.name, "-n", "research"),
        ("annotate", "tsl", SLICE.name, "-n", "research", "a=b"),
    ):
        assert "Forbidden" in site.cluster.kubectl(*refused, *as_tenant).error, refused


def test_everybody_who_may_log_in_sees_how_old_the_knowledge_is(site: Site) -> None:
    site.writer.put(MirrorConfirmed(at=NOW))
    site.turns()
    as_tenant = ("--as", "ada", "--as-group", "system:authenticated")
    assert row(site.kubectl("get", "tpumirrors", *as_tenant))[:2] == ["tpu-slice-provisioner", "demo"]


def test_of_a_namespace_that_is_not_there_nothing_is_written_and_nothing_fails(site: Site) -> None:
    site.shows(replace(SLICE, namespace="gone", name=f"{SLICE.name}1"))
    assert site.writer.digest is not None


def test_many_slices_that_change_at_once_are_all_shown_and_written_once_each(site: Site) -> None:
    records = [a_record(job=a_job(job_index=index)) for index in range(MANY)]
    slices = [replace(mirrored(each), namespace="serving") for each in records]
    site.shows(*slices)
    found = site.admin.read(f"{GROUP}/namespaces/serving/tpuslices")["items"]
    assert {each["metadata"]["name"] for each in found} == {each.name for each in slices}
    versions = {each["metadata"]["resourceVersion"] for each in found}
    site.shows(*slices)
    again = site.admin.read(f"{GROUP}/namespaces/serving/tpuslices")["items"]
    assert {each["metadata"]["resourceVersion"] for each in again} == versions
    site.shows(*(replace(each, digest=0, slice=None) for each in slices))
    assert site.admin.read(f"{GROUP}/namespaces/serving/tpuslices")["items"] == []
