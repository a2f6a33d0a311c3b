"""P4 exercises: networks that a `topology.json` describes, with `sN-runtime.json` for their switches, run live.

topology.py   reads a topology in the form of the public P4 tutorials
runtime.py    reads what a switch's tables are to hold, and writes it there
programs.py   finds the P4 program of a switch
running.py    the network: hosts in namespaces, a P4 switch for each that is named
commands.py   what one types at the prompt
prompt.py     the prompt
"""
