"""What the simulated GKE and Compute Engine share: control planes of Google Cloud whose state is one immutable value.

    timed               state under one lock, threads that let time pass, the audit log
    rules               the engine of refusals: rows of tables, and which fields of a message are covered
    faults              injected faults: which one a call meets, and how they wear off
    buttons             the faults and calls for people, as JSON
    sink                the log sink's filter and its export to Pub/Sub
    names               what names and labels may be, and how VMs are named
    machines            the TPU machine types and topologies
    hosts, nodes        VMs as Node objects, kept in a cluster: `kubernetes_nodes` talks to its API server
    loopback, program   HTTP on loopback; arguments, signals, and the clock

Sources of facts are named as in `tpu_standins.gke`.
"""
