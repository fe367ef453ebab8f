"""The user's crontab and scrontab: reading and replacing them through their own programs."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from eigenscape.errors import InputError


@dataclass(frozen=True)
class Crontab:
    """A table of scheduled commands.

    Attributes
    ----------
    program
        ``crontab`` or ``scrontab``.
    """

    program: str

    @property
    def is_there(self) -> bool:
        """Whether the program is installed."""
        return shutil.which(self.program) is not None

    def read(self) -> str:
        """Return the text of the user's table; bytes that are no UTF-8 come through unchanged.

        Raises
        ------
        InputError
            The program is not there or refuses.
        """
        done = self._call("-l")
        if done.returncode and b"no crontab for" not in done.stderr + done.stdout:
            raise self._refused(done)
        return "" if done.returncode else done.stdout.decode(errors="surrogateescape")

    def write(self, text: str) -> None:
        """Replace the user's table.

        Raises
        ------
        InputError
            The program is not there or refuses; the table is as it was.
        """
        if not text:
            done = self._call("-r")
            if done.returncode and b"no crontab for" not in done.stderr + done.stdout:
                raise self._refused(done)
            return
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "table"
            file.write_bytes(text.encode(errors="surrogateescape"))
            # scrontab asks whether to edit a table that is refused, and ends with 0.
            done = self._call(str(file), answer=b"n\n")
        if done.returncode or self.read() != text:
            raise self._refused(done)

    def _call(self, *arguments: str, answer: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        # What the program says is read below, so it has to say it in English.
        environment = {**os.environ, "LC_ALL": "C"}
        try:
            return subprocess.run(
                [self.program, *arguments],
                input=answer, capture_output=True, check=False, timeout=60, env=environment,
            )  # fmt: skip
        except FileNotFoundError:
            raise InputError(
                f"{self.program} is not installed here. Print the entry without --install, and put it "
                "where your scheduler reads it; on SLURM, --chain needs sbatch alone."
            ) from None
        except subprocess.TimeoutExpired:
            raise InputError(
                f"{self.program} does not answer within 60 s. Try again later."
            ) from None

    def _refused(self, done: subprocess.CompletedProcess[bytes]) -> InputError:
        said = (done.stderr + done.stdout).decode(errors="replace").strip()
        return InputError(
            f"{self.program} refuses ({said or f'exit status {done.returncode}'}). The table is as it "
            f"was. Ask who runs this machine whether you may use {self.program}."
        )
