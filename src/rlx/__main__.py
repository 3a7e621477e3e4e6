"""`python -m rlx` is the `rlx` command."""

from rlx.hosts.cli.main import main

if __name__ == "__main__":
    main()
