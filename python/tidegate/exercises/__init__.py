"""P4 exercises: networks that a `topology.json` or `p4app.json` describes, with files for their switches, run live.

files.py      reads a topology, in one of its forms:
tutorials.py  that of the public P4 tutorials
p4utils.py    that of p4-utils
topology.py   what a topology is made of, and the checks that its forms share
runtime.py    reads what a switch's tables are to hold, and writes it there
programs.py   finds the P4 program of a switch
running.py    the network: hosts in namespaces, a P4 switch for each that is named
commands.py   what one types at the prompt
prompt.py     the prompt
"""
