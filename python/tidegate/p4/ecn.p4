// ECN: code points (RFC 3168, RFC 9331), and the checksum of a packet that is marked.

#ifndef TIDEGATE_ECN_P4
#define TIDEGATE_ECN_P4

const bit<2> NOT_ECT = 0;
const bit<2> ECT1 = 1;
const bit<2> ECT0 = 2;
const bit<2> CE = 3;

// The checksum of an IPv4 header after its ECN field has become CE, from the one before (RFC 1624). Who marks has asked whether the
// packet is ECN-capable: RFC 3168 marks no other.
bit<16> checksum_with_ce(in bit<16> checksum, in bit<2> ecn) {
    bit<32> sum = (bit<32>) (~checksum) + (bit<32>) (CE - ecn);
    sum = (sum & 0xffff) + (sum >> 16);
    return ~((bit<16>) sum);
}

#endif
