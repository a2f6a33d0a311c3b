"""What test_shell.py has p4runtime-shell do, in its own environment: shell_client.py ADDRESS P4INFO PROGRAM.

The shell is used as it is. Registers and value sets, for which it has no words of its own, go by its files of requests.
"""

import sys
import tempfile
import time

import grpc
import p4runtime_sh.shell as sh
from p4.v1 import p4runtime_pb2
from p4runtime_sh.p4runtime import P4RuntimeWriteException


def refused(call, code):
    try:
        call()
    except P4RuntimeWriteException as error:
        found = [e.canonical_code for _, e in error.errors]
        assert found == [code], found
        return
    raise AssertionError("it was not refused")


def rows(entity):
    return list(entity.read())


def tables():
    key = {
        "exact_table": {"to": "00:00:00:00:00:01"},
        "lpm_table": {"c": "10.0.0.0/8"},
        "ternary_table": {"b": "0x100&&&0xff00", "c": "7"},
        "range_table": {"b": "5..256"},
        "optional_table": {"kind": "9"},
    }
    for name, match in key.items():
        entry = sh.TableEntry(name)(action="forward" if name == "exact_table" else "mark")
        entry.match.set(**match)
        if name == "exact_table":
            entry.action["port"] = "2"
        else:
            entry.action["value"] = "42"
        if name in ("ternary_table", "range_table", "optional_table"):
            entry.priority = 10
        entry.metadata = b"mine"
        entry.insert()
        refused(entry.insert, 6)
        (read,) = rows(sh.TableEntry(name))
        assert str(read.match) == str(entry.match), (name, read.match, entry.match)
        assert read.metadata == b"mine"
        if name != "exact_table":
            entry.action["value"] = "43"
            entry.modify()
            assert rows(sh.TableEntry(name))[0].action.msg().params[0].value == b"\x2b"
        entry.delete()
        refused(entry.delete, 5)
        assert rows(sh.TableEntry(name)) == []
    default = sh.TableEntry("exact_table")(is_default=True, action="forward")
    default.action["port"] = "3"
    default.modify()
    refused(default.insert, 3)
    const = rows(sh.TableEntry("const_table"))
    assert [entry.priority for entry in const] == [2, 1]


def direct():
    entry = sh.TableEntry("exact_table")(action="drop")
    entry.match["to"] = "00:00:00:00:00:02"
    entry.counter_data.packet_count = 5
    entry.meter_config.cir = 1
    entry.meter_config.cburst = 2
    entry.meter_config.pir = 3
    entry.meter_config.pburst = 4
    entry.idle_timeout_ns = 20_000_000
    entry.insert()
    counter = sh.DirectCounterEntry("exact_hits")
    counter.table_entry.match["to"] = "00:00:00:00:00:02"
    (read,) = rows(counter)
    assert read.data.packet_count == 5
    counter.data.packet_count = 9
    counter.modify()
    assert rows(counter)[0].data.packet_count == 9
    meter = sh.DirectMeterEntry("exact_rates")
    meter.table_entry.match["to"] = "00:00:00:00:00:02"
    assert rows(meter)[0].config.pburst == 4
    # Told of when nothing has hit it.
    notice = sh.client.get_stream_packet("idle_timeout_notification", timeout=20)
    assert notice.idle_timeout_notification.table_entry[0].match[0].exact.value == b"\x02"
    entry.delete()


def profiles():
    for number in (1, 2):
        member = sh.ActionProfileMember("choices")(action="forward", member_id=number)
        member.action["port"] = str(number)
        member.insert()
    refused(member.insert, 6)
    assert len(rows(sh.ActionProfileMember("choices"))) == 2
    group = sh.ActionProfileGroup("choices")(group_id=1, max_size=8)
    group.add(1).add(2, weight=3)
    group.insert()
    (read,) = rows(sh.ActionProfileGroup("choices"))
    assert [m.weight for m in read.members] == [1, 3]
    entry = sh.TableEntry("selected")
    entry.match["a"] = "1"
    entry.group_id = 1
    entry.insert()
    refused(group.delete, 9)
    entry.member_id = 2
    entry.modify()
    assert rows(sh.TableEntry("selected"))[0].member_id == 2
    entry.delete()
    group.delete()
    for number in (1, 2):
        sh.ActionProfileMember("choices")(member_id=number).delete()
    shot = sh.Oneshot("selected")
    for port in (1, 2):
        action = sh.Action("forward")
        action["port"] = str(port)
        shot.add(action, weight=port)
    entry = sh.TableEntry("selected")
    entry.match["a"] = "1"
    entry.oneshot = shot
    entry.insert()
    (read,) = rows(sh.TableEntry("selected"))
    assert [action.weight for action in read.oneshot.msg().action_profile_actions] == [1, 2]
    entry.delete()


