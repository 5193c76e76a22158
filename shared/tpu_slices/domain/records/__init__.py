"""What is stored: a module for each collection of documents, and for what its documents consist of.

| collection    | a document is                                              | module       |
|---------------|------------------------------------------------------------|--------------|
| `workloads/`  | a JobSet or another owner of slices, its demand and report | `workloads`  |
| `slices/`     | a slice; claims, attempts, hosts in modules of their own   | `slices`     |
| `slots/`      | an operation that runs, or that may start now              | `limiters`   |
| `limiters/`   | how many operations may run in a cluster                   | `limiters`   |
| `budgets/`    | what orders creations under a limit of chips               | `limiters`   |
| `brakes/`     | releases that were stopped                                 | `brakes`     |
| `heartbeats/` | when a cluster's relay was heard                           | `heartbeats` |
| `rejected/`   | a message that could not be handled                        | `rejected`   |

Settings are stored as operators write them: `model.clusters` is what they mean.
"""
