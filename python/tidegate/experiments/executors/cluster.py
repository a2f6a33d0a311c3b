"""Runs as tasks of Dask: on workers of this machine, of a scheduler that is there, or of SLURM.

A task makes its case anew from the recipe, runs it and returns rows and tables; the parent writes them as they come, so that a lost
worker or scheduler costs unfinished runs only. Dask starts the task of a killed worker again elsewhere. A worker has to have the same
versions as the parent: only then are the results those of a serial run, to the bit.

Tasks and results are pickles: who can connect runs code as the user. Clusters that are started here have TLS with a key of their own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import logging
import platform
import queue
import shutil
import subprocess
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from urllib.parse import urlsplit

from tidegate import addresses
from tidegate._core import TidegateError, __version__
from tidegate.experiments import digests
from tidegate.experiments.executors import cluster_options
from tidegate.experiments.folder import encoded
from tidegate.experiments.jobs import (
    AGAIN_S,
    LOOK_S,
    Ended,
    Jobs,
    NotCarriedOut,
    Recipe,
    Tell,
    run_case,
    sendable,
    told,
)
from tidegate.experiments.plan import Run

CONNECT_S = 10
DASHBOARD_S = 2
"""To answer within."""
TELL_S = 0.5
"""How often a task says how far it is."""
FETCH_S = 60
"""A result that has not come after so long is asked for again."""
WAITING_S = 15.0
"""After so long without a worker that is said."""
SLURM_JOBS = 4
ENCRYPTED = ("tls", "wss")
"""Protocols of Dask that have TLS."""
KEY = "distributed.comm.tls.ca-file, .client.cert and .client.key in Dask's configuration"
INSECURE = "insecure"
"""The `--cluster-option` of a scheduler without TLS that other machines reach."""
UNREADABLE = "Error during deserialization of the task graph"
"""In the error of a scheduler that has not the modules of what it is given."""


class OtherVersions(NotCarriedOut):
    """A worker has other versions than the parent."""


@functools.cache
def versions() -> dict[str, str]:
    """What has to be the same for the same results: packages, and Tidegate's own files."""
    import numpy
    import polars

    return {
        "tidegate": __version__,
        "tidegate's files": digests.of_tidegate(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "polars": polars.__version__,
    }


def _with_files(recipe: Recipe) -> dict[str, str]:
    """The versions, with the files of an experiment that is the user's."""
    own = digests.of_experiment(recipe.name).get("experiment")
    return versions() if own is None else {**versions(), "the experiment's files": own}


def _demand_versions(wanted: dict[str, str], recipe: Recipe, of: str) -> None:
    here = versions()
    if here.items() <= wanted.items():
        # Only now: with other versions the experiment may not be there.
        here = _with_files(recipe)
    wrong = [
        f"{name} {one} instead of {wanted.get(name)}" for name, one in here.items() if wanted.get(name) != one
    ]
    if wrong:
        raise OtherVersions(f"worker {of} has {', '.join(wrong)}; install the same there")


@dataclass(frozen=True)
class _Done:
    run: Run
    files: dict[str, bytes]


def task(
    recipe: Recipe, job: tuple[int, int], backend: str, wanted: dict[str, str], topic: str, number: int
) -> _Done:
    """A run, on a worker. Its key is not cancelled, or it ends early."""
    from distributed import get_worker

    worker = get_worker()
    _demand_versions(wanted, recipe, worker.address)
    key = worker.get_current_task()
    said = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said < TELL_S:
            return
        said = now
        state = worker.state.tasks.get(key)
        if state is None or state.state != "executing":
            raise KeyboardInterrupt
        worker.log_event(topic, {"number": number, "part": done / total})

    worker.log_event(topic, {"number": number, "part": 0.0})
    index, seed = job
    try:
        run = run_case(progress, recipe.case(index), seed, backend)
    except TidegateError:
        raise
    except Exception as error:
        raise sendable(error) from None
    if run.rows is None:
        raise RuntimeError("cancelled")
    return _Done(replace(run, tables={}), encoded(run))


class Cluster:
    """Runs as tasks of a Dask scheduler."""

    def __init__(self, client: Any, where: str, say: Callable[[str], object]) -> None:
        self.client = client
        """Dask's own."""
        self._where = where
        self._say = say

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        """Run all; fewer if something ends it."""
        if jobs.backend != "sim":
            raise TidegateError(
                f"--cluster is for the simulator; {jobs.backend} runs need this machine to themselves"
            )
        topic = f"tidegate-{uuid.uuid4().hex}"
        parts: dict[int, float] = {}
        # Called by another thread.
        came: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        wanted = _with_files(jobs.recipe)
        futures: dict[int, Any] = {}

        def submit(number: int, key: str) -> None:
            given = (jobs.recipe, jobs.jobs[number], jobs.backend, wanted, topic, number)
            future = self.client.submit(task, *given, key=f"{topic}-{number}{key}", pure=False)
            futures[number] = future
            future.add_done_callback(lambda future: came.put((number, future)))

        try:
            with told() as signals:
                with self._scheduler():
                    self.client.subscribe_topic(
                        topic, lambda event: parts.update({event[1]["number"]: event[1]["part"]})
                    )
                    for number in range(len(jobs.jobs)):
                        submit(number, "")
                suspects = self._gather(jobs, tell, ended, futures, parts, came, signals)
                for number, why in suspects.items():
                    if len(suspects) == 1 or ended.interrupted or ended.error is not None:
                        ended.lost.append(why)
                        continue
                    with self._scheduler():
                        submit(number, "-alone")
                    alone = self._gather(jobs, tell, ended, futures, parts, came, signals)
                    ended.lost.extend(alone.values())
        except KeyboardInterrupt:
            ended.interrupted = True
        except Exception as error:
            # What is done is kept: it is not of those.
            ended.error = ended.error or error
        finally:
            with suppress(Exception):
                self.client.cancel(list(futures.values()), force=True)
                self.client.unsubscribe_topic(topic)

    def _gather(
        self,
        jobs: Jobs,
        tell: Tell,
        ended: Ended,
        futures: dict[int, Any],
        parts: dict[int, float],
        came: queue.SimpleQueue[tuple[int, Any]],
        signals: list[float],
    ) -> dict[int, str]:
        """Wait for `futures`; what to say of those with which workers died, by number.

        Dask counts a worker's death against all runs that the worker had, so that one which waited behind a run
        that kills is among them.
        """
        suspects: dict[int, str] = {}
        begun, waiting = time.monotonic(), True
        while futures and ended.error is None:
            if signals:
                ended.interrupted = True
                return suspects
            before = len(ended.runs)
            with suppress(queue.Empty):
                number, future = came.get(timeout=LOOK_S)
                parts.pop(number, None)
                if self._hear(jobs, number, future, ended, suspects):
                    futures.pop(number)
                else:
                    future.add_done_callback(lambda future, number=number: came.put((number, future)))
            if self.client.status not in ("running", "connecting"):
                self._lost_scheduler()
            waiting = waiting and not parts and not ended.runs
            if waiting and time.monotonic() - begun > WAITING_S:
                waiting = False
                self._say(f"no worker of {self._where} has begun yet; the runs wait for one")
            under_way = {number: part for number, part in list(parts.items()) if number in futures}
            tell(len(ended.runs) + sum(under_way.values()), sorted(under_way), ended.runs[before:])
        return suspects

    def _hear(self, jobs: Jobs, number: int, future: Any, ended: Ended, suspects: dict[int, str]) -> bool:
        """Take what has come of a run; False if it has been lost since, and comes again."""
        from distributed import KilledWorker

        error, done = self._result(future)
        if done is not None:
            # The worker need not keep it.
            future.release()
            jobs.store.write_files(done.run, done.files)
            jobs.store.add(done.run)
            ended.runs.append(done.run)
            return True
        if error is None:
            return False
        if isinstance(error, KilledWorker):
            suspects[number] = (
                f"{jobs.named(number)}: {error.allowed_failures + 1} workers died running it, as they do when memory runs out"
            )
            return True
        if isinstance(error, RuntimeError) and UNREADABLE in str(error):
            error = OtherVersions(
                f"the Dask scheduler of {self._where} cannot read the runs: its environment has no Tidegate {__version__}; "
                "install the same there, or start it with `dask scheduler` of the environment that its workers have"
            )
        ended.error = ended.error or error
        return True

    def _result(self, future: Any) -> tuple[BaseException | None, _Done | None]:
        """The error or the result of a run that has ended; neither where Dask starts it again, as it does when the worker that had the result dies.

        A scheduler can go between any two lines here.
        """
        with self._scheduler(), suppress(TimeoutError):
            status = future.status
            if status == "error":
                return future.exception(timeout=FETCH_S), None
            if status == "finished":
                return None, future.result(timeout=FETCH_S)
            if status == "cancelled":
                self._lost_scheduler()
        return None, None

    @contextmanager
    def _scheduler(self) -> Iterator[None]:
        """Around what asks the scheduler only: whatever Dask raises where there is none any more is one error."""
        from distributed.client import ClosedClientError

        try:
            yield
        except (ClosedClientError, concurrent.futures.CancelledError, asyncio.CancelledError, OSError):
            self._lost_scheduler()

    def _lost_scheduler(self) -> NoReturn:
        raise NotCarriedOut(
            f"the Dask scheduler of {self._where} has gone, or has cancelled the runs"
        ) from None


@contextmanager
def opened(where: str, options: list[str], processes: int, say: Callable[[str], object]) -> Iterator[Cluster]:
    """The executor of `--cluster WHERE`: `local`, `slurm`, or the address of a scheduler. `say` hears where Dask's dashboard is."""
    try:
        import dask.utils
        import distributed  # noqa: F401
    except ImportError:
        raise TidegateError(cluster_options.EXTRA) from None
    _quiet()
    settings = cluster_options.read(where, options)
    connect_s = min(
        CONNECT_S, dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))
    )
    with (
        dask.config.set({"distributed.comm.timeouts.connect": f"{connect_s} s"}),
        _cluster(where, settings, processes) as at,
    ):
        client = _client(at, where, connect_s)
        try:
            _demand_same_dask(client, where)
            _demand_tidegate(client)
            if (dashboard := _dashboard(client.dashboard_link)) is not None:
                say(f"Dask's dashboard: {dashboard}")
            yield Cluster(client, where, say)
        finally:
            with suppress(Exception):
                client.close(timeout=AGAIN_S)


