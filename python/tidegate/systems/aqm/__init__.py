"""PI2 and DualPI2: low latency for scalable congestion controls, and fair shares beside classic ones."""
