"""PROMISED and PROVEN: tasks, contracts, candidates, and the ledger that every state is the replay of."""
