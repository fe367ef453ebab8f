"""``python -m eigenscape``."""

from eigenscape.cli.app import main

main()
