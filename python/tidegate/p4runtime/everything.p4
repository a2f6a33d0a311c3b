// One of each object that P4Runtime knows, for the tests of the server.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("tidegate/vrf", string) type bit<10> vrf_t;

header ethernet_t { bit<48> to; bit<48> from; bit<16> type; }
header probe_t { bit<8> kind; bit<8> a; bit<16> b; bit<32> c; }

@controller_header("packet_in") header packet_in_t { bit<9> port; bit<7> pad; }
@controller_header("packet_out") header packet_out_t { bit<9> port; bit<7> pad; }

struct headers_t { packet_in_t packet_in; packet_out_t packet_out; ethernet_t ethernet; probe_t probe; }
struct metadata_t { vrf_t vrf; bit<2> colour; bit<2> direct_colour; }
struct seen_t { bit<48> from; bit<9> port; }

const bit<9> CPU = 100;

parser Parse(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    value_set<bit<16>>(4) probes;
    state start {
        transition select(s.ingress_port) { CPU: from_controller; default: ethernet; }
    }
    state from_controller { p.extract(h.packet_out); transition ethernet; }
    state ethernet {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { 0x88b5: probe; probes: probe; default: accept; }
    }
    state probe { p.extract(h.probe); transition accept; }
}

control Work(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    register<bit<48>>(65536) cells;
    register<int<8>>(4) signed_cells;
    counter(8, CounterType.packets_and_bytes) packets;
    meter(8, MeterType.bytes) rates;
    direct_counter(CounterType.packets_and_bytes) exact_hits;
    direct_meter<bit<2>>(MeterType.packets) exact_rates;
    @max_group_size(8) action_selector(HashAlgorithm.crc16, 32w16, 32w8) choices;
    action_profile(32w8) hops;

    action forward(bit<9> port) { s.egress_spec = port; }
    action to_group(bit<16> group) { s.mcast_grp = group; }
    action clone_to(bit<9> port, bit<32> session) { s.egress_spec = port; clone(CloneType.I2E, session); }
    action drop() { mark_to_drop(s); }
    action mark(bit<8> value) { h.probe.a = value; }
    action learn() { digest<seen_t>(1, { h.ethernet.from, s.ingress_port }); }
    action in_vrf(vrf_t vrf) { m.vrf = vrf; }
    action only_default() { }
    action only_entries() { exact_rates.read(m.direct_colour); }

    table exact_table {
        key = { h.ethernet.to: exact @name("to"); }
        actions = { forward; to_group; clone_to; drop; @defaultonly only_default; @tableonly only_entries; }
        default_action = drop();
        counters = exact_hits;
        meters = exact_rates;
        support_timeout = true;
        size = 70000;
    }
    table lpm_table { key = { h.probe.c: lpm @name("c"); } actions = { mark; NoAction; } size = 64; }
    table ternary_table {
        key = { h.probe.b: ternary @name("b"); h.probe.c: exact @name("c"); }
        actions = { mark; NoAction; }
        size = 64;
    }
    table range_table { key = { h.probe.b: range @name("b"); } actions = { mark; NoAction; } }
    table optional_table { key = { h.probe.kind: optional @name("kind"); } actions = { mark; NoAction; } }
    table const_table {
        key = { h.probe.kind: ternary @name("kind"); }
        actions = { mark; NoAction; }
        const entries = { 1 : mark(11); 2 &&& 3 : mark(12); }
        const default_action = NoAction();
    }
    table initial_table {
        key = { h.probe.kind: ternary @name("kind"); }
        actions = { mark; NoAction; }
        @noWarn("entries_out_of_priority_order")
        entries = { priority = 10 : 7 : mark(21); const priority = 20 : 8 : mark(22); }
    }
    table learning { key = { h.ethernet.from: exact @name("from"); } actions = { learn; NoAction; } default_action = NoAction(); }
    table selected {
        key = { h.probe.a: exact @name("a"); h.ethernet.from: selector; }
        actions = { forward; drop; }
        implementation = choices;
    }
    table indirect { key = { h.probe.a: exact @name("a"); } actions = { forward; mark; } implementation = hops; }
    table keyless { actions = { learn; NoAction; } default_action = NoAction(); }
    table vrfs { key = { m.vrf: exact @name("vrf"); } actions = { in_vrf; NoAction; } }

    apply {
        if (h.packet_out.isValid()) {
            s.egress_spec = h.packet_out.port;
            h.packet_out.setInvalid();
            exit;
        }
        if (h.ethernet.type == 0x88cc) {
            h.packet_in.setValid();
            h.packet_in.port = s.ingress_port;
            h.packet_in.pad = 0;
            s.egress_spec = CPU;
            exit;
        }
        packets.count((bit<32>)s.ingress_port & 7);
        rates.execute_meter((bit<32>)s.ingress_port & 7, m.colour);
        if (m.colour == 2) { mark_to_drop(s); exit; }
        cells.write((bit<32>)s.ingress_port, h.ethernet.from);
        exact_table.apply();
        learning.apply();
        keyless.apply();
        if (h.probe.isValid()) {
            lpm_table.apply();
            ternary_table.apply();
            range_table.apply();
            optional_table.apply();
            const_table.apply();
            initial_table.apply();
            selected.apply();
            indirect.apply();
            vrfs.apply();
        }
    }
}

control Leave(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control Verify(inout headers_t h, inout metadata_t m) { apply { } }
control Compute(inout headers_t h, inout metadata_t m) { apply { } }
control Deparse(packet_out p, in headers_t h) {
    apply { p.emit(h.packet_in); p.emit(h.ethernet); p.emit(h.probe); }
}

V1Switch(Parse(), Verify(), Work(), Leave(), Compute(), Deparse()) main;
