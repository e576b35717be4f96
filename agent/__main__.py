"""`python -m agent` is `pot`."""

from agent.cli import main

main()
