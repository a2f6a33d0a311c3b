"""Features of simulated hosts that Linux lacks, as BPF programs: congestion controls, and ECT(1) on their packets."""
