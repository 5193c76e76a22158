"""The manifests of what runs in each cluster, and the overlays that the build writes for them."""
