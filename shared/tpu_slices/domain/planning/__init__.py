"""From what a pod template asks for to the slice that it would get, or the key that says no. Pure."""
