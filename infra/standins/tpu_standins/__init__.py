"""GKE, Compute Engine and Kubernetes on one machine, as a program that buys TPU slices sees them.

    gke, compute        Google Cloud's control planes, with faults to inject
    emulators           Google's own emulators of Pub/Sub and Firestore, as programs
    kubernetes          Kubernetes' own control plane, built and started
    controllers         others' controllers beside it: JobSet, LeaderWorkerSet, Kueue
    embedded, jobset    an API server and a JobSet of ours, which start in a second
    kubelet             the kubelets of the hosts that GKE and Compute Engine make
    proxy               faults before any API server
    clients             what all that act on an API server are made of
    processes           programs: started, waited for, ended
    testing             for tests: control planes in a process, fixtures, waiting

They are the other side of the wire: nothing of a provisioner is imported here.
"""
