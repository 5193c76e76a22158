"""`make demo`: five things that researchers do with JobSets, run on the local stack and reported as they happen.

It observes the provisioner only as a user could: through kubectl, the Kubernetes API, the records in Firestore,
GKE's API and the local GKE's log of calls. Nothing of the provisioner is decided, faked or awaited by other means.

    view      what can be observed at one moment, and the queries that steps make on it. Pure
    steps     a step, its progress, and when it has failed. Pure
    story     the five steps, (a) to (e)
    table     rows of the live table, and what changed between two moments. Pure
    report    timelines, latencies and the verdict. Pure
    watch     reads a view from the running stack
    hands     what the demo does: kubectl apply and delete, and a stockout injected into the simulated vendor
    http      plain HTTP to the stack
    leftovers what still exists at the end
    screen    the live table on a terminal, plain lines elsewhere
    stage     the loop: act, observe, advance, show
    play      starts the stack, runs the steps, returns the exit code
"""
