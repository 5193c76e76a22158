"""A stand-in for Compute Engine: what slices of self-managed clusters need of its REST API, over plaintext HTTP.

It implements workload policies, instance templates, managed instance groups and their VMs, reservations, operations,
and the errors that Compute Engine would return, each citing the fact it is based on. Whatever is not covered is
answered with 501.

    paths, errors       names and links, and errors in Compute's JSON
    state, reserved     the state of the control plane, immutable
    routes              from HTTP to Google's request messages: what does not fit them is refused
    refusals            every refusal: one row of a table, a pure function of request and state
    lifecycle, groups   what an accepted request starts, and how it progresses over time
    reservations        reservations with their blocks, and future ones
    supply, faults      whether there are VMs: reservations, stockouts, quotas; injected faults
    messages, guests    state as Google's messages; guest attributes
    reading, filters    gets and lists: filter expressions, pages
    service             one call: state and call in, response or refusal out
    control_plane       the only mutable object: the state, and what runs on VMs
    vms                 the hook for what runs on VMs: hosts that join a cluster, by default as their metadata says
    booting             hosts that run the startup script of their metadata, and join by kubeadm
    metadata            what VMs ask of their metadata server
    audit               the audit log, and the log sink's filter
    server, buttons     REST for the client library, JSON for people and demos; vm_buttons: faults of VMs

Sources of the facts: [py-gce] google-cloud-compute's types and their documentation; [doc:...] a page of
docs.cloud.google.com, below compute/docs if nothing else is said; [tpuop] gke-labs/tpu-operator; [CA], [xpk], [mm] as
in `tpu_standins.gke`; tf#N hashicorp/terraform-provider-google; owner/repository#N: a thread with Compute's own words.
"""
