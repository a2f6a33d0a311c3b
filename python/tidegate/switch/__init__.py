"""A P4 switch between real interfaces: what `tidegate switch` runs.

`running.LiveSwitch` is the switch, `ports` reads what the command line says of its ports, `metrics` and `watch` show what it
counts, `command` is the command.
"""
