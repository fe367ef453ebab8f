"""What the job of a driver starts: ``python -m eigenscape.cli.driver RUN``."""

import os
import sys
from pathlib import Path

from eigenscape.cli.printing.results import print_result
from eigenscape.cli.streams import guard_streams
from eigenscape.schedule.driver import main

if __name__ == "__main__":
    guard_streams()
    status = main(Path(sys.argv[1]), print_result)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of tasks that were begun are not waited for: another job will do these again.
    os._exit(status)
