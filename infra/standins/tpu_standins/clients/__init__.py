"""Plain clients of a kubeconfig: calls on JSON objects, a watch cache of some kinds, and the controllers' loop."""
