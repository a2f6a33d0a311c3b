"""What real Linux hosts lack of what simulated ones have, as BPF programs: congestion controls, and ECT(1) on their packets."""
