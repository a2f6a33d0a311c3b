"""What hosts run beside their TCP.

`agents` and `shims` are host agents, in both backends; `real_agents` runs them on real hosts. The rest is features of
simulated hosts that Linux lacks, as BPF programs: congestion controls, and ECT(1) on their packets.
"""
