"""Benchmark of the P4Runtime server: `python -m tidegate.p4runtime.bench`. The client runs in its own process."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

from tidegate import p4 as programs
from tidegate.p4runtime.connection import Connection
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.server import Server

PROGRAM = Path(__file__).with_name("everything.p4")
ENTRIES, BATCH = 20_000, 500
CELLS = 65_536


def batches(kind: int, table: int, action: int) -> list[object]:
    """Requests that insert or delete entries."""
    requests = []
    for first in range(0, ENTRIES, BATCH):
        request = p4.WriteRequest(device_id=1, election_id={"low": 1})
        for key in range(first, first + BATCH):
            entry = request.updates.add(type=kind).entity.table_entry
            entry.table_id = table
            entry.match.add(field_id=1).exact.value = (0x0200_0000_0000 + key).to_bytes(6)
            if kind == p4.Update.INSERT:
                entry.action.action.action_id = action
                entry.action.action.params.add(param_id=1, value=b"\x01")
        requests.append(request)
    return requests


def client(address: str) -> None:
    """Write and read, and print how long it took."""
    with Connection(address) as connection:
        connection.next("arbitration")
        info = connection.get_config().p4info
        ids = {
            item.preamble.alias: item.preamble.id for item in (*info.tables, *info.actions, *info.registers)
        }
        for kind in ("INSERT", "DELETE"):
            number = p4.Update.Type.Value(kind)
            requests = batches(number, ids["exact_table"], ids["forward"])
            began = time.perf_counter()
            for request in requests:
                connection.call("Write", request)
            rate = ENTRIES / (time.perf_counter() - began)
            print(f"{kind.lower()}s in batches of {BATCH}: {rate:.0f} a second (wanted: 5000)")
        began = time.perf_counter()
        cells = connection.read(p4.Entity(register_entry={"register_id": ids["cells"]}))
        took = time.perf_counter() - began
        print(f"read of {len(cells)} registers: {took:.2f} s (wanted: 1 s)")


def main() -> None:
    """Measure."""
    program = programs.compile(PROGRAM)
    with Server(program.pipeline(), program, address="127.0.0.1:0") as server:
        process = multiprocessing.get_context("spawn").Process(target=client, args=(server.address,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
