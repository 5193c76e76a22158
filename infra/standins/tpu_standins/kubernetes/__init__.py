"""A real Kubernetes control plane on this machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

`tpu_standins.building` builds the four programs from `go.mod`, unless there are some already: `programs`, `build`,
`toolchain`, `progress`. `control_plane` starts them on loopback, with the flags of `flags`, the certificates and tokens
of `credentials`, and the questions of `probes` that tell whether they are ready.
"""
