// What a port has sent: a shift-average meter, whose windows are closed by the next packet.

// Bytes sent in a window (1/256 byte), averaged over windows by 1/8; the present window's number, and bytes sent in it.
register<bit<64>>(PORTS) average;
register<bit<48>>(PORTS) present;
register<bit<32>>(PORTS) sent;

// After k windows in which nothing was sent: (7/8)^k, with k in binary.
control Decay(inout bit<64> level, in bit<48> windows) {
    apply {
        if (windows > 127) {
            level = 0;
        } else if (windows != 0) {
            bit<7> k = (bit<7>) windows;
            level = k[0:0] == 1 ? level * 57344 >> 16 : level;
            level = k[1:1] == 1 ? level * 50176 >> 16 : level;
            level = k[2:2] == 1 ? level * 38416 >> 16 : level;
            level = k[3:3] == 1 ? level * 22519 >> 16 : level;
            level = k[4:4] == 1 ? level * 7738 >> 16 : level;
            level = k[5:5] == 1 ? level * 914 >> 16 : level;
            level = k[6:6] == 1 ? level * 13 >> 16 : level;
        }
    }
}

// Counts a packet. `window`: log2 of a window in ticks of the clock; `rate`: the average before the packet; `elapsed`: windows
// since the last packet.
control Meter(in standard_metadata_t standard_metadata, in bit<8> window, out bit<64> rate, out bit<48> elapsed) {
    Decay() decay;

    apply {
        bit<32> port = (bit<32>) standard_metadata.egress_port;
        bit<48> now = standard_metadata.egress_global_timestamp >> window;
        bit<48> then;
        bit<32> bytes;
        average.read(rate, port);
        present.read(then, port);
        sent.read(bytes, port);
        elapsed = now - then;
        if (elapsed != 0) {
            rate = rate - (rate >> 3) + ((bit<64>) bytes << 5);
            decay.apply(rate, elapsed - 1);
            average.write(port, rate);
            present.write(port, now);
            bytes = 0;
        }
        sent.write(port, bytes + standard_metadata.packet_length);
    }
}
