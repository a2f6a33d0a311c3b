"""The controller of `p4/learning_switch/learning_switch.p4`: it learns from digests where addresses are.

It runs on captures, in the simulator and on interfaces:

    tidegate replay learning_switch.p4 --in 0=left.pcap --in 1=right.pcap --out replayed --controller learner.py
    tidegate switch learning_switch.p4 -i 0@eth1 -i 1@eth2 --controller learner.py
    net.control(Learner())
"""

from tidegate.control import Controller, Digest, SwitchApi


class Learner(Controller):
    """Fills in the tables of sources and destinations, and notes how many addresses are known."""

    period = "100 ms"

    def __init__(self) -> None:
        self.known: dict[str, set[int | None]] = {}

    def start(self, switch: SwitchApi) -> None:
        """Let frames go everywhere at first, and look what is known."""
        # Frames for addresses that are not known go to all ports.
        switch.multicast_set(1, range(len(switch.ports)))
        # After a restart the tables are as they were.
        self.known[switch.name] = {entry.match[0].value for entry in switch.table_entries("source")}

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        """Learn an address."""
        source, port = digest.fields["src"], digest.fields["port"]
        if source in self.known[switch.name]:
            # More packets of a new address came before its entries were there.
            return
        self.known[switch.name].add(source)
        switch.table_add("source", [source], "NoAction")
        switch.table_add("destination", [source], "forward", [port])
        switch.note(f"learned_{source:012x}_at_port", port)

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note how many are known."""
        switch.note("addresses", len(self.known[switch.name]))


controllers = [Learner()]
