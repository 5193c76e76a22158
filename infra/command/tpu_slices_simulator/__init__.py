"""The provisioner in one process on a virtual clock: production code on fakes, with whatever may go wrong.

`slices simulate` plays the stories of users with it; the tests play stories drawn by seeds, and watch its promises.
Simulated: Firestore, Pub/Sub, GKE, the cluster's objects and controllers. Run as they are: the functions' flows, and
the part of the relay that decides what to publish.
"""
