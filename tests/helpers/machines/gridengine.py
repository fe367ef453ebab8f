"""A real Grid Engine of one node for the tests: started as root, in namespaces of its own.

Debian's packages gridengine-master, gridengine-exec and gridengine-client. Its daemons listen on every
interface, so they have one alone, a loopback that nobody else sees. What a Grid Engine keeps in
/var/lib and /var/spool is left alone: root, cell and spool lie in one directory.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

from machines.namespaces import Namespace, host_name
from machines.namespaces import why_not as namespaces_why_not

_LIBRARY = Path("/usr/lib/gridengine")
_SHARE = Path("/usr/share/gridengine")
PROGRAMS = ("qsub", "qstat", "qdel", "qconf")
_DAEMONS = ("sge_qmaster", "sge_execd")

_BOOTSTRAP = """\
admin_user              root
default_domain          none
ignore_fqdn             false
spooling_method         berkeleydb
spooling_lib            libspoolb
spooling_params         {base}/spool/db
binary_path             /usr/sbin
qmaster_spool_dir       {base}/spool/qmaster
security_mode           none
listener_threads        2
worker_threads          2
scheduler_threads       1
"""

_HOST = """\
hostname {host}
load_scaling NONE
complex_values NONE
user_lists NONE
xuser_lists NONE
projects NONE
xprojects NONE
usage_scaling NONE
report_variables NONE
"""

_ENVIRONMENT = """\
pe_name smp
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule $pe_slots
control_slaves FALSE
job_is_first_task TRUE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
"""


def why_not() -> str | None:
    """Return why no Grid Engine can be started here, None if one can."""
    missing = [name for name in (*PROGRAMS, *_DAEMONS) if shutil.which(name) is None]
    if missing or not (_LIBRARY / "spoolinit").exists():
        return (
            f"needs Grid Engine ({', '.join(missing) or 'spoolinit'} absent): apt-get install "
            "gridengine-master gridengine-exec gridengine-client"
        )
    return namespaces_why_not()


class GridEngine:
    """One private Grid Engine.

    Parameters
    ----------
    base
        An empty directory.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.inside = Namespace(base, "sge")
        self.inside.environment |= {"SGE_ROOT": str(base / "root"), "SGE_CELL": "default"}

    @property
    def environment(self) -> dict[str, str]:
        """What to set so that this process reaches its commands."""
        return {"PATH": f"{self.base / 'bin'}:{os.environ['PATH']}"}

    def start(self) -> None:
        """Start it and wait until its queue takes jobs."""
        self._lay_out()
        self.inside.start()
        self._initialize()
        self._daemon("sge_qmaster")
        self._until(lambda: "root" in self.call("qconf", "-sm"))
        host = host_name()
        self._set("-Ae", "host", _HOST.format(host=host))
        self.call("qconf", "-ah", host)
        self.call("qconf", "-as", host)
        self._set("-Ahgrp", "group", f"group_name @allhosts\nhostlist {host}\n")
        self._set("-Ap", "environment", _ENVIRONMENT)
        # As it comes: jobs begin with /bin/csh, which need not be there, whatever their first line says.
        queue = self._changed(
            "-sq", qname="all.q", hostlist="@allhosts", pe_list="make smp", slots="4",
            load_thresholds="NONE", shell="/bin/csh",
            # Another Grid Engine of the tests has jobs of the same numbers, whose folders it deletes.
            tmpdir=str(self.base),
        )  # fmt: skip
        self._set("-Aq", "queue", queue)
        schedule = self._changed(
            "-ssconf", schedule_interval="0:0:1", flush_submit_sec="1", flush_finish_sec="1",
            schedd_job_info="true",
        )  # fmt: skip
        self._set("-Msconf", "schedule", schedule)
        self._daemon("sge_execd")
        self._until(lambda: "lx-" in self.call("qstat", "-f"))
        self.inside.wrap(self.base / "bin", *PROGRAMS)

    def call(self, *command: str) -> str:
        """Run a command inside; return what it prints, also of one that fails."""
        done = self.inside.run(*command, timeout=60)
        return done.stdout.strip()

    def jobs(self, states: str = "r") -> list[str]:
        """Return the numbers of the jobs with one of these letters in their state, oldest first."""
        rows = [line.split() for line in self.call("qstat").splitlines()[2:]]
        return sorted((row[0] for row in rows if set(row[4]) & set(states)), key=int)

    def stop(self) -> None:
        """End it with all of its jobs."""
        self.inside.stop()
        shutil.rmtree(self.base, ignore_errors=True)

    def _lay_out(self) -> None:
        for part in ("root/default/common", "spool/qmaster/job_scripts", "spool/db", "spool/execd"):
            (self.base / part).mkdir(parents=True)
        self.base.chmod(0o755)
        for part in ("bin", "lib", "utilbin"):
            (self.base / "root" / part).mkdir()
            for architecture in (Path("/var/lib/gridengine") / part).iterdir():
                (self.base / "root" / part / architecture.name).symlink_to(_LIBRARY)
        (self.base / "root" / "util").symlink_to(_SHARE / "util")
        common = self.base / "root" / "default" / "common"
        (common / "bootstrap").write_text(_BOOTSTRAP.format(base=self.base), encoding="ascii")
        (common / "act_qmaster").write_text(f"{host_name()}\n", encoding="ascii")
        text = (_SHARE / "default-configuration").read_text(encoding="ascii")
        # Root may submit, and the node keeps its own files here.
        configuration = _with(
            text, min_uid="0", min_gid="0", execd_spool_dir=str(self.base / "spool" / "execd")
        )
        (self.base / "configuration").write_text(configuration, encoding="ascii")

    def _initialize(self) -> None:
        for command in (
            ("spoolinit", "berkeleydb", "libspoolb", self.base / "spool" / "db", "init"),
            ("spooldefaults", "configuration", self.base / "configuration"),
            ("spooldefaults", "complexes", _SHARE / "util" / "resources" / "centry"),
            ("spooldefaults", "usersets", _SHARE / "util" / "resources" / "usersets"),
            ("spooldefaults", "managers", "root"),
        ):
            done = self.inside.run(_LIBRARY / command[0], *command[1:])
            assert done.returncode == 0, (command, done.stdout, done.stderr)

    def _daemon(self, name: str) -> None:
        # A daemon keeps its output open, so it goes nowhere.
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        started = self.inside.popen(name, stderr=subprocess.DEVNULL, **options)
        assert started.wait(timeout=60) == 0, name

    def _set(self, option: str, name: str, text: str) -> None:
        path = self.base / name
        path.write_text(text, encoding="ascii")
        done = self.inside.run("qconf", option, path)
        assert done.returncode == 0, (option, done.stdout, done.stderr)

    def _changed(self, option: str, **values: str) -> str:
        return _with(self.call("qconf", option) + "\n", **values)

    def _until(self, what: object) -> None:
        end = time.monotonic() + 30
        while not what():  # type: ignore[operator]
            assert time.monotonic() < end, self.logs()
            time.sleep(0.1)

    def logs(self) -> str:
        """Return the ends of its logs."""
        paths = [self.base / "spool" / "qmaster" / "messages"]
        paths += (self.base / "spool" / "execd").glob("*/messages")
        return "\n".join(
            path.read_text(encoding="utf-8", errors="replace")[-2000:]
            for path in paths
            if path.exists()
        )


def _with(text: str, **values: str) -> str:
    """Return a table of Grid Engine with other values."""
    lines = []
    for line in text.splitlines():
        key = line.split(maxsplit=1)[0] if line.strip() else ""
        lines.append(f"{key} {values[key]}" if key in values else line)
    return "\n".join(lines) + "\n"
