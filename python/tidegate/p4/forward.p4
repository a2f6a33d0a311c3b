// Where a packet goes: by its Ethernet destination, or by the port that it came in by. For v1model.

#ifndef TIDEGATE_FORWARD_P4
#define TIDEGATE_FORWARD_P4

#include "headers.p4"

// `goes`: whether the packet goes anywhere.
control Forward(in ethernet_t ethernet, inout standard_metadata_t standard_metadata, out bool goes) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }

    table forward {
        key = { ethernet.dst : exact @name("hdr.ethernet.dst"); }
        actions = { to_port; flood; drop; }
        default_action = drop();
        size = 65536;
    }

    // Where packets go whose address `forward` does not know: by the port that they come in by. So the switch can be put into a wire.
    table wires {
        key = { standard_metadata.ingress_port : exact; }
        actions = { to_port; @defaultonly drop; }
        default_action = drop();
        size = 512;
    }

    apply {
        goes = true;
        switch (forward.apply().action_run) {
            drop: {
                goes = wires.apply().hit;
            }
            default: { }
        }
    }
}

#endif
