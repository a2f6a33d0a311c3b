// Links: what the switch knows of each port. Rates are in kbit/s of frames.

// How often other traffic is measured, in microseconds.
const bit<48> MEASURING = 16384;

// A queue that never has fewer packets than this is drained, until it has as few as that. Fast links have more of them: `long_by`.
const bit<32> LONG = 8;
const bit<32> SHORT = 2;

// The fewest packets that a packet has left behind it in a port's queue, plus 1; 0: no packet has left. Egress writes it.
register<bit<32>>(PORTS) backlog;

// Of a managed port, by its number.
register<bit<32>>(PORTS) capacity;
register<bit<8>>(PORTS)  link_id;
register<bit<32>>(PORTS) flows;
// Sum of the weights of members that share what the others leave.
register<bit<32>>(PORTS) weights;
// Sum of the rates of members that another link, or their application, limits to less.
register<bit<32>>(PORTS) taken;
register<bit<32>>(PORTS) others;
register<bit<32>>(PORTS) other_bytes;
register<bit<32>>(PORTS) other_average;
register<bit<48>>(PORTS) measured_at;
// What is kept back for a while, so that a queue that has built up drains.
register<bit<32>>(PORTS) draining;
// How many packets more than LONG it takes for a queue to be long.
register<bit<32>>(PORTS) long_by;
// Counts changes.
register<bit<32>>(PORTS) epoch;
// The managed port whose turn it is after this one.
register<bit<16>>(PORTS) port_after;
// Places plus 1; 0: none.
register<bit<32>>(PORTS) head;
register<bit<32>>(PORTS) cursor;
register<bit<1>>(PORTS)  walk_wanted;
register<bit<48>>(PORTS) walk_at;

// Whose turn is next, and a port that something has changed at, plus 1.
register<bit<16>>(1) turn;
register<bit<16>>(1) urgent;

// What others take of a link's rate, and whether its queue is to drain. Done when its turn has come.
control Measure(in bit<32> port, in bit<32> rate, in bit<48> now) {
    apply {
        bit<48> before;
        measured_at.read(before, port);
        if (now - before >= MEASURING) {
            // Traffic that does not take part, in kbit/s: what rises by much counts at once, what falls as a moving average.
            bit<32> bytes;
            bit<32> average;
            bit<32> used;
            measured_at.write(port, now - before >= 2 * MEASURING ? now : before + MEASURING);
            other_bytes.read(bytes, port);
            other_bytes.write(port, 0);
            other_average.read(average, port);
            bytes = (bit<32>) ((bit<64>) bytes * 8000 >> 14);
            if (bytes > average + (rate >> 5)) {
                average = bytes;
            } else {
                average = average - (average >> 3) + (bytes >> 3);
            }
            other_average.write(port, average);
            others.read(used, port);
            bit<32> waiting;
            bit<32> drains;
            bit<32> drained;
            backlog.read(waiting, port);
            backlog.write(port, 0);
            draining.read(drained, port);
            bit<32> more;
            long_by.read(more, port);
            drains = waiting > LONG + more ? rate >> 6 : waiting <= SHORT + (more >> 2) ? 0 : drained;
            if ((average > used ? average - used : used - average) > rate >> 7 || drains != drained) {
                bit<32> count;
                others.write(port, average);
                draining.write(port, drains);
                epoch.read(count, port);
                epoch.write(port, count + 1);
                walk_wanted.write(port, 1);
            }
        }
    }
}
