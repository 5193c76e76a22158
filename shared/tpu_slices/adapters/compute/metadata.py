"""The metadata of a slice's instances: what their hosts join with and are labelled by, and what tenants add."""

from __future__ import annotations

from tpu_slices.adapters.startup import STARTUP_SCRIPT, startup_script
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.planning.joining import host_metadata, kubeadm_of, template_metadata
from tpu_slices.ports.backend import PoolOrder


def host_items(order: PoolOrder, spec: SliceSpec) -> dict[str, str]:
    """Return what every instance has, whatever its template."""
    return host_metadata(order.job, order.attempt, spec, order.settings)


def template_items(order: PoolOrder, spec: SliceSpec) -> dict[str, str]:
    """Return the items of the instance template; a tenant's never replace ours."""
    kubeadm = kubeadm_of(spec, order.settings)
    theirs = dict(spec.instance.metadata) if spec.instance else {}
    script = {STARTUP_SCRIPT: startup_script()} if kubeadm else {}
    return {**theirs, **template_metadata(order.job, order.attempt, spec, order.settings, kubeadm), **script}
