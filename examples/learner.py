"""The controller of `p4/learning_switch/learning_switch.p4`: it learns from digests at which port each address is.

It runs on captures, in the simulator and on interfaces:

    tidegate replay learning_switch.p4 --in 0=left.pcap --in 1=right.pcap --out replayed --controller learner.py
    tidegate switch learning_switch.p4 -i 0@eth1 -i 1@eth2 --controller learner.py
    net.control(Learner())
"""

from tidegate.control import Controller, Digest, SwitchApi


class Learner(Controller):
    """Fills in the tables of sources and destinations, and records how many addresses are known."""

    period = "100 ms"

    def __init__(self) -> None:
        self.known: dict[str, set[int | None]] = {}

    def start(self, switch: SwitchApi) -> None:
        """Set up flooding, and read which addresses are known."""
        # Frames to unknown addresses are flooded to all ports.
        switch.multicast_set(1, range(len(switch.ports)))
        # After a restart of the controller the tables still have their entries.
        self.known[switch.name] = {entry.match[0].value for entry in switch.table_entries("source")}

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        """Learn an address."""
        source, port = digest.fields["src"], digest.fields["port"]
        if source in self.known[switch.name]:
            # Several packets of a new address arrived before its entries were added.
            return
        self.known[switch.name].add(source)
        switch.table_add("source", [source], "NoAction")
        switch.table_add("destination", [source], "forward", [port])
        switch.note(f"learned_{source:012x}_at_port", port)

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Record how many addresses are known."""
        switch.note("addresses", len(self.known[switch.name]))


controllers = [Learner()]
