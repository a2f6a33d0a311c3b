// One of everything that the two executors must agree on.

#include <core.p4>
#include <v1model.p4>

header first_t {
    bit<3>  a;
    bit<13> b;
    bit<7>  c;
    bit<1>  d;
    int<24> e;
    bit<48> f;
    bit<8>  kind;
}

header wide_t {
    bit<128> big;
    bit<65>  odd;
    bit<7>   rest;
    bit<100> more;
    bit<4>   pad;
}

header item_t {
    bit<1>  last;
    bit<7>  weight;
    bit<16> value;
}

header options_t {
    bit<4>       length;
    bit<4>       flag;
    varbit<120>  data;
    bit<8>       tail;
}

header left_t  { bit<16> l; }
header right_t { bit<32> r; }

header_union either_t {
    left_t  left;
    right_t right;
}

struct headers_t {
    first_t   first;
    wide_t    wide;
    item_t[4] items;
    options_t options;
    options_t other;
    either_t  either;
    item_t    spare;
}

struct inner_t {
    bit<32> sum;
    bit<1>  flag;
}

struct meta_t {
    inner_t  inner;
    bit<8>   hash8;
    bit<16>  hash16;
    bit<64>  hash64;
    bit<32>  index;
    bit<2>   color;
    bit<128> copy;
    int<24>  signed_value;
}

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    value_set<bit<8>>(4) kinds;
    bit<8> count = 0;

    state start {
        p.extract(h.first);
        m.index = (bit<32>) p.length();
        transition select(h.first.kind, h.first.a) {
            (1, _): wide;
            (2, 0 .. 4): items;
            (3 &&& 0x0f, _): options;
            (4, _): union_left;
            (5, _): union_right;
            (6, _): skip;
            (kinds, _): items;
            (7, 5): reject;
            default: accept;
        }
    }

    state wide {
        p.extract(h.wide);
        verify(h.wide.pad != 9, error.NoMatch);
        transition select(h.wide.big[3:0]) {
            0: accept;
            1: items;
            2: options;
            default: accept;
        }
    }

    state items {
        count = count + 1;
        p.extract(h.items.next);
        transition select(h.items.last.last, p.lookahead<bit<8>>()) {
            (0, _): items;
            (1, 0 .. 127): options;
            default: accept;
        }
    }

    state options {
        p.extract(h.options, (bit<32>) h.first.a * 8);
        m.inner.flag = 1;
        transition accept;
    }

    state union_left {
        p.extract(h.either.left);
        transition accept;
    }

    state union_right {
        p.extract(h.either.right);
        transition select(h.either.right.r) {
            0: skip;
            default: accept;
        }
    }

    state skip {
        p.advance((bit<32>) h.first.c * 8);
        transition select(count) {
            0: items;
            default: accept;
        }
    }
}

control V(inout headers_t h, inout meta_t m) {
    apply {
        verify_checksum(h.first.isValid(), { h.first.a, h.first.b, h.first.f }, h.wide.rest ++ 9w0, HashAlgorithm.csum16);
    }
}

