"""The experiments of PI2 and DualPI2: the paper's Figs. 4 to 8 (`phases`, `static_mixes`), and ours. Each file is found automatically."""
