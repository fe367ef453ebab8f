"""``python -m eigenscape``."""

from eigenscape.cli import main

main()
