// Section 7.1: base types. Literals, numbers without a width, enums, errors, new types.
#include <core.p4>
#include <v1model.p4>

typedef bit<8> octet;
typedef octet byte_t;
type bit<16> port_t;
error { Odd, Even }
enum Colour { red, green, blue }
enum bit<8> Code { first = 0x10, second = 8w0xff - 0xee, last = 8w255 }

const int HUGE = 1 << 100;
const int NEGATIVE = -7;
const octet UNDERSCORES = 8w0b1010_0101;
const bit<16> OCTAL = 0o17_7;

header h_t { octet a; byte_t b; bit<16> c; int<16> d; port_t e; Code f; bit<7> pad; bool g; }
struct H { h_t h; }
struct M { error e; Colour c; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) { apply {} }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action set(Colour c) { m.c = c; }
    apply {
        sm.egress_spec = 1;
        m.e = hdr.h.a[0:0] == 1 ? error.Odd : error.Even;
        set(hdr.h.a == 3 ? Colour.blue : Colour.green);
        if (m.c == Colour.blue && m.e == error.Odd) { hdr.h.f = Code.second; }
        else if (m.c != Colour.red && m.e != error.NoError) { hdr.h.f = Code.last; }
        hdr.h.a = UNDERSCORES;
        hdr.h.b = (octet) (HUGE >> 95);
        hdr.h.c = OCTAL + 16w1;
        hdr.h.d = NEGATIVE - 16s2;
        hdr.h.e = (port_t) 16w0x1234;
        hdr.h.g = !hdr.h.g;
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