def arrays():
    counter = sh.CounterEntry("packets")(index=1)
    counter.data.packet_count = 7
    counter.data.byte_count = 700
    counter.modify()
    (read,) = rows(counter)
    assert (read.data.packet_count, read.data.byte_count) == (7, 700)
    assert len(rows(sh.CounterEntry("packets"))) == 8
    meter = sh.MeterEntry("rates")(index=7)
    meter.config.cir, meter.config.cburst, meter.config.pir, meter.config.pburst = 10, 20, 30, 40
    meter.modify()
    assert rows(meter)[0].config.pir == 30
    assert len(rows(sh.MeterEntry("rates"))) == 8
    counter.index = 8
    refused(counter.modify, 11)


def replication():
    group = sh.MulticastGroupEntry(5).add(1, 1).add(2, 1)
    group.insert()
    (read,) = rows(sh.MulticastGroupEntry(5))
    assert [(r.port, r.instance) for r in read.replicas] == [(1, 1), (2, 1)]
    group.add(3, 1)
    group.modify()
    assert len(rows(sh.MulticastGroupEntry(0))[0].replicas) == 3
    group.delete()
    session = sh.CloneSessionEntry(9).add(2, 1)
    session.packet_length_bytes = 100
    session.insert()
    assert rows(sh.CloneSessionEntry(9))[0].packet_length_bytes == 100
    session.delete()
    refused(session.delete, 5)


def from_file(text):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        sh.Write(file.name)


def registers_and_value_sets():
    info = sh.context.p4info
    cells = next(r for r in info.registers if r.preamble.name == "Work.cells").preamble.id
    probes = next(v for v in info.value_sets if v.preamble.name == "Parse.probes").preamble.id
    update = "updates {{ type: MODIFY entity {{ {} }} }}\n"
    cell = f'register_entry {{ register_id: {cells} index {{ index: 400 }} data {{ bitstring: "\\007" }} }}'
    member = 'members { match { field_id: 1 exact { value: "\\x99\\x98" } } }'
    from_file(update.format(cell) + update.format(f"value_set_entry {{ value_set_id: {probes} {member} }}"))
    entity = p4runtime_pb2.Entity()
    entity.register_entry.register_id = cells
    found = {
        e.register_entry.index.index: e.register_entry.data.bitstring
        for a in sh.client.read_one(entity)
        for e in a.entities
    }
    assert len(found) == 65536
    assert found[400] == b"\x07"
    entity = p4runtime_pb2.Entity()
    entity.value_set_entry.value_set_id = probes
    (answer,) = sh.client.read_one(entity)
    assert answer.entities[0].value_set_entry.members[0].match[0].exact.value == b"\x99\x98"


def digests():
    default = sh.TableEntry("learning")(is_default=True, action="learn")
    default.modify()
    entry = sh.DigestEntry("seen_t")
    entry.max_list_size, entry.ack_timeout_ns = 1, 1_000_000_000
    entry.insert()
    assert rows(sh.DigestEntry("seen_t"))[0].max_list_size == 1
    message = sh.client.get_stream_packet("digest", timeout=20).digest
    values = [int.from_bytes(m.bitstring, "big") for m in message.data[0].struct.members]
    assert values == [2, 3], values
    ack = p4runtime_pb2.StreamMessageRequest()
    ack.digest_ack.digest_id, ack.digest_ack.list_id = message.digest_id, message.list_id
    sh.client.stream_out_q.put(ack)
    # Acknowledged, it comes again.
    assert sh.client.get_stream_packet("digest", timeout=20) is not None
    entry.delete()


def packets():
    message = sh.client.get_stream_packet("packet", timeout=20).packet
    assert message.payload[12:14] == b"\x88\xcc"
    assert message.metadata[0].value == b"\x03"
    sh.PacketOut(bytes(60), port="2", pad="0").send()


def elections(address):
    backup = sh.P4RuntimeClient(1, address, (0, 1))
    try:
        update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.DELETE)
        update.entity.packet_replication_engine_entry.clone_session_entry.session_id = 1
        request = p4runtime_pb2.WriteRequest(device_id=1, updates=[update])
        request.election_id.low = 1
        code = None
        try:
            backup.stub.Write(request)
        except grpc.RpcError as error:
            code = error.code()
        assert code is grpc.StatusCode.PERMISSION_DENIED, code
    finally:
        backup.tear_down()


def main():
    address, p4info, program = sys.argv[1:]
    sh.setup(device_id=1, grpc_addr=address, election_id=(0, 5), config=sh.FwdPipeConfig(p4info, program))
    try:
        assert sh.APIVersion().count(".") == 2
        for part in (
            tables,
            direct,
            profiles,
            arrays,
            replication,
            registers_and_value_sets,
            digests,
            packets,
        ):
            began = time.monotonic()
            part()
            print(f"{part.__name__}: {time.monotonic() - began:.2f} s")
        elections(address)
    finally:
        sh.teardown()
    print("done")


if __name__ == "__main__":
    main()
