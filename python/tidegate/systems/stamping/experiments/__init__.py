"""The paper's experiments, and ours: a file each."""
