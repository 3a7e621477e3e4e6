"""A Slurm of one node, of the machine's own programs, for tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

SLURM = """
ClusterName=rlx
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/m/sock
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool
SlurmctldPidFile={base}/ctld.pid
SlurmdPidFile={base}/d.pid
SlurmctldLogFile={base}/log/ctld.log
SlurmdLogFile={base}/log/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
JobRequeue=0
KillWait=5
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP PriorityTier=1
"""
NEEDED = ("slurmctld", "slurmd", "munged", "sbatch", "scontrol")
ABSENT = [
    program for program in NEEDED if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None
]
REASON = f"SLURM IS NOT TESTED: no {', '.join(ABSENT)} here (apt install slurm-wlm munge)"


@contextlib.contextmanager
def running(base: Path, *, settings: str = "") -> Iterator[Path]:
    """Start a Slurm with all its files in a folder, yield its config, and stop it by its pid files.

    Its two GPUs are devices that every machine has. Slurm gives them out, and nobody uses them.
    """
    for folder in ("m", "state", "spool", "log"):
        (base / folder).mkdir()
    (base / "m").chmod(0o700)
    (base / "m" / "key").write_bytes(os.urandom(32))
    (base / "m" / "key").chmod(0o400)
    host = subprocess.run(["hostname", "-s"], capture_output=True, text=True, check=True).stdout.strip()
    conf = base / "slurm.conf"
    conf.write_text(SLURM.format(host=host, base=base, cpus=os.cpu_count(), ports=_free_ports()) + settings)
    (base / "gres.conf").write_text("Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n")
    munge = [f"--{name}-file={base}/m/{name}" for name in ("key", "pid", "log", "seed")]
    path = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin", "SLURM_CONF": str(conf)}
    try:
        for argv in (["munged", "--force", f"--socket={base}/m/sock", *munge], ["slurmctld", "-f", str(conf)],
                     ["slurmd", "-f", str(conf)]):  # fmt: skip
            subprocess.run(argv, env=path, check=True, capture_output=True, timeout=60)
        deadline = time.monotonic() + 60
        while (
            "idle" not in subprocess.run(["sinfo", "-h", "-o", "%T"], env=path, capture_output=True, text=True).stdout
        ):
            assert time.monotonic() < deadline, (base / "log" / "ctld.log").read_text()[-2000:]
            time.sleep(0.2)
        yield conf
    finally:
        _stop(base, path)


def _stop(base: Path, path: dict[str, str]) -> None:
    deadline = time.monotonic() + 30
    while subprocess.run(["squeue", "-h"], env=path, capture_output=True).stdout and time.monotonic() < deadline:
        time.sleep(0.2)  # a step that cannot report its end would stay for ever
    for name in ("d.pid", "ctld.pid", "m/pid"):
        with contextlib.suppress(FileNotFoundError):  # it never started
            subprocess.run(["kill", (base / name).read_text().strip()], check=False)


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for found in (one, other):
            found.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def templates(conf: Path) -> dict[str, tuple[str, ...]]:
    """Return the commands that submit to it, ask it and cancel there."""
    slurm = ("env", f"SLURM_CONF={conf}")
    return {
        "submit": (*slurm, "sbatch", "--parsable", "--job-name={name}", "--output={log}", "--open-mode=append",
                   "--ntasks=1", "--cpus-per-task={cores}", "--wrap={command}"),
        "poll": (*slurm, "scontrol", "show", "job", "{id}"),
        "cancel": (*slurm, "scancel", "--full", "{id}"),
    }  # fmt: skip
