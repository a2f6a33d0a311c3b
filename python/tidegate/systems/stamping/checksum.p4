// The checksum of an IPv4 header after its stamp has changed, from the one before (RFC 1624 equation 3).

bit<32> folded(in bit<32> sum) {
    return (sum & 0xffff) + (sum >> 16);
}

// The stamp's words, as a sum.
bit<32> words(in stamp_t stamp) {
#if STAMP_BYTES == 1
    return (bit<32>) (stamp.value ++ stamp.version ++ stamp.hops);
#elif STAMP_BYTES == 2
    return (bit<32>) stamp.value + (bit<32>) (stamp.version ++ stamp.hops ++ 8w0);
#else
    return (bit<32>) stamp.value[31:16] + (bit<32>) stamp.value[15:0] + (bit<32>) (stamp.version ++ stamp.hops ++ 8w0);
#endif
}

// `odd`: the stamp begins in the second byte of a word, and its sum has its bytes swapped (RFC 1071 section 2).
bit<16> checksum_with(in bit<16> checksum, in stamp_t before, in stamp_t after, in bit<1> odd) {
    bit<32> change = folded(words(after) + 0x3fffc - words(before));
    change = folded(change);
    bit<16> swapped = (bit<16>) change;
    swapped = odd == 1 ? swapped[7:0] ++ swapped[15:8] : swapped;
    bit<32> sum = folded((bit<32>) ~checksum + (bit<32>) swapped);
    return ~(bit<16>) folded(sum);
}
