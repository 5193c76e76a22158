"""Advice on when hosts could be booked in calendar mode [py-gce Advice].

Covered is `advice.calendarMode` for TPUs. Which zones offer which family, how many chips and from when on, a button
says: how the original finds its times is not public. `advice.capacity` and `advice.capacityHistory` are not covered:
Google documents that they do not answer for TPUs [doc:view-vm-availability; doc:view-spot-preemption-price].
"""
