// The ebpf_model architecture: a packet filter. Names, parameters and package are those of the reference compiler's
// ebpf_model.p4 (p4lang/p4c, Apache License 2.0), so that programs written for it are accepted.

#ifndef _EBPF_MODEL_P4_
#define _EBPF_MODEL_P4_

#include <core.p4>

// Counters that the control plane reads and resets.
extern CounterArray {
    // Indices 0 up to `max_index` - 1. `sparse`: few of them are used.
    CounterArray(bit<32> max_index, bool sparse);
    void increment(in bit<32> index);
}

// Each table has one of these as its `implementation`; `size` is the number of its entries.
extern array_table {
    array_table(bit<32> size);
}

extern hash_table {
    hash_table(bit<32> size);
}

// A packet that the parser rejects is dropped.
parser parse<H>(packet_in packet, out H headers);

// A packet that is not accepted is dropped; one that is accepted goes on as it came.
control filter<H>(inout H headers, out bool accept);

package ebpfFilter<H>(parse<H> prs, filter<H> filt);

#endif
