"""The experiments of the meter: the paper's Figs. 9 to 22, and ours. Each file is found automatically."""
