"""Measure what jobs/MEASUREMENTS.md says: run the commands of its sections.

    python tests/bench/measurements.py [--data ../shared/data] [--only SECTION ...] [--list]
                                       [--output runs/measurements]

Lines of the page that begin with "$" are commands of the section that they stand in, for bash, from the root
of the repository, with $DATA for the folder of the data. What those of a section print goes to
OUTPUT/SECTION.txt, after each command as it was given. Exit status 1 if a command failed.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "jobs" / "MEASUREMENTS.md"


def read_commands(text: str) -> dict[str, list[str]]:
    """Return the commands of each section that has any, by its heading as a name of a file."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in text.splitlines():
        if heading := re.match(r"#+ (.+)", line):
            section = re.sub(r"[^a-z0-9]+", "-", heading[1].lower()).strip("-")
        elif line.startswith("    $ "):
            found.setdefault(section, []).append(line.removeprefix("    $ "))
    return found


def measure(section: str, commands: list[str], data: Path, output: Path) -> bool:
    """Run the commands of a section; return whether none failed."""
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{section}.txt"
    variables = os.environ | {"DATA": str(data.resolve())}
    good = True
    with path.open("w", encoding="utf-8") as stream:
        for command in commands:
            stream.write(f"$ {command}\n")
            stream.flush()
            done = subprocess.run(
                ["bash", "-e", "-c", command], cwd=ROOT, env=variables, stdout=stream,
                stderr=subprocess.STDOUT, check=False,
            )  # fmt: skip
            stream.write(f"exit status {done.returncode}\n\n")
            good &= done.returncode == 0
    print(f"{section}: {'measured' if good else 'FAILED'}, {path}", flush=True)
    return good


def main() -> int:
    """Run what is asked for."""
    sections = read_commands(PAGE.read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", nargs="*", choices=list(sections))
    parser.add_argument("--output", type=Path, default=ROOT / "runs" / "measurements")
    parser.add_argument("--list", action="store_true", help="print the commands and run none")
    given = parser.parse_args()
    good = True
    for section in given.only or sections:
        if given.list:
            print(section, *(f"    {command}" for command in sections[section]), sep="\n")
        else:
            good &= measure(section, sections[section], given.data, given.output)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
