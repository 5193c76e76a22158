"""Pools of flex-start: which requests GKE refuses (`rules`), and how it fills and empties them (`filling`)."""
