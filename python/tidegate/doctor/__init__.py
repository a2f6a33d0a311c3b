"""What of Tidegate works on this machine, and how to have the rest: `tidegate doctor`.

    report.py     a finding, and what all of them say together
    kernel.py     the kernel: namespaces, AF_XDP, BPF, qdiscs, congestion controls, settings
    live.py       what makes live networks fast
    programs.py   programs and Python packages

Whatever can be tried is tried, in namespaces that go away with the trial; nothing is guessed from versions.
"""

from tidegate.doctor.report import Finding, State, examine

__all__ = ["Finding", "State", "examine"]
