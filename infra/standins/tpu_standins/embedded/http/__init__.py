"""The Kubernetes API over HTTPS: who asks, what is asked, and the answer."""
