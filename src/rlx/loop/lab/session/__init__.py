"""One session of a lab's agent: its command and sandbox, its folder, its record, and the limits of its client."""
