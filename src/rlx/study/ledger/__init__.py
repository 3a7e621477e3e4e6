"""The ledger of a study: append-only rows, and the state that their replay gives."""
