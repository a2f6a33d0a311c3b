"""Flow separation: a passive monitor, classes by round-trip time, and fair shares on a router that cannot be programmed."""
