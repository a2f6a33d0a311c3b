// What parsers of all carriers say of the field.

// A packet that is too short for its field stays FIELD_MALFORMED.
const bit<2> FIELD_NONE = 0;
const bit<2> FIELD_FOUND = 1;
const bit<2> FIELD_MALFORMED = 2;
const bit<2> FIELD_REPEATED = 3;

// Why a packet is not stamped: the index of its counter.
const bit<32> MALFORMED = 0;
const bit<32> REPEATED = 1;
const bit<32> FULL = 2;
const bit<32> VERSION = 3;

const bit<32> PORTS = 512;

struct metadata_t {
    bit<2>  field;
    // The field begins in the second byte of a 16-bit word of the IPv4 header.
    bit<1>  odd;
    // Bytes that the packet has found in the queue.
    bit<32> found;
    // Of the port.
    bit<32> multiplier;
    bit<8>  shift;
    bit<16> frame;
    bit<8>  window;
    bit<32> ratio;
}
