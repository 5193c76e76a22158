"""Machines that boot with the startup script of their VM's metadata, and join a cluster by kubeadm as it says.

    host        a root of its own in a mount namespace, with `stand_ins` for what the script calls
    kubeadm     what `kubeadm join` makes of a configuration: a registration, or its refusal. Pure
    cluster     the API server, as a machine that joins meets it
    scripts     boots machines, and tells which have joined

What is simulated is told in docs/local-stack.md.
"""
