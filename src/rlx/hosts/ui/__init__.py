"""The local dashboard: pages that the server renders, and the same parts in reports and notebooks."""