control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<32>>(8) narrow;
    register<bit<100>>(4) broad;
    counter(8, CounterType.packets_and_bytes) count;
    direct_counter(CounterType.packets) hits;
    bit<16> total = 0;

    action nothing() { }
    action drop() { mark_to_drop(s); }
    action forward(bit<9> port, bit<16> value, bit<72> large) {
        s.egress_spec = port;
        h.items[0].value = value;
        m.copy[71:0] = large;
        total = total + value;
    }
    action arithmetic(bit<24> by) {
        m.signed_value = h.first.e + (int<24>) by;
        h.first.e = (m.signed_value |-| 77) >> 2;
        h.first.b = (h.first.b |+| 8000) ^ (bit<13>) by;
        h.first.f = h.first.f * 3 - (bit<48>) by;
        h.first.c = (bit<7>) (h.first.f / 7) + (bit<7>) (h.first.f % 5);
        h.wide.big = h.wide.big + (bit<128>) h.first.f << (bit<8>) by;
        h.wide.more = h.wide.more * 5 |-| 1;
        h.wide.odd = h.wide.odd >> h.first.a;
        s.egress_spec = 2;
    }

    table exact_table {
        key = { h.first.kind : exact; h.first.a : exact; }
        actions = { forward; arithmetic; drop; nothing; }
        default_action = arithmetic(5);
        counters = hits;
    }
    table lpm_table {
        key = { h.first.f : lpm; }
        actions = { forward; nothing; }
        default_action = nothing();
    }
    table ternary_table {
        key = { h.wide.big : ternary; h.first.b : range; h.first.d : optional; }
        actions = { forward; drop; nothing; }
        default_action = nothing();
    }
    table chosen {
        key = { h.first.a : exact; h.first.b : selector; h.first.f : selector; }
        actions = { forward; nothing; }
        implementation = action_selector(HashAlgorithm.crc16, 16, 8);
        default_action = nothing();
    }

    apply {
        bit<32> word;
        bit<100> cell;
        if (exact_table.apply().hit) {
            m.inner.sum = 1;
        }
        switch (lpm_table.apply().action_run) {
            forward: { m.inner.sum = m.inner.sum + 10; }
            nothing: { m.inner.sum = m.inner.sum + 20; }
        }
        ternary_table.apply();
        chosen.apply();
        bit<32> at = (bit<32>) h.first.b & 15;
        narrow.read(word, at);
        word = word + (bit<32>) h.first.kind;
        narrow.write(at, word);
        broad.read(cell, (bit<32>) h.first.a);
        broad.write((bit<32>) h.first.a, cell + h.wide.more);
        count.count((bit<32>) h.first.a + 4);
        hash(m.hash8, HashAlgorithm.crc16, 8w3, { h.first.b, h.first.c, h.options.data }, 16w200);
        hash(m.hash16, HashAlgorithm.crc32, 16w0, { h.wide.odd, h.first.a }, 32w65536);
        hash(m.hash64, HashAlgorithm.identity, 64w0, { h.first.f, total }, 64w0xffffffffffff);
        bit<16> sum;
        hash(sum, HashAlgorithm.csum16, 16w0, { h.first.f, h.first.a, m.hash8 }, 32w0x10000);
        h.spare.setValid();
        h.spare.value = sum;
        h.spare.weight = (bit<7>) word;
        h.spare.last = (bit<1>) h.either.isValid();
        for (bit<8> i in 0 .. 5) {
            if (i == 3) { continue; }
            if ((bit<8>) h.first.a == i) { break; }
            total = total + (bit<16>) i;
        }
        bit<2> which = (bit<2>) h.first.a;
        h.items[which].value = h.items[which].value + total;
        h.items[h.first.a].weight = 1;
        if (h.first.d == 1) {
            h.items.push_front(1);
            h.items[0].setValid();
        } else if (h.first.kind == 2) {
            h.items.pop_front(2);
        }
        if (h.options.isValid()) {
            h.other = h.options;
            h.other.tail = (bit<8>) (bit<1>) (h.other == h.options);
        }
        if (h.first.kind == 9) {
            bit<16> r;
            random(r, 16w5, 16w1000);
            h.spare.value = r;
        }
        switch (h.first.c) {
            1: { h.first.kind = 77; }
            2:
            3: { h.first.kind = 78; }
            default: { h.first.kind = h.first.kind; }
        }
        if (h.first.b == 5) { s.mcast_grp = 2; }
        if (h.first.b == 4) {
            digest<inner_t>(1, m.inner);
            digest<options_t>(2, h.options);
        }
        if (h.first.b == 3) { truncate(32w40); }
        if (h.first.b == 2) { exit; }
        assert(h.first.b != 1);
        h.first.e = h.first.e + (int<24>) (bit<24>) m.inner.sum;
    }
}

control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.wide.isValid() && h.wide.big > m.copy) {
            h.wide.big = m.copy;
        }
        h.first.f = m.hash64[47:0] ^ (m.hash16 ++ m.index);
        if (s.instance_type == 0 && h.first.kind == 3) {
            recirculate_preserving_field_list(0);
            h.first.kind = 0;
        }
    }
}

control C(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(h.spare.isValid(), { h.first.a, h.first.b, h.first.f, h.spare.value }, h.spare.value, HashAlgorithm.csum16);
        update_checksum_with_payload(h.wide.isValid(), { h.first.kind, h.wide.big }, h.wide.odd, HashAlgorithm.csum16);
        update_checksum(h.options.isValid(), { h.options.data, h.options.flag }, h.options.tail, HashAlgorithm.crc16);
    }
}

control D(packet_out p, in headers_t h) {
    apply {
        p.emit(h);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
