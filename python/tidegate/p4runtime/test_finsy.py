"""finsy, as it is, does everything that it can do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import finsy as fy
import pytest
from finsy.p4entity import P4ValueSetMember

from tidegate import p4 as programs
from tidegate.control import operations as op
from tidegate.p4runtime import Server
from tidegate.p4runtime.conftest import LOOPBACK, TEXT, Simulated, frame, lldp

PATIENCE_S = 20


async def first(stream: Any) -> Any:
    """The first of what comes by a stream."""
    async with asyncio.timeout(PATIENCE_S):
        async for item in stream:
            return item


async def seen(switch: fy.Switch, entity: Any) -> list[Any]:
    found: Any = switch.read(entity)
    return [item async for item in found]


async def tables(switch: fy.Switch) -> None:
    mark = fy.P4TableAction("mark", value=42)
    entries = [
        fy.P4TableEntry(
            "exact_table", match=fy.P4TableMatch(to=1), action=fy.P4TableAction("forward", port=2)
        ),
        fy.P4TableEntry("lpm_table", match=fy.P4TableMatch(c=(0x0A00_0000, 8)), action=mark),
        fy.P4TableEntry(
            "ternary_table", match=fy.P4TableMatch(b=(0x100, 0xFF00), c=7), action=mark, priority=10
        ),
        fy.P4TableEntry("range_table", match=fy.P4TableMatch(b=(5, 256)), action=mark, priority=11),
        fy.P4TableEntry("optional_table", match=fy.P4TableMatch(kind=9), action=mark, priority=12),
        fy.P4TableEntry(
            "vrfs", match=fy.P4TableMatch(vrf="red"), action=fy.P4TableAction("in_vrf", vrf="blue")
        ),
    ]
    await switch.insert(entries)
    for entry in entries:
        assert await seen(switch, fy.P4TableEntry(entry.table_id)) == [entry]
    with pytest.raises(fy.P4ClientError) as caught:
        await switch.insert(entries[:2])
    assert [error.canonical_code for error in caught.value.details.values()] == [6, 6]
    await switch.modify(
        [fy.P4TableEntry("lpm_table", match=entries[1].match, action=fy.P4TableAction("mark", value=43))]
    )
    await switch.delete(entries)
    assert await seen(switch, fy.P4TableEntry("lpm_table")) == []
    default = fy.P4TableEntry("learning", action=fy.P4TableAction("learn"), is_default_action=True)
    await switch.modify([default])
    assert (await seen(switch, fy.P4TableEntry("learning", is_default_action=True)))[
        0
    ].action == default.action
    const = await seen(switch, fy.P4TableEntry("const_table"))
    assert [(entry.priority, entry.is_const) for entry in const] == [(2, True), (1, True)]


async def direct(switch: fy.Switch) -> None:
    entry = fy.P4TableEntry(
        "exact_table",
        match=fy.P4TableMatch(to=2),
        action=fy.P4TableAction("drop"),
        counter_data=fy.P4CounterData(packet_count=5, byte_count=50),
        meter_config=fy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4),
        idle_timeout_ns=20_000_000,
    )
    waiting = asyncio.create_task(first(switch.read_idle_timeouts()))
    await asyncio.sleep(0)
    await switch.insert([entry])
    key = fy.P4TableEntry("exact_table", match=entry.match)
    (counter,) = await seen(switch, fy.P4DirectCounterEntry("exact_hits", table_entry=key))
    assert counter.data == entry.counter_data
    (meter,) = await seen(switch, fy.P4DirectMeterEntry(table_entry=key))
    assert meter.config == entry.meter_config
    await switch.modify([fy.P4DirectCounterEntry("exact_hits", table_entry=key, data=fy.P4CounterData())])
    asked = fy.P4TableEntry(
        "exact_table", match=entry.match, counter_data=fy.P4CounterData(), time_since_last_hit=0
    )
    (read,) = await seen(switch, asked)
    assert read.counter_data == fy.P4CounterData()
    assert read.time_since_last_hit is not None
    notice = await waiting
    assert notice.table_entry[0].match == entry.match
    await switch.delete([entry])


async def profiles(switch: fy.Switch) -> None:
    members = [
        fy.P4ActionProfileMember("choices", member_id=i, action=fy.P4TableAction("forward", port=i))
        for i in (1, 2)
    ]
    await switch.insert(members)
    assert await seen(switch, fy.P4ActionProfileMember("choices")) == members
    shares = [fy.P4Member(1, weight=1), fy.P4Member(2, weight=3)]
    group = fy.P4ActionProfileGroup("choices", group_id=1, max_size=8, members=shares)
    await switch.insert([group])
    assert await seen(switch, fy.P4ActionProfileGroup("choices")) == [group]
    match = fy.P4TableMatch(a=1)
    await switch.insert([fy.P4TableEntry("selected", match=match, action=fy.P4IndirectAction(group_id=1))])
    await switch.modify([fy.P4TableEntry("selected", match=match, action=fy.P4IndirectAction(member_id=2))])
    await switch.delete([fy.P4TableEntry("selected", match=match)])
    await switch.delete([group])
    await switch.delete(members)
    shot = fy.P4IndirectAction(
        [(1, fy.P4TableAction("forward", port=1)), (2, fy.P4TableAction("forward", port=2))]
    )
    await switch.insert([fy.P4TableEntry("selected", match=match, action=shot)])
    (read,) = await seen(switch, fy.P4TableEntry("selected"))
    assert read.action == shot
    await switch.delete([read])


async def arrays(switch: fy.Switch) -> None:
    counter = fy.P4CounterEntry("packets", index=1, data=fy.P4CounterData(packet_count=7, byte_count=9))
    meter = fy.P4MeterEntry("rates", index=7, config=fy.P4MeterConfig(cir=10, cburst=20, pir=30, pburst=40))
    register = fy.P4RegisterEntry("cells", index=5, data=77)
    await switch.modify([counter, meter, register])
    assert await seen(switch, fy.P4CounterEntry("packets", index=1)) == [counter]
    assert await seen(switch, fy.P4MeterEntry("rates", index=7)) == [meter]
    assert await seen(switch, fy.P4RegisterEntry("cells", index=5)) == [register]
    await switch.modify([fy.P4RegisterEntry("cells", data=3)])
    cells = await seen(switch, fy.P4RegisterEntry("cells"))
    assert (len(cells), cells[400].index, cells[400].data) == (65_536, 400, 3)
    assert len(await seen(switch, fy.P4CounterEntry("packets"))) == 8
    with pytest.raises(fy.P4ClientError) as caught:
        await switch.modify([fy.P4RegisterEntry("cells", index=65_536, data=3)])
    assert [error.canonical_code for error in caught.value.details.values()] == [11]


async def replication(switch: fy.Switch) -> None:
    group = fy.P4MulticastGroupEntry(5, replicas=[(1, 1), (2, 1)])
    session = fy.P4CloneSessionEntry(9, replicas=[2], packet_length_bytes=100, class_of_service=1)
    await switch.insert([group, session])
    (read,) = await seen(switch, fy.P4MulticastGroupEntry(5))
    assert [(r.port, r.instance) for r in read.replicas] == [(1, 1), (2, 1)]
    (clone,) = await seen(switch, fy.P4CloneSessionEntry())
    assert (clone.packet_length_bytes, clone.class_of_service) == (100, 1)
    await switch.modify([fy.P4MulticastGroupEntry(5, replicas=[3])])
    await switch.delete([group, session])


async def value_sets(switch: fy.Switch) -> None:
    entry = fy.P4ValueSetEntry("probes", members=[P4ValueSetMember(0x9998)])
    await switch.modify([entry])
    assert await seen(switch, fy.P4ValueSetEntry("probes", members=[])) == [entry]


async def digests(switch: fy.Switch) -> None:
    waiting = asyncio.create_task(first(switch.read_digests("seen_t")))
    await asyncio.sleep(0)
    entry = fy.P4DigestEntry("seen_t", max_list_size=1, ack_timeout_ns=10**9)
    await switch.insert([entry])
    assert await seen(switch, fy.P4DigestEntry("seen_t")) == [entry]
    message = await waiting
    assert message.data[0]["from"] == 2
    again = asyncio.create_task(first(switch.read_digests("seen_t")))
    await switch.write([message.ack()])
    assert (await again).list_id > message.list_id
    await switch.delete([entry])


async def packets(switch: fy.Switch) -> None:
    packet = await first(switch.read_packets(eth_types=[0x88CC]))
    assert packet["port"] == 3
    await switch.write([fy.P4PacketOut(bytes(60), port=2, pad=0)])


async def use(address: str, p4info: Path, program: Path) -> None:
    options = fy.SwitchOptions(p4info=p4info, p4blob=program, p4force=True)
    async with asyncio.timeout(100), fy.Switch("s", address, options) as switch:
        assert switch.is_primary
        for part in (tables, direct, profiles, arrays, replication, value_sets, digests, packets):
            await part(switch)
        # A second controller with a lower election id is a backup, and primary when the first is gone.
        lower = fy.Switch("t", address, fy.SwitchOptions(p4info=p4info, initial_election_id=5))
        async with lower:
            assert not lower.is_primary


@pytest.mark.slow
def test_finsy(everything: programs.Program, tmp_path: Path) -> None:
    (tmp_path / "p4info.txt").write_text(everything.p4info)
    (tmp_path / "everything.p4").write_text(TEXT)
    translations = {"tidegate/vrf": {"red": 1, "blue": 2}}
    with (
        Simulated(everything) as simulated,
        Server(
            simulated.api,
            everything,
            address=LOOPBACK,
            lock=simulated.lock,
            poll_every=0.005,
            translations=translations,
        ) as server,
    ):
        with simulated.lock:
            simulated.surface.act(op.GeneratorSet(1, (3, lldp(), 20_000_000_000)))
            simulated.surface.act(op.GeneratorSet(2, (3, frame(to=77), 20_000_000_000)))
        asyncio.run(use(server.address, tmp_path / "p4info.txt", tmp_path / "everything.p4"))
        with simulated.lock:
            assert simulated.surface.act(op.StatisticsRead())["packet_outs"] == 1
