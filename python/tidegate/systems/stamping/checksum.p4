// The checksum of an IPv4 header after a code and the hops of its stamp have changed, from the one before (RFC 1624 equation 3).

// A sum of 16-bit words, with the carry added to it.
bit<32> folded(in bit<32> sum) {
    return (sum & 0xffff) + (sum >> 16);
}

// A code's words as a sum: it begins in the first byte of a word.
bit<32> words(in bit<CODE_BITS> code) {
#if STAMP_BYTES == 1
    return (bit<32>) code << 8;
#elif STAMP_BYTES == 2
    return (bit<32>) code;
#elif STAMP_BYTES == 4
    return (code >> 16) + (code & 0xffff);
#else
    return (bit<32>) (code >> 48) + (bit<32>) code[47:32] + (bit<32>) code[31:16] + (bit<32>) code[15:0];
#endif
}

// `odd`: the value begins in the second byte of a word. A sum there has its bytes swapped (RFC 1071 section 2).
bit<16> checksum_with(in bit<16> checksum, in bit<CODE_BITS> old, in bit<CODE_BITS> new, in bit<6> hops_before, in bit<6> hops,
                      in bit<1> odd) {
    // 0x4fffb is a multiple of 0xffff: no difference is negative.
    bit<32> change = folded(words(new) + 0x4fffb - words(old));
    change = folded(change);
    bit<1> swaps = odd;
#if STAMP_FOLD == FOLD_VECTOR && STAMP_BYTES == 1
    swaps = odd ^ hops_before[0:0];
#endif
    change = swaps == 1 ? (change & 0xff) << 8 | change >> 8 : change;
    // The byte with version and hops stands behind the value: in the first byte of a word if both are even, or both odd.
    bit<32> more = (bit<32>) (hops - hops_before);
    more = odd == (bit<1>) (VALUE_BYTES & 1) ? more << 8 : more;
    bit<32> sum = folded((bit<32>) ~checksum + change + more);
    return ~(bit<16>) folded(sum);
}
