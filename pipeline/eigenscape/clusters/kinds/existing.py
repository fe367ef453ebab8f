"""Workers of a scheduler that runs already."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from eigenscape.clusters.network import security_of
from eigenscape.clusters.options import (
    EXAMPLE_ADDRESS,
    CertificateKeys,
    ClusterOptions,
    Say,
    WaitKey,
)
from eigenscape.clusters.owners import check_own
from eigenscape.clusters.workers.supply import ExternalSupply, Supply
from eigenscape.errors import ClusterError

_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "ucxx")
_PLACE = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]):(\d{1,5})", re.ASCII)


class ExistingOptions(WaitKey, CertificateKeys, ClusterOptions):
    """Workers of a scheduler that is already running and is not stopped at the end."""

    kind: Literal["existing"] = "existing"
    address: str | None = None
    """Address of an existing scheduler, such as "tcp://127.0.0.1:8786"."""
    scheduler_file: str | None = None
    """Scheduler file of an existing scheduler (instead of ``address``)."""

    @field_validator("address")
    @classmethod
    def _check_address(cls, address: str | None) -> str | None:
        if address is None:
            return None
        scheme, separator, place = address.partition("://")
        found = _PLACE.fullmatch(place)
        wrong = ""
        if re.search(r"\s", address):
            wrong = "contains a space"
        elif scheme in ("http", "https"):
            wrong = "is the address of a page, such as Dask's dashboard"
        elif not separator or scheme not in _SCHEMES:
            wrong = f"begins with none of {', '.join(f'{name}://' for name in _SCHEMES)}"
        elif found is None:
            wrong = "is not a host and a port"
        elif not 0 < int(found[1]) < 2**16:
            wrong = f"has the port {found[1]}, and ports are 1 to 65535"
        if wrong:
            raise ValueError(
                f"it {wrong}. Give the address that `dask scheduler` prints, such as {EXAMPLE_ADDRESS}"
            )
        return address

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if not (self.address or self.scheduler_file):
            raise ValueError("kind = 'existing' needs address or scheduler_file")
        return self

    @contextmanager
    def open_client(
        self, threads: int | None, memory_limit: int, say: Say
    ) -> Iterator[tuple[Any, Supply]]:
        """Connect to it."""
        from distributed import Client

        if self.scheduler_file and not Path(self.scheduler_file).exists():
            # distributed would wait for it for ever.
            raise ClusterError(
                f"{self.scheduler_file}: no such scheduler file. Start a scheduler that writes it "
                "with `dask scheduler --scheduler-file FILE`, or give its address."
            )
        # Whoever started it has decided on encryption.
        security = security_of(self.certificates, encrypted=False)
        if self.scheduler_file and security is None:
            check_own(
                Path(self.scheduler_file),
                "a scheduler of somebody else can run code as you",
                "Start your own, or give the address of one that you trust; with certificates "
                "(tls_ca_file, tls_cert, tls_key) the file is not asked.",
            )
        if self.address and security is None:
            _check_encryption(self.address)
        try:
            # Not the default client: that is the caller's, and would outlive an error of ours.
            client = Client(
                address=self.address,
                scheduler_file=self.scheduler_file,
                security=security,
                timeout="10s",
                set_as_default=False,
            )
        except Exception as error:  # a scheduler file names any address
            target = self.address or self.scheduler_file
            raise ClusterError(
                f"{target}: no scheduler answers there within 10 s ({_causes(error)}). "
                "Start one with `dask scheduler`, or leave out --on to work in this process."
            ) from None
        with client:
            yield client, ExternalSupply("Start some with `dask worker`.")


def _check_encryption(address: str) -> None:
    """Refuse an address that needs certificates where there are none; distributed would raise an error."""
    from distributed.security import Security

    encrypts = address.startswith(("tls://", "wss://"))
    if encrypts and Security().get_connection_args("client")["ssl_context"] is None:
        raise ClusterError(
            f"{address}: the scheduler encrypts, and there are no certificates. Give a cluster file with "
            'kind = "existing", this address, and tls_ca_file, tls_cert and tls_key.'
        )


def _causes(error: BaseException) -> str:
    """Return an error with what is at its root, such as a connection that was refused."""
    text, below = str(error) or type(error).__name__, error
    while (inner := below.__cause__ or below.__context__) is not None:
        below = inner
        if isinstance(below, OSError) and below.strerror:
            return f"{text}: {below.strerror}"
    return text
