"""Findings, and what works by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Of what was looked for."""

    WORKS = "works"
    MISSING = "missing"
    UNKNOWN = "not tried"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for."""

    group: str
    name: str
    state: State
    said: str = ""
    """What there is, or what was said against it."""
    cure: str = ""
    """How to have it, in one line."""

    @property
    def works(self) -> bool:
        """Whether it is there."""
        return self.state is State.WORKS


@dataclass(frozen=True)
class Use:
    """Something that people do with Tidegate, and the findings that it needs."""

    name: str
    needs: tuple[str, ...]


USES = (
    Use("compile, test and replay P4; simulate", ("P4 engine",)),
    Use("live networks (--backend live)", ("P4 engine", "privileges", "lab", "iperf3")),
    Use("tidegate switch", ("P4 engine", "privileges", "lab")),
    Use("tidegate lab (P4 exercises)", ("P4 engine", "privileges", "lab", "ip", "nsenter", "unshare")),
    Use("tidegate agent (pacing of this host)", ("privileges of the agent", "BPF", "clang", "cgroup v2")),
    Use("jobs of SLURM (--cluster slurm)", ("P4 engine", "sbatch", "SLURM")),
    Use("Prague and DCTCP between real hosts", ("privileges", "lab", "iperf3", "prague", "dctcp")),
)


def examine() -> list[Finding]:
    """Everything that is looked for, in the order in which it is shown."""
    from tidegate.doctor import kernel, live, programs

    return [
        *programs.engine(),
        *kernel.machine(),
        *kernel.privileges(),
        *kernel.features(),
        *kernel.qdiscs(),
        *kernel.congestion_controls(),
        *kernel.settings(),
        *live.speed(),
        *programs.tools(),
        *programs.slurm(),
        *programs.packages(),
        *programs.modules(),
    ]


def uses(findings: list[Finding]) -> Iterator[tuple[Use, list[Finding]]]:
    """Each use, with the findings that stand against it."""
    by_name = {one.name: one for one in findings}
    for use in USES:
        yield use, [by_name[name] for name in use.needs if not by_name[name].works]
