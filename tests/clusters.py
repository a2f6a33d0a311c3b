"""A Dask scheduler with workers, and a SLURM of one node: real ones, for tests, in a temporary folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

Process = subprocess.Popen[bytes]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(what: str, true: Callable[[], object], within_s: float = 60) -> None:
    """Wait for something that happens outside this process."""
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.05)


@contextmanager
def started(command: list[str], log: Path, **env: str) -> Iterator[Process]:
    """A process, until the end of the block."""
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, stdout=said, stderr=subprocess.STDOUT, env={**os.environ, **env}, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()


@contextmanager
def dask(
    place: Path,
    workers: int = 2,
    *,
    without: str | None = None,
    threads: int = 1,
    nanny: bool = False,
    protocol: str = "tcp",
    before: str = "",
    **env: str,
) -> Iterator[tuple[str, list[Process]]]:
    """The address of a scheduler, which has not the module `without`; its process and those of its workers.

    A nanny starts a worker again when it dies. `before` is Python that the first worker runs before it is one.
    """
    host, port = "127.0.0.1", str(free_port())
    address = f"{protocol}://{host}:{port}"
    with ExitStack() as stack:
        code = f"import sys; sys.modules[{without!r}] = None; from distributed.cli.dask_scheduler import main; main()"
        module = ["-m", "distributed.cli.dask_scheduler"] if without is None else ["-c", code]
        scheduler = [sys.executable, *module, "--protocol", protocol, "--host", host, "--port", port]
        scheduler.append("--no-dashboard")
        processes = [stack.enter_context(started(scheduler, place / "scheduler.log", **env))]
        worker = [address, "--nthreads", str(threads), "--nanny" if nanny else "--no-nanny", "--no-dashboard"]
        first = ["-c", f"{before}\nfrom distributed.cli.dask_worker import main; main()"]
        for number in range(workers):
            module = first if before and not number else ["-m", "distributed.cli.dask_worker"]
            folder = ["--local-directory", str(place / f"worker{number}")]
            command, log = [sys.executable, *module, *worker, *folder], place / f"worker{number}.log"
            processes.append(stack.enter_context(started(command, log, **env)))
        for number in range(workers):
            log = place / f"worker{number}.log"
            wait_for(f"worker {number}", lambda log=log: "Registered to" in log.read_text())
        yield address, processes


SLURM_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge/socket
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def slurm_lacks() -> str | None:
    """Why there can be no SLURM here."""
    if os.geteuid() != 0:
        return "needs root"
    absent = [name for name in ("slurmctld", "slurmd", "munged", "sbatch") if shutil.which(name) is None]
    return f"needs {', '.join(absent)} (apt install slurm-wlm munge)" if absent else None


@contextmanager
def slurm(place: Path) -> Iterator[dict[str, str]]:
    """A SLURM of this machine; the environment of its commands."""
    conf, munge = place / "slurm.conf", place / "munge"
    munge.mkdir(mode=0o711)
    for folder in (place / "state", place / "spool"):
        folder.mkdir()
    key = munge / "key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    conf.write_text(
        SLURM_CONF.format(
            host=socket.gethostname().split(".")[0], place=place, ports=(free_port(), free_port())
        )
    )
    env = {"SLURM_CONF": str(conf)}
    files = {"key-file": key, "socket": munge / "socket", "pid-file": munge / "pid"}
    files |= {"seed-file": munge / "seed", "log-file": munge / "log"}
    options = [f"--{name}={path}" for name, path in files.items()]
    with ExitStack() as stack:
        stack.enter_context(started(["munged", "-F", "--force", *options], place / "munged.log"))
        wait_for("munged", (munge / "socket").exists)
        stack.enter_context(started(["slurmctld", "-D", "-f", str(conf)], place / "slurmctld.log", **env))
        stack.enter_context(started(["slurmd", "-D", "-f", str(conf)], place / "slurmd.log", **env))

        def idle() -> bool:
            command = ["sinfo", "-h", "-o", "%T"]
            done = subprocess.run(
                command, env={**os.environ, **env}, capture_output=True, text=True, check=False
            )
            return done.stdout.strip() == "idle"

        wait_for("an idle node", idle)
        try:
            yield env
        finally:
            subprocess.run(["scancel", "-u", "root"], env={**os.environ, **env}, check=False)


def kill(process: Process) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
