// Sub-parsers, loops and rejections: a packet passes if it is a chain of labels that ends within the packet. The filter accepts
// everything, so that only the parser can drop.
#include <core.p4>
#include <ebpf_model.p4>

header label_t {
    bit<7> value;
    bit<1> last;
}

struct headers_t {
    label_t[4] labels;
}

parser label(packet_in p, inout headers_t headers) {
    state start {
        p.extract(headers.labels.next);
        transition select(headers.labels.last.value) {
            0: reject;
            default: accept;
        }
    }
}

parser prs(packet_in p, out headers_t headers) {
    label() one;
    state start {
        one.apply(p, headers);
        transition select(headers.labels.last.last) {
            1: accept;
            default: start;
        }
    }
}

control all(inout headers_t headers, out bool yes) {
    apply {
        yes = true;
    }
}

ebpfFilter(prs(), all()) main;
