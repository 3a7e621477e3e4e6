"""Approvals of a contract, and the signatures that support them."""
