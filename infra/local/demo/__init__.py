"""`make demo`: five things a researcher does with JobSets, told while they happen on the local stack.

It looks at the provisioner only as a user could: kubectl, the Kubernetes API, the records in Firestore, GKE's API
and the local GKE's log of calls. Nothing of the provisioner is decided, faked or waited for here by other means.

    view      what can be seen at one moment, and the questions a step asks of it. Pure
    steps     a step, how far it has come, and when it has failed. Pure
    story     the five steps, (a) to (e)
    table     rows of the live table and what changed between two of them. Pure
    report    timelines, latencies and the verdict. Pure
    watch     reads a view from the running stack
    hands     what the demo does: kubectl apply and delete, and the stockout at the local GKE's button
    http      plain HTTP to the stack, for the two above
    leftovers what is still there at the end
    screen    the live table on a terminal, plain lines elsewhere
    settings  the cluster's settings, written before the relay speaks
    stage     the loop: act, look, advance, show
    play      the stack around it, and the exit code
"""
