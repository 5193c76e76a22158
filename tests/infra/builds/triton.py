"""The Triton environment, as far as its builds can see it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.infra.builds.cloud import CLUSTER, Cloud
from tests.infra.builds.played import Call, Reply
from tests.infra.loopback import Request, Response

MEMBER = "projects/1/locations/us-central1/memberships/server"
ACTIVE = "ACTIVE"
BALANCER = {"firewalls": "k8s-fw-a1b2", "forwardingRules": "a1b2", "targetPools": "a1b2"}
"""What Google Cloud has of a Service of type LoadBalancer."""
MESH = {"networkEndpointGroups": "k8s1-triton-8000", "firewalls": "gke-mesh"}
"""What the mesh makes in the network, and leaves there."""


@dataclass
class Triton(Cloud):
    region: ClassVar[str] = "us-central1"
    cluster: ClassVar[str] = "server"
    bucket: ClassVar[str] = "google_storage_bucket.models"
    made: ClassVar[dict[str, list[str]]] = {
        "infrastructure": ["google_compute_network.network", CLUSTER, "google_storage_bucket.models"]
    }
    defaults: ClassVar[dict[str, dict[str, Any]]] = {"infrastructure": {"triton_namespace": "triton"}}

    address: str = "203.0.113.7"
    """Of the gateway, once it is there; "": it gets none."""
    mesh: str = ACTIVE
    """The state that control plane and data plane come to."""
    waited: int = 0
    """How often somebody waited."""
    applied_overlays: int = 0
    restarts: int = 0
    ready: bool = True
    """Whether Triton becomes ready."""
    available: bool = True
    """Whether it is, once it was applied."""

    def outputs(self, root: str) -> dict[str, Any]:
        assert root == "infrastructure"
        return {
            "project_id": "shop",
            "namespace": "triton",
            "bucket": "gs://shop-models",
            "model_repository": "gs://shop-models/model_repository",
            "service_accounts": {"kubernetes": "triton-sa"},
            "gpus": {"count": 1},
            "mesh": {"member": MEMBER},
        }

    def applied(self, root: str) -> None:
        assert root == "infrastructure"
        self.status, self.compute["networks"] = "RUNNING", ["serving"]
        self.objects.buckets["shop-models"] = {}

    def destroyed(self, root: str) -> None:
        assert root == "infrastructure"
        assert not self.status, "the cluster goes first"
        held = {name for kind, names in self.compute.items() if kind != "networks" for name in names}
        assert held <= self.in_other_networks, f"the network is in use by {held}"
        self.compute["networks"] = []
        self.objects.buckets.pop("shop-models", None)

    def google(self, request: Request) -> Response:
        if request.path == "/v1/projects/shop/locations/global/features/servicemesh":
            state = self.mesh if self.waited > 1 else "PROVISIONING"
            plane = {"state": state}
            mesh = {"servicemesh": {"controlPlaneManagement": {"state": ACTIVE}, "dataPlaneManagement": plane}}
            return Response({"name": request.path.removeprefix("/v1/"), "membershipStates": {MEMBER: mesh}})
        return super().google(request)

    def answers(self, said: str) -> Iterator[tuple[str, str]]:
        yield "get --raw /readyz", "ok"
        serves = self.applied_overlays and self.ready and self.available
        yield "get deployment/triton-server-stable .*availableReplicas", "1" if serves else ""
        if "apply --server-side --kustomize build/triton" in said:
            self._serve()
        yield "apply --server-side --kustomize build/triton", "serverside-applied"
        if "rollout restart deployment/triton-server-stable" in said:
            self.restarts += 1
        yield "rollout restart deployment/triton-server-stable --namespace triton", "restarted"
        if "rollout status deployment/triton-server-stable" in said and not self.ready:
            raise RuntimeError("timed out waiting for the condition")
        yield "rollout status deployment/[a-z-]+ --namespace triton", "successfully rolled out"
        yield "describe pods|logs deployment/triton-server-stable", "what is known of it"
        yield "get service istio-ingressgateway .*ip", self.address
        yield from self._draining(said)

    def _serve(self) -> None:
        assert self.waited > 1, "pods would have no proxy"
        assert "model_repository/colours/1/model.onnx" in self.objects.buckets["shop-models"], "there is no model"
        self.applied_overlays += 1
        for kind, name in (*BALANCER.items(), *MESH.items()):
            self.compute.setdefault(kind, []).append(name)

    def _draining(self, said: str) -> Iterator[tuple[str, str]]:
        yield "get customresourcedefinitions", ""
        yield "get namespaces", "default istio-system kube-system triton"
        if re.search("delete .*services.* --namespace triton", said):
            for kind, name in BALANCER.items():
                self.compute[kind] = [each for each in self.compute.get(kind, []) if each != name]
        yield "delete .*pods.* --all --namespace (default|triton) ", "deleted"
        yield "get persistentvolumes", ""

    def sleep(self, call: Call) -> Reply:
        """Let time pass: Google provides the mesh."""
        self.waited += 1
        return super().sleep(call)
