"""The TCP-friendly meter (Wang, Hu, Lin 2020) and what comes after it."""
