"""An ssh server on loopback that runs commands as the user of the tests: ``python sshserver.py FOLDER``.

FOLDER gets the keys, and the port as the last thing; every command is noted in FOLDER/commands.
"""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import asyncssh


async def copy(source: asyncio.StreamReader | None, target: asyncssh.SSHWriter[str]) -> None:
    """Copy what a command prints."""
    assert source is not None
    while data := await source.read(4096):
        target.write(data.decode())


async def serve(folder: Path) -> None:
    """Serve until killed."""
    host, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user.write_private_key(folder / "key")
    (folder / "key").chmod(0o600)
    user.write_public_key(folder / "authorized")

    async def run(process: asyncssh.SSHServerProcess) -> None:
        with (folder / "commands").open("a", encoding="utf-8") as stream:
            stream.write(f"{process.command}\n")
        child = await asyncio.create_subprocess_shell(
            f"exec {process.command}", stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=dict(os.environ),
        )  # fmt: skip
        try:
            # All of it before the end is told: what came after would close the whole connection.
            await asyncio.gather(
                copy(child.stdout, process.stdout), copy(child.stderr, process.stderr)
            )
            process.exit(await child.wait())
        finally:
            with suppress(ProcessLookupError):
                child.terminate()

    listener = await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[host], process_factory=run,
        authorized_client_keys=str(folder / "authorized"),
    )  # fmt: skip
    port, public = listener.get_port(), host.export_public_key().decode()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {public}", encoding="ascii")
    (folder / "port.new").write_text(str(port), encoding="ascii")
    (folder / "port.new").rename(folder / "port")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
