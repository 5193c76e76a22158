"""A proxy before the API server of any kubeconfig, which injects what an API server does on bad days.

`python -m tpu_standins.proxy --kubeconfig FILE --write FILE2` serves TLS on loopback and writes a kubeconfig for it.
Requests and responses pass as they are, with the client's own credentials; watches are streamed. It answers nothing
by itself but what `faults` say, and where the API server does not answer, it closes the connection, as that would.

    faults      which requests fail, how often and for how long. Pure
    watches     the open watches, and what may befall them: cut, silenced, rewound
    upstream    the API server of a kubeconfig, and the credentials of its user
    forwarding  one request: answered by a fault, or passed on
    buttons     HTTP and JSON on a port of its own, to inject and to clear
"""
