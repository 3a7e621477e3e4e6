"""MAKE a policy: the trainer protocol, the session it talks to, and its backends."""
