"""`tidegate agent`: the host's part of pacing, as a service of a Linux host."""
