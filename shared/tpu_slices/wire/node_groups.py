"""Reads TPUNodeGroups (tpu.google.com/v1alpha1, as of gke-labs/tpu-operator), for the relay and for `slices plan`.

The CRD in infra/kubernetes/self-managed is stricter. Objects may be older than it, or of TPU operator's own CRD, and
manifests never saw one. Whatever a user writes, a SliceDeclared with it is smaller than `messages.MOST_BYTES`, and a
record with it than a document of Firestore may be.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.node_groups import Bootstrap, InstanceConfig, NodeGroup
from tpu_slices.domain.planning.host_labels import ACCELERATOR
from tpu_slices.wire.bounds import ERROR_CHARACTERS
from tpu_slices.wire.jobsets import strings
from tpu_slices.wire.validation import first_error
from tpu_slices.wire.workloads import Json

METADATA_BYTES = 256_000
"""The most bytes of spec.instanceConfig.metadata: Compute Engine takes twice as many, a record not much more."""
_Text = Annotated[str, Field(min_length=1, max_length=255)]


class _Form(BaseModel):
    """A section as kubectl prints it: others' fields are ignored, and null is as if it were left out."""

    model_config = ConfigDict(strict=True, extra="ignore", alias_generator=to_camel)


class _ServiceAccount(_Form):
    email: _Text
    scopes: list[_Text] = Field(max_length=50)


class _InstanceConfig(_Form):
    machine_type: _Text
    provisioning_model: _Text | None = None
    reservation: _Text | None = None
    image: _Text | None = None
    boot_disk_gb: Annotated[int, Field(ge=1, le=65_536)] | None = Field(None, alias="bootDiskSizeGB")
    disk_type: _Text | None = None
    subnetwork: _Text | None = None
    service_accounts: Annotated[list[_ServiceAccount], Field(max_length=1)] | None = None
    network_tags: Annotated[list[_Text], Field(max_length=64)] | None = None
    metadata: Annotated[dict[_Text, Annotated[str, Field(max_length=16_384)]], Field(max_length=100)] | None = None

    def read(self) -> InstanceConfig:
        account = self.service_accounts[0] if self.service_accounts else None
        return InstanceConfig(
            machine_type=self.machine_type.rpartition("/")[2],
            provisioning_model=self.provisioning_model,
            reservation=self.reservation,
            image=self.image,
            boot_disk_gb=self.boot_disk_gb,
            boot_disk_type=self.disk_type,
            subnetwork=self.subnetwork,
            service_account=account.email if account else None,
            scopes=tuple(account.scopes) if account else (),
            network_tags=tuple(self.network_tags or ()),
            metadata=tuple(sorted((self.metadata or {}).items())),
        )


class _Bootstrap(_Form):
    version: _Text = "1.31"
    control_plane: Annotated[str, Field(min_length=1, max_length=253, alias="controlPlaneIP")]

    def read(self) -> Bootstrap:
        return Bootstrap(kubernetes=self.version, control_plane=self.control_plane)


class _Spec(_Form):
    project: _Text
    node_location: _Text
    node_count: Annotated[int, Field(ge=1, le=100_000)]
    topology: Annotated[str, Field(max_length=63)]
    template: _Text | None = Field(None, alias="instanceTemplateURI")
    instance_config: _InstanceConfig | None = None
    bootstrap_kubernetes: _Bootstrap | None = None

    def read(self, accelerator: str | None) -> NodeGroup:
        return NodeGroup(
            project=self.project,
            zone=self.node_location,
            nodes=self.node_count,
            topology=self.topology,
            instance=self.instance_config.read() if self.instance_config else None,
            template=self.template,
            accelerator=accelerator,
            bootstrap=self.bootstrap_kubernetes.read() if self.bootstrap_kubernetes else None,
        )


def group_of(obj: Json) -> NodeGroup:
    """Return what a TPUNodeGroup declares; raise ValueError, naming the field, if it is not as in the API."""
    try:
        spec = _Spec.model_validate(obj["spec"])
    except KeyError as missing:
        raise ValueError("spec is missing") from missing
    except ValidationError as invalid:
        raise ValueError(f"spec.{first_error(invalid)}"[:ERROR_CHARACTERS]) from invalid
    accelerator = strings(obj["metadata"], "labels").get(ACCELERATOR)
    group = spec.read(str(accelerator)[:63] if accelerator else None)
    if (group.instance is None) == (group.template is None):
        raise ValueError("spec: one of instanceConfig and instanceTemplateURI is required, and they exclude each other")
    size = sum(len(f"{key}{value}".encode()) for key, value in group.instance.metadata) if group.instance else 0
    if size > METADATA_BYTES:
        raise ValueError(
            f"spec.instanceConfig.metadata: {size} bytes, at most {METADATA_BYTES} are supported: load the rest from a "
            "bucket"
        )
    return group


def state_of(obj: Json) -> WorkloadState:
    """Return the state of a TPUNodeGroup: it is over once its deletion is asked for, though the object stays."""
    return WorkloadState.DELETED if "deletionTimestamp" in obj["metadata"] else WorkloadState.ACTIVE
