"""TPU operator's group on a real API server: adopted, freed by the printed script, held by our relay, and gone at last.

TPU operator is there by its objects, as its sources say that it leaves them when it ends; Compute Engine is simulated.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from infra.kubernetes.overlay import NAMESPACE, account_of
from infra.local.relay_account import manifests
from relay.connection import Connection
from relay.node_groups.labeler import NodeLabeler
from tests.builders import with_fields
from tests.cli.test_configure import slices
from tests.cluster.accounts import token_of
from tests.cluster.asking import Api, done, path
from tests.cluster.servers import PATIENT
from tests.domain.planning.test_node_groups import self_managed
from tests.kubernetes.cluster import Cluster, Json
from tests.kubernetes.test_node_groups import CLUSTER, HOSTS_IN, ROOT, Site, _may_list, await_refusal
from tests.node_groups import PLURAL, two_hosts
from tests.operator_objects import a_group_owner, an_operator, operators_objects
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Owner
from tpu_slices.domain.planning.expected_nodes import nodes_expected
from tpu_slices.domain.planning.tpu_operator import FINALIZERS, operator_names
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.operator_objects import PARTS
from tpu_standins.kubeconfig import for_token_file
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

NAME = "trainers"
KINDS = {"TPUNodeGroup": PLURAL, **PARTS}


def operators_crd(kind: str, plural: str) -> Json:
    """Return a CRD like TPU operator's, which lets more in than ours."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.tpu.google.com"},
        "spec": {
            "group": "tpu.google.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


@dataclass(frozen=True)
class Moving:
    """A cluster that moves: what TPU operator left, and the relay's account that comes."""

    site: Site
    owner: Owner
    world: World
    folder: Path

    def objects(self) -> Path:
        """Return what the documented command prints, with TPU operator's Deployment at zero."""
        kinds = ",".join(f"{plural}.tpu.google.com" for plural in KINDS.values())
        listed = json.loads(self.site.kubectl("get", kinds, "--all-namespaces", "-o", "json"))
        listed["items"].append(an_operator())
        file = self.folder / "operator.json"
        file.write_text(json.dumps(listed))
        return file

    def adopts(self, *options: str) -> str:
        result = slices(self.world, "adopt", "-f", self.objects(), *options)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    def runs(self, script: str) -> None:
        """Let a shell run it, with kubectl for this cluster."""
        file = self.folder / "handover.sh"
        file.write_text(script)
        environment = {
            "PATH": f"{self.site.cluster.program.parent}:/usr/bin:/bin",
            "KUBECONFIG": str(self.site.cluster.plane.kubeconfig),
            "HOME": str(self.folder),
        }
        ran = subprocess.run(
            ["sh", file],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")

    def group(self) -> Json:
        return self.site.group(NAME)

    def record(self) -> SliceRecord:
        (record,) = self.world.records.values()
        return record


@pytest.fixture
def moving(cluster: Cluster, tmp_path: Path) -> Iterator[Moving]:
    with closing(Api(cluster.plane.kubeconfig)) as admin:
        crds = yaml.safe_dump_all(operators_crd(kind, plural) for kind, plural in KINDS.items())
        applied = cluster.kubectl("apply", "-f", "-", stdin=crds)
        assert (applied.code, applied.error) == (0, "")
        cluster.knows(*(f"{plural}.tpu.google.com" for plural in KINDS.values()))
        owner = left_by_operator(cluster, admin)
        over = cluster.apply("-f", "-", stdin=yaml.safe_dump_all(manifests(CLUSTER, hosts_in=HOSTS_IN)))
        assert (over.code, over.error) == (0, "")
        token = token_of(admin, NAMESPACE, account_of(CLUSTER))
        (tmp_path / "token").write_text(token)
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(for_token_file(cluster.plane.kubeconfig.read_text(), tmp_path / "token"))
        with closing(admin.with_token(token)) as relay, Connection({"KUBECONFIG": str(kubeconfig)}) as connection:
            site = Site(cluster, admin, relay, connection)
            until(lambda: _may_list(site), "the roles to take effect")
            world = World(of_cluster=self_managed())
            names = operator_names(owner)
            world.backend.hold_legacy_pool(LegacyPool(name=names.group, namespace="default", jobset=NAME, job=NAME))
            yield Moving(site, owner, world, tmp_path)
            connection.rest_client.pool_manager.clear()
    cluster.empty()
    for plural, name in zip(PARTS.values(), operator_names(owner), strict=True):
        cluster.api.patch(f"{ROOT.replace(PLURAL, plural)}/{name}", {"metadata": {"finalizers": None}})
    kinds = (f"{plural}.tpu.google.com" for plural in KINDS.values())
    cluster.kubectl("delete", "crd", *kinds, "--ignore-not-found", PATIENT)


def left_by_operator(cluster: Cluster, admin: Api) -> Owner:
    """Create a group as its user does, and what TPU operator adds to it; return the group."""
    made = cluster.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(two_hosts(NAME)))
    assert made.code == 0, made.error
    owner = a_group_owner(NAME, uid=json.loads(made.out)["metadata"]["uid"], namespace="default")
    group, *parts = operators_objects(owner)
    done(admin.patch(f"{ROOT}/{NAME}", {"metadata": {"finalizers": group["metadata"]["finalizers"]}}))
    done(admin.patch(f"{ROOT}/{NAME}/status", {"status": group["status"]}))
    for part in parts:
        part["metadata"].pop("resourceVersion")
        where = ROOT.replace(PLURAL, PARTS[part["kind"]])
        admin.create(where, part)
        done(admin.patch(f"{where}/{part['metadata']['name']}/status", {"status": part["status"]}))
    return owner


def test_a_slice_of_tpu_operators_becomes_ours_and_its_object_goes_when_it_does(moving: Moving) -> None:
    site, names = moving.site, operator_names(moving.owner)
    before = moving.group()
    assert before["metadata"]["finalizers"] == [*FINALIZERS]

    assert site.kept(NAME) == [*FINALIZERS]
    assert "1 of 1 instance group adopted" in moving.adopts("--yes")
    moving.runs(moving.adopts("--handover"))
    until(
        lambda: not any(_is_there(site, kind, name) for kind, name in zip(PARTS.values(), names, strict=True)),
        "the parts to go",
    )
    after = moving.group()
    assert after["metadata"].get("finalizers", []) == []
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    assert moving.adopts("--handover") == "set -eu\n"

    gone = site.kubectl("delete", "crd", *(f"{plural}.tpu.google.com" for plural in PARTS.values()), PATIENT)
    assert gone.count("deleted") == len(PARTS)
    site.held(NAME)

    site.cluster.kubectl("delete", "tng", NAME, "--wait=false")
    ended = with_fields(moving.record().transitioned(datetime.now(UTC), Reason.RELEASED, "Released."), attempt=1)
    site.told(moving.owner, ended, state=WorkloadState.DELETED)
    assert site.admin.ask("GET", f"{ROOT}/{NAME}").code == 404


def _is_there(site: Site, plural: str, name: str) -> bool:
    return site.admin.ask("GET", f"{ROOT.replace(PLURAL, plural)}/{name}").code == 200


def test_the_relay_labels_the_hosts_of_an_adopted_slice_and_no_other_machine(moving: Moving) -> None:
    site = moving.site
    moving.adopts("--yes")
    adopted = moving.record().transitioned(datetime.now(UTC), Reason.ADOPTED, "Made by TPU operator.")
    expected = nodes_expected(adopted, self_managed())
    assert expected is not None
    labeler = NodeLabeler(site.calls, lambda: datetime.now(UTC))
    labeler.expect(expected)
    where = path("nodes", name="operators-host")
    spec = {"providerID": f"{expected.instances}x7k2"}
    site.admin.create(path("nodes"), {"metadata": {"name": "operators-host", "labels": {"team": "a"}}, "spec": spec})

    def labelled() -> bool:
        labeler.look()
        labels = site.admin.read(where)["metadata"]["labels"]
        return bool({"team": "a", **dict(expected.labels)}.items() <= labels.items())

    until(labelled, "the node to be labelled")
    site.admin.create(
        path("nodes"),
        {"metadata": {"name": "others"}, "spec": {"providerID": "gce://demo-project/us-central1-c/trainers-mig-x7k2"}},
    )
    patch = {"metadata": {"labels": dict(expected.labels)}}
    others = path("nodes", name="others")
    await_refusal(lambda: site.relay.patch(others, patch, dryRun="All"), "nodes of slices only")
