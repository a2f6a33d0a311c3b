#include <core.p4>
#include <v1model.p4>
#if 0
Here it isn't P4: a lone " and a `, and even "this
#endif
#define UNUSED "not closed
#ifdef NEVER
"
#error don"t
#endif
struct H { }
struct M { }
@text("one
   two # not a directive
   \"three\"
")
@text("a # b") @text("")
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t sm) { state start { transition accept; } }
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { log_msg("over
two lines"); } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
