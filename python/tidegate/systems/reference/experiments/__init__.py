"""Networks on which other simulators and a real kernel were measured. Each file is found automatically."""
