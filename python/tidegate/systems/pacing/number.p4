// Numbers in an option, 16 bits wide: 5 bits of exponent e, 11 of mantissa m, which say m * 2^e.

bit<32> number(in bit<16> packed) {
    return (bit<32>) packed[10:0] << (bit<8>) packed[15:11];
}

// Rounded down.
bit<16> packed(in bit<32> value) {
    bit<32> m = value;
    bit<16> e = 0;
    // As many bits of mantissa as fit, by halves.
    if (m >> 26 != 0) {
        m = m >> 16;
        e = 16;
    }
    if (m >> 18 != 0) {
        m = m >> 8;
        e = e + 8;
    }
    if (m >> 14 != 0) {
        m = m >> 4;
        e = e + 4;
    }
    if (m >> 12 != 0) {
        m = m >> 2;
        e = e + 2;
    }
    if (m >> 11 != 0) {
        m = m >> 1;
        e = e + 1;
    }
    return e << 11 | (bit<16>) m;
}

// Rounded up.
bit<16> packed_up(in bit<32> value) {
    bit<16> down = packed(value);
    // A mantissa that runs over becomes the next exponent's: 2^11 * 2^e is 2^10 * 2^(e + 1).
    bit<16> up = down[10:0] == 0x7ff ? (down & 0xf800) + 0x0800 + 0x400 : down + 1;
    return number(down) == value ? down : up;
}

// A sum of 16-bit words, with the carry added to it.
bit<32> folded(in bit<32> sum) {
    return (sum & 0xffff) + (sum >> 16);
}

// The sum of an option's words.
bit<32> sum_of(in option_t option) {
    return (bit<32>) (option.type ++ option.length)
        + (bit<32>) (option.version ++ option.key ++ option.kind ++ option.hops ++ option.link)
        + (bit<32>) option.rate + (bit<32>) option.weight
        + (bit<32>) (option.sequence ++ option.check[23:16]) + (bit<32>) option.check[15:0];
}

// The sum whose addition takes another away.
bit<32> minus(in bit<32> sum) {
    return 0xffff - folded(folded(sum));
}

// A weight is from 1 to 65535.
bit<32> weight_of(in bit<16> value) {
    bit<32> weight = number(value);
    weight = weight == 0 ? 32w1 : weight;
    return weight > 0xffff ? 32w0xffff : weight;
}
