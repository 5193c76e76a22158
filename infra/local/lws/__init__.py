"""LeaderWorkerSet for a cluster that has none: its controllers, its webhooks and a CRD, as clients."""
