// The keyed check of an option: HalfSipHash-2-4 (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012, and its
// 32-bit variant in the authors' code), cut to 24 bits.

void sip_round(inout bit<32> v0, inout bit<32> v1, inout bit<32> v2, inout bit<32> v3) {
    v0 = v0 + v1;
    v1 = v1 << 5 | v1 >> 27;
    v1 = v1 ^ v0;
    v0 = v0 << 16 | v0 >> 16;
    v2 = v2 + v3;
    v3 = v3 << 8 | v3 >> 24;
    v3 = v3 ^ v2;
    v0 = v0 + v3;
    v3 = v3 << 7 | v3 >> 25;
    v3 = v3 ^ v0;
    v2 = v2 + v1;
    v1 = v1 << 13 | v1 >> 19;
    v1 = v1 ^ v2;
    v2 = v2 << 16 | v2 >> 16;
}

void sip_word(inout bit<32> v0, inout bit<32> v1, inout bit<32> v2, inout bit<32> v3, in bit<32> word) {
    v3 = v3 ^ word;
    sip_round(v0, v1, v2, v3);
    sip_round(v0, v1, v2, v3);
    v0 = v0 ^ word;
}

void sip_address(inout bit<32> v0, inout bit<32> v1, inout bit<32> v2, inout bit<32> v3, in bit<128> address) {
    sip_word(v0, v1, v2, v3, address[127:96]);
    sip_word(v0, v1, v2, v3, address[95:64]);
    sip_word(v0, v1, v2, v3, address[63:32]);
    sip_word(v0, v1, v2, v3, address[31:0]);
}

// The check of an option of a flow. `number` binds it to the packet: TCP's sequence number of a SYN, its acknowledgment number of a
// SYN-ACK. Words are taken as numbers, not as bytes of the wire.
bit<24> check_of(in bit<64> key, in flow_t flow, in bool six, in ends_t ends, in bit<32> number, in option_t option) {
    bit<32> v0 = key[63:32];
    bit<32> v1 = key[31:0];
    bit<32> v2 = key[63:32] ^ 0x6c796765;
    bit<32> v3 = key[31:0] ^ 0x74656462;
    if (six) {
        sip_address(v0, v1, v2, v3, ends.src);
    } else {
        sip_word(v0, v1, v2, v3, flow.source[63:32]);
    }
    sip_word(v0, v1, v2, v3, flow.source[31:0]);
    if (six) {
        sip_address(v0, v1, v2, v3, ends.dst);
    } else {
        sip_word(v0, v1, v2, v3, flow.target);
    }
    sip_word(v0, v1, v2, v3, number);
    sip_word(v0, v1, v2, v3, option.version ++ option.key ++ option.kind ++ option.hops ++ option.link ++ option.rate);
    sip_word(v0, v1, v2, v3, option.weight ++ option.sequence ++ 8w0);
    // The last word has the length in bytes.
    sip_word(v0, v1, v2, v3, six ? 32w48 << 24 : 32w24 << 24);
    v2 = v2 ^ 0xff;
    sip_round(v0, v1, v2, v3);
    sip_round(v0, v1, v2, v3);
    sip_round(v0, v1, v2, v3);
    sip_round(v0, v1, v2, v3);
    return (v1 ^ v3)[23:0];
}
