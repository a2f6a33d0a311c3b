#include <core.p4>
#include <v1model.p4>

header odd_t { bit<3> a; bit<7> b; varbit<40> rest; bit<6> c; }
header whole_t { bit<16> a; bit<65> b; bit<7> c; }
header options_t { bit<8> length; varbit<24> rest; }
struct headers_t { odd_t odd; whole_t whole; options_t options; }
struct meta_t { bit<65> wide; bit<16> half; bit<32> address; bit<2> colour; }
struct pair_t { bit<65> wide; bit<9> port; }
struct news_t { bit<65> wide; bit<9> port; }

parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    value_set<pair_t>(4) known;
    state start {
        packet.extract(h.odd, 8);
        packet.extract(h.options, 16);
        transition select(m.wide, s.ingress_port) { known: more; default: accept; }
    }
    state more { packet.extract(h.whole); transition accept; }
}

control Nothing(inout headers_t h, inout meta_t m) { apply { } }

control In(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.bytes) rates;
    meter(8, MeterType.bytes) cells;
    action set(bit<65> wide, bit<16> half) { m.wide = wide; m.half = half; }
    action half(bit<16> value) { m.half = value; }
    action counted_half(bit<16> value) { hits.count(); m.half = value; }
    action metered_half(bit<16> value) { rates.read(m.colour); m.half = value; }
    action nothing() { }
    table counted {
        key = { m.wide: exact; m.half: exact; }
        actions = { counted_half; }
        counters = hits;
        default_action = counted_half(3);
    }
    table ordered {
        key = { m.wide: ternary; m.half: range; }
        actions = { metered_half; }
        meters = rates;
        default_action = metered_half(4);
    }
    table chosen {
        key = { m.half: exact; m.wide: selector; }
        actions = { set; half; nothing; }
        implementation = action_selector(HashAlgorithm.crc16, 8, 14);
    }
    table prefixes {
        key = { m.address: lpm; }
        actions = { set; half; nothing; }
        default_action = nothing();
    }
    table beside {
        key = { m.half: exact; m.address: lpm; }
        actions = { set; nothing; }
        default_action = set(5, 6);
    }
    apply {
        counted.apply();
        ordered.apply();
        chosen.apply();
        prefixes.apply();
        beside.apply();
        cells.execute_meter((bit<32>)m.half, m.colour);
        digest<news_t>(1, { m.wide, s.ingress_port });
    }
}

control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }

control Write(packet_out packet, in headers_t h) {
    apply { packet.emit(h.odd); packet.emit(h.options); packet.emit(h.whole); }
}

V1Switch(P(), Nothing(), In(), Out(), Nothing(), Write()) main;