def _client(at: Any, where: str, connect_s: float) -> Any:
    """Dask's own client of a cluster, or of the scheduler at an address."""
    from distributed import Client
    from distributed.utils import LoopRunner

    try:
        if at == where:
            LoopRunner().run_sync(_reach, where, connect_s)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Client(at, timeout=connect_s, set_as_default=False)
    except TypeError:
        # Dask's word for a scheme of TLS without certificates.
        raise TidegateError(f"{where} needs a certificate and a key: set {KEY}") from None
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise TidegateError(
            f"no Dask scheduler answers at {where}: {error or type(error).__name__}; start one with `dask scheduler`, or correct the address"
        ) from None


async def _reach(where: str, connect_s: float) -> None:
    """Connect to a scheduler before there is a client. One that Dask cannot make says so much later, with a traceback."""
    from distributed.comm.core import connect
    from distributed.security import Security

    try:
        key = Security().get_connection_args("client")
    except OSError as error:
        raise TidegateError(f"{where} needs a certificate and a key: {error}; correct {KEY}") from None
    try:
        # Dask waits as long as it takes for a greeting, once somebody has taken the call.
        (await asyncio.wait_for(connect(where, timeout=connect_s, **key), connect_s)).abort()
    except TimeoutError:
        raise OSError(f"nothing that a scheduler says has come in {connect_s:g} s") from None
    except MemoryError:
        # Dask takes what another protocol says for a length.
        raise OSError("what answers there is no scheduler of Dask's") from None


