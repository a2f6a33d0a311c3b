"""One run after the other, in this process."""

from __future__ import annotations

import signal

from tidegate.backends import common
from tidegate.experiments.jobs import Ended, Jobs, Tell, written
from tidegate.experiments.registry import find
from tidegate.lab.death import handled, interrupting


class Here:
    """Runs in this process: live ones, which would take time from each other, and those of one processor."""

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        """Run all; fewer if something ends it."""
        with handled(interrupting(), (signal.SIGTERM, signal.SIGHUP)):
            _run(jobs, tell, ended)


def _run(jobs: Jobs, tell: Tell, ended: Ended) -> None:
    """Each of a case of its own, as a run leaves its traces in controllers and agents."""
    of = f"{find(jobs.recipe.name).name} ({jobs.backend})"
    for number, (index, seed) in enumerate(jobs.jobs):

        def part(done: int, total: int, before: int = number) -> None:
            tell(before + done / total, [before], [])

        try:
            with common.named(f"{of}, {jobs.named(number)}"):
                ended.runs.append(
                    written(
                        jobs.store,
                        part,
                        jobs.recipe.case(index),
                        seed,
                        jobs.backend,
                        jobs.live_profile,
                        jobs.threads,
                    )
                )
            jobs.store.add(ended.runs[-1])
            if ended.runs[-1].rows is None:
                ended.interrupted = True
                return
            tell(len(ended.runs), [], ended.runs[-1:])
        except KeyboardInterrupt:
            # It came while the case was being set up or taken down.
            ended.interrupted = True
            return
        except Exception as error:
            ended.error = error
            return
