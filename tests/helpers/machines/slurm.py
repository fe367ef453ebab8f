"""A real SLURM of one node for the tests: started as root, on loopback alone, shared by all test processes.

Debian's packages slurmctld, slurmd, slurm-client and munge; no systemd, cgroups or database.
"""

import os
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
_ADMIN = "/usr/sbin:/sbin"

_CONF = """\
ClusterName=eigenscape
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={next_port}
# Bind to what the host's name means (127.0.0.1), not to every interface.
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={base}/munge/socket,cred_expire=5
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
EnforcePartLimits=ALL
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
MessageTimeout=10
InactiveLimit=0
KillWait=2
Waittime=0
# The node may claim more than it has: the tests run jobs side by side.
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=65536 State=UNKNOWN
PartitionName=debug Nodes=n1 Default=YES MaxTime=INFINITE DefMemPerCPU=512 OverSubscribe=NO State=UP
"""


def why_not() -> str | None:
    """Return why no SLURM can be started here, None if one can."""
    if os.geteuid() != 0:
        return "needs root, which SLURM's daemons run as"
    path = f"{os.environ.get('PATH', '')}:{_ADMIN}"
    if missing := [name for name in PROGRAMS if shutil.which(name, path=path) is None]:
        return f"needs SLURM ({', '.join(missing)} absent): apt-get install slurmctld slurmd munge"
    try:
        address = socket.gethostbyname(_host())
    except OSError:
        address = "nothing"
    if not address.startswith("127."):
        return f"needs the host's name {_host()} to mean 127.x, it means {address}"
    return None


class Slurm:
    """One private SLURM.

    Parameters
    ----------
    base
        An empty directory of a short path: sockets lie in it.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.environment = {
            "SLURM_CONF": str(base / "slurm.conf"),
            "PATH": f"{os.environ['PATH']}:{_ADMIN}",
        }

    def start(self) -> None:
        """Start it and wait until its node takes jobs."""
        for part in ("munge", "state", "spool"):
            (self.base / part).mkdir(mode=0o755)
        self.base.chmod(0o755)
        key = self.base / "munge" / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        port = _free_ports()
        text = _CONF.format(host=_host(), port=port, next_port=port + 1, base=self.base)
        (self.base / "slurm.conf").write_text(text, encoding="utf-8")
        self._call(
            "munged", f"--key-file={key}", f"--socket={self.base}/munge/socket",
            f"--pid-file={self.base}/munged.pid", f"--log-file={self.base}/munged.log",
            f"--seed-file={self.base}/munge/seed", "--num-threads=1",
        )  # fmt: skip
        for daemon in ("slurmctld", "slurmd"):
            self.start_daemon(daemon)
        end = time.monotonic() + 30
        while self.call("sinfo", "-h", "-o", "%T") not in ("idle", "mixed", "allocated"):
            assert time.monotonic() < end, self.logs()
            time.sleep(0.1)

    def start_daemon(self, daemon: str) -> None:
        """Start slurmctld or slurmd."""
        self._call(daemon, "-f", str(self.base / "slurm.conf"))

    def pid(self, daemon: str) -> int:
        """Return the process number of a daemon."""
        return int((self.base / f"{daemon}.pid").read_text(encoding="utf-8"))

    def call(self, *command: str) -> str:
        """Run a command of SLURM; return what it prints, also of one that fails."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip
        return done.stdout.strip()

    def jobs(self, state: str = "R") -> list[str]:
        """Return the numbers of the jobs in a state, oldest first."""
        return sorted(self.call("squeue", "-h", "-o", "%A", "-t", state).split(), key=int)

    def stop(self) -> None:
        """Cancel its jobs and end it."""
        for _ in range(50):
            left = self.call("squeue", "-h", "-o", "%A").split()
            if not left:
                break
            self.call("scancel", *left)
            time.sleep(0.1)
        for daemon in ("slurmd", "slurmctld", "munged"):
            with suppress(OSError, ValueError, psutil.Error):
                process = psutil.Process(self.pid(daemon))
                process.kill()  # its state goes with it
                end = time.monotonic() + 10
                # The first process of a container may reap late, so a zombie is as good as gone.
                while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < end:
                    time.sleep(0.02)
        shutil.rmtree(self.base, ignore_errors=True)

    def logs(self) -> str:
        """Return the ends of its logs."""
        return "\n".join(
            path.read_text(encoding="utf-8", errors="replace")[-2000:]
            for path in sorted(self.base.glob("*.log"))
        )

    def _call(self, *command: str) -> None:
        # A daemon's children keep its output open, so it goes nowhere.
        with (self.base / "start.log").open("a", encoding="utf-8") as log:
            done = subprocess.run(
                command, env={**os.environ, **self.environment}, stdout=log, stderr=log,
                check=False, timeout=60,
            )  # fmt: skip
        assert done.returncode == 0, self.logs()


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _free_ports() -> int:
    """Return a free port whose next one is free, too."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            with suppress(OSError):
                other.bind(("127.0.0.1", port + 1))
                return port
