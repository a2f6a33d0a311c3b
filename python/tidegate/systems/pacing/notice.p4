// Egress: notices, and how long queues are.

control PacingEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == CLONED) {
            // A tick's clone becomes a notice: a TCP segment without flags, which no TCP takes for more than a lost one.
            hdr.ethernet.dst = meta.host;
            hdr.ethernet.src = SWITCH_ADDRESS;
            hdr.tick.setInvalid();
            // What a flow has said may be answered, too.
            hdr.vlan.setInvalid();
            hdr.rest.setInvalid();
            if (meta.six == 1) {
                hdr.ethernet.type = TYPE_IPV6;
                hdr.ipv6.setValid();
                hdr.ipv6.version = 6;
                hdr.ipv6.dscp = 0;
                hdr.ipv6.ecn = 0;
                hdr.ipv6.flow_label = 0;
                hdr.ipv6.payload_length = OPTION_BYTES6 + 20;
                hdr.ipv6.next_header = PROTOCOL_HOP_BY_HOP;
                hdr.ipv6.hop_limit = 64;
                hdr.ipv6.src = meta.src6;
                hdr.ipv6.dst = meta.dst6;
                hdr.hop.setValid();
                hdr.hop.next_header = PROTOCOL_TCP;
                hdr.hop.length = 1;
                hdr.pad.setValid();
                hdr.pad.type = OPTION_PAD;
                hdr.pad.length = 0;
                hdr.option.setValid();
                hdr.option.type = OPTION_PACING6;
                hdr.option.length = OPTION_LENGTH - 2;
            } else {
                hdr.ethernet.type = TYPE_IPV4;
                hdr.ipv4.setValid();
                hdr.ipv4.version = 4;
                hdr.ipv4.ihl = 5 + OPTION_WORDS;
                hdr.ipv4.dscp = 0;
                hdr.ipv4.ecn = 0;
                hdr.ipv4.total_length = 52;
                hdr.ipv4.identification = 0;
                hdr.ipv4.flags = 2;
                hdr.ipv4.fragment_offset = 0;
                hdr.ipv4.ttl = 64;
                hdr.ipv4.protocol = PROTOCOL_TCP;
                hdr.ipv4.checksum = 0;
                hdr.ipv4.src = meta.src;
                hdr.ipv4.dst = meta.dst;
                hdr.option.setValid();
                hdr.option.type = OPTION_PACING;
                hdr.option.length = OPTION_LENGTH;
            }
            hdr.option.version = VERSION;
            hdr.option.kind = NOTICE;
            hdr.option.key = meta.key_number;
            hdr.option.hops = meta.hops;
            hdr.option.link = meta.link;
            hdr.option.rate = meta.rate;
            hdr.option.weight = meta.weight;
            hdr.option.sequence = meta.epoch[7:0];
            hdr.option.check = 0;
            if (meta.keyed == 1) {
                flow_t flow;
                flow.source = meta.dst ++ meta.dst_port ++ meta.src_port;
                flow.target = meta.src;
                ends_t ends;
                ends.src = meta.dst6;
                ends.dst = meta.src6;
                hdr.option.check = check_of(meta.key, flow, meta.six == 1, ends, 0, hdr.option);
            }
            hdr.tcp.setValid();
            hdr.tcp.src_port = meta.src_port;
            hdr.tcp.dst_port = meta.dst_port;
            hdr.tcp.seq = meta.epoch;
            hdr.tcp.ack = 0;
            hdr.tcp.offset = 5;
            hdr.tcp.reserved = 0;
            hdr.tcp.flags = 0;
            hdr.tcp.window = 0;
            hdr.tcp.checksum = 0;
            hdr.tcp.urgent = 0;
        } else if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            bit<32> port = (bit<32>) standard_metadata.egress_port;
            bit<32> waiting = (bit<32>) standard_metadata.deq_qdepth + 1;
            bit<32> least;
            backlog.read(least, port);
            if (least == 0 || waiting < least) {
                backlog.write(port, waiting);
            }
        }
    }
}

// The reference compiler wants nothing but calls in `PacingCompute`.
#define MADE (hdr.option.isValid() && hdr.option.kind == NOTICE && hdr.ethernet.src == SWITCH_ADDRESS)

control PacingCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(MADE && hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst,
              hdr.option },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(MADE && hdr.ipv4.isValid(),
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, 16w20, hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.seq,
              hdr.tcp.ack, hdr.tcp.offset, hdr.tcp.reserved, hdr.tcp.flags, hdr.tcp.window, hdr.tcp.urgent },
            hdr.tcp.checksum, HashAlgorithm.csum16);
        update_checksum(MADE && hdr.ipv6.isValid(),
            { hdr.ipv6.src, hdr.ipv6.dst, 32w20, 24w0, hdr.hop.next_header, hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.seq,
              hdr.tcp.ack, hdr.tcp.offset, hdr.tcp.reserved, hdr.tcp.flags, hdr.tcp.window, hdr.tcp.urgent },
            hdr.tcp.checksum, HashAlgorithm.csum16);
    }
}
