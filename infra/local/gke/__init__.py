"""A stand-in for GKE's control plane: google.container.v1.ClusterManager over plaintext gRPC.

Here live the node pools, their operations, the VMs they are made of, and the refusals GKE would answer
with, each naming the fact it rests on. It is the other side of the wire: nothing of the provisioner may be
imported here, its catalogue least of all, or a mistake made once would agree with itself. What is not
covered answers UNIMPLEMENTED.

    machines            the TPU machine types and topologies GKE accepts
    state, paths        what the control plane knows, frozen; names as GKE writes them
    rules, *_rules      every refusal: one row of a table, a pure function of request and state
    lifecycle           what an accepted request starts, and what passing time makes of it
    hosts, nodes        VMs, and how they show as Node objects; kubernetes_nodes speaks to the API server
    faults, outages     trouble ordered at a button: of calls and operations, of hosts
    audit, sink         the audit log, the log sink's filter, its way to Pub/Sub
    service             one call: request in, answer or refusal out
    control_plane       the only mutable thing: state under one lock, and a thread that lets time pass
    server, buttons     gRPC for the client library, HTTP for people and demos; host_buttons: what befalls hosts

Where a fact is from: [py-gke] google-cloud-container's types and their documentation; [CA] GoogleCloudPlatform/
cluster-autoscaler, which GKE itself runs; [doc:...] a page of cloud.google.com; [khi] GoogleCloudPlatform/khi,
real audit logs; [tf#N] hashicorp/terraform-provider-google; [mm] GoogleCloudPlatform/magic-modules; [xpk]
AI-Hypercomputer/xpk; [ctk] GoogleCloudPlatform/cluster-toolkit; [kray] KubeRay's TPU validation; [peer]
ai-on-gke/tpu-provisioner; owner/repository#N: a thread with GKE's own words in it.
"""
