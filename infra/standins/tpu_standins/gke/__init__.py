"""A stand-in for GKE's control plane: google.container.v1.ClusterManager over plaintext gRPC.

It implements node pools, their operations, the VMs they consist of, and the errors that GKE would return,
each citing the fact it is based on. Its table of machine types is its own: a mistake in that of a provisioner would
else confirm itself. Whatever is not covered returns UNIMPLEMENTED.

    machines            the TPU machine types and topologies that GKE accepts
    state, paths        the state of the control plane, immutable; names in GKE's format
    rules, *_rules      every refusal: one row of a table, a pure function of request and state
    lifecycle           what an accepted request starts, and how it progresses over time
    hosts, nodes        VMs and their Node objects; kubernetes_nodes talks to the API server
    flex                pools of flex-start: refusals, and how they are filled and emptied
    faults, outages     injected faults: of calls and operations, of hosts
    audit, sink         the audit log, the log sink's filter, its export to Pub/Sub
    service             one call: request in, response or refusal out
    control_plane       the only mutable object: state under one lock, and a thread that advances time
    server, buttons     gRPC for the client library, HTTP for people and demos; host_buttons: faults of hosts

Sources of the facts: [py-gke] google-cloud-container's types and their documentation; [CA] GoogleCloudPlatform/
cluster-autoscaler, which GKE itself runs; [doc:...] a page of cloud.google.com; [khi] GoogleCloudPlatform/khi,
real audit logs; [kcc] calls of GKE's API and its answers, recorded in GoogleCloudPlatform/k8s-config-connector
(`_http.log`; many of these files are now written by that project's mock, whose instance groups are named
gke-containercluster-abcdef: those prove nothing, their predecessors in its history do); [tf#N]
hashicorp/terraform-provider-google; [mm] GoogleCloudPlatform/magic-modules; [xpk] AI-Hypercomputer/xpk; [ctk]
GoogleCloudPlatform/cluster-toolkit; [kray] KubeRay's TPU validation; [peer] ai-on-gke/tpu-provisioner;
owner/repository#N: a thread with GKE's own words in it.
"""