def _dashboard(link: str | None) -> str | None:
    """The address of a scheduler's dashboard; `None` where it has none. A scheduler without one names its web server all the same, which
    answers that it has no such page.
    """
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, build_opener

    if not link:
        return None
    try:
        with build_opener(ProxyHandler({})).open(link, timeout=DASHBOARD_S):
            return link
    except HTTPError as error:
        return None if error.code == 404 else link
    except (OSError, ValueError):
        # A browser may reach it all the same, as through a tunnel.
        return link


def _demand_same_dask(client: Any, where: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client.get_versions(check=True)
    except ValueError as error:
        raise OtherVersions(
            f"the scheduler or workers of {where} have other versions of Dask's packages: {error}; install the same there"
        ) from None


def _demand_tidegate(client: Any) -> None:
    """Refuse workers that could not read a run: Dask ends those when they get one, and the run would wait for others."""
    for worker, answer in client.run(versions, on_error="return").items():
        # One that has gone since is no error.
        if isinstance(answer, Exception) and not isinstance(answer, OSError):
            raise OtherVersions(
                f"worker {worker} cannot run Tidegate {__version__}: {answer}; install the same there"
            )


def _quiet() -> None:
    """What ends a run is said once, by Tidegate."""
    roots = ("distributed", "dask_jobqueue", "tornado", "asyncio")
    for name in (*roots, *logging.root.manager.loggerDict):
        if name.partition(".")[0] in roots:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextmanager
def _cluster(where: str, settings: dict[str, Any], processes: int) -> Iterator[Any]:
    """What a client connects to; a cluster that was started here ends with it."""
    if where in ("local", "slurm"):
        _demand_certificates(where)
    if where == "local":
        cluster = _started("local", settings, lambda: _local(settings, processes))
    elif where == "slurm":
        cluster = _started("slurm", settings, lambda: _slurm(settings))
    elif "://" in where:
        rest = settings.keys() - {INSECURE}
        if rest:
            raise TidegateError(
                f"--cluster-option {min(rest)} is for local and slurm; {where} has its settings already"
            )
        _demand_private(where, settings.get(INSECURE) is True)
        yield where
        return
    else:
        raise TidegateError(
            f"--cluster {where}: give local, slurm, or a scheduler's address as tls://HOST:PORT"
        )
    try:
        yield cluster
    finally:
        with suppress(Exception):
            cluster.close(timeout=CONNECT_S)


def _demand_certificates(where: str) -> None:
    """Refuse to start a cluster where Dask cannot make its key and certificate."""
    try:
        from cryptography import x509  # noqa: F401
    except ImportError:
        raise TidegateError(
            f"--cluster {where} makes a TLS key of its own, which needs the package cryptography: "
            'pip install "tidegate[cluster]"'
        ) from None


def _demand_private(where: str, insecure: bool) -> None:
    """Refuse a scheduler that other machines reach without TLS, unless that is meant."""
    try:
        parts = urlsplit(where)
        private = parts.scheme in ENCRYPTED or addresses.is_loopback(parts.hostname or "")
    except ValueError:
        # It is no address; should it be one for Dask, it is not known to be of this machine.
        private = False
    if not private and not insecure:
        raise TidegateError(
            f"--cluster {where}: without TLS, anyone who reaches this scheduler or its workers, or the network between, runs code "
            "as you; start them with TLS and give tls://HOST:PORT, or say that this is meant: --cluster-option insecure=true"
        )


def _started(where: str, settings: dict[str, Any], start: Callable[[], Any]) -> Any:
    try:
        with warnings.catch_warnings():
            # The port of the dashboard is another one where it is taken.
            warnings.simplefilter("ignore")
            return start()
    except TidegateError:
        raise
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        given = " ".join(f"{name}={value}" for name, value in settings.items()) or "none"
        raise TidegateError(
            f"--cluster {where} could not be started (options: {given}): {_chain(error)}"
        ) from None


def _chain(error: BaseException | None) -> str:
    """An error with its causes."""
    said = []
    while error is not None:
        said.append(str(error).rstrip(".") or type(error).__name__)
        error = error.__cause__
    return ": ".join(said)


def _local(settings: dict[str, Any], processes: int) -> Any:
    from distributed import LocalCluster

    given = {
        "n_workers": processes,
        "threads_per_worker": 1,
        "preload": ["tidegate.experiments.executors.worker"],
        "dashboard_address": "127.0.0.1:8787",
        **settings,
    }
    return LocalCluster(processes=True, silence_logs=logging.CRITICAL + 1, **given, security=True)


def _slurm(settings: dict[str, Any]) -> Any:
    import dask

    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise TidegateError(cluster_options.EXTRA) from None
    if shutil.which("sbatch") is None:
        raise TidegateError(
            "--cluster slurm: there is no sbatch here; run it on a machine that submits to SLURM"
        )
    given = dict(settings)
    jobs = given.pop("jobs", SLURM_JOBS)
    for name, default in (("cores", 1), ("processes", 1), ("memory", "2GB")):
        if dask.config.get(f"jobqueue.slurm.{name}", None) is None:
            given.setdefault(name, default)
    given.setdefault("python", sys.executable)
    # Jobs find the key in files of the folder `shared_temp_directory`, or else of this one, which only the user can read.
    cluster = SLURMCluster(**given, security=True)
    try:
        _demand_accepted(cluster.job_script())
        cluster.scale(jobs=jobs)
    except BaseException:
        cluster.close(timeout=CONNECT_S)
        raise
    return cluster


def _demand_accepted(script: str) -> None:
    """Ask SLURM whether it would take such a job: Dask does not say where it does not."""
    command = ["sbatch", "--test-only"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"SLURM does not accept the job: {' '.join(done.stderr.split())}")
