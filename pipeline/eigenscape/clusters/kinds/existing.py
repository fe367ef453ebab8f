"""Workers of a scheduler that runs already."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from eigenscape.clusters.network import security_of
from eigenscape.clusters.options import CertificateKeys, ClusterOptions, Say, WaitKey
from eigenscape.clusters.owners import check_own
from eigenscape.clusters.workers.supply import ExternalSupply, Supply
from eigenscape.errors import ClusterError


class ExistingOptions(WaitKey, CertificateKeys, ClusterOptions):
    """Workers of a scheduler that is already running and is not stopped at the end."""

    kind: Literal["existing"] = "existing"
    address: str | None = None
    """Address of an existing scheduler, such as "tcp://127.0.0.1:8786"."""
    scheduler_file: str | None = None
    """Scheduler file of an existing scheduler (instead of ``address``)."""

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
        try:
            # Not the default client: that is the caller's, and would outlive an error of ours.
            client = Client(
                address=self.address,
                scheduler_file=self.scheduler_file,
                security=security,
                timeout="10s",
                set_as_default=False,
            )
        except (OSError, TimeoutError, ValueError) as error:
            target = self.address or self.scheduler_file
            raise ClusterError(
                f"{target}: no scheduler answers there within 10 s ({error}). "
                "Start one with `dask scheduler`, or leave out --on to work in this process."
            ) from None
        with client:
            yield client, ExternalSupply("Start some with `dask worker`.")
