//! The same scenarios in ns-2, where Debian's package `ns2` is installed: scripts of our own, run as a user would.

use std::io::Write;
use std::process::{Command, Stdio};

const COMMON: &str = r#"
remove-all-packet-headers
add-packet-header IP TCP
set ns [new Simulator]
Agent/TCP set window_ 5000
Agent/TCP set packetSize_ 1460
Agent/TCP set timestamps_ true
Agent/TCP set tcpTick_ 0.001
Agent/TCPSink set ts_echo_rfc1323_ true
proc wire {a b rate delay limit} {
    global ns
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b $limit
    $ns queue-limit $b $a $limit
}
proc flow {a b start rto delack} {
    global ns sinks
    set tcp [new Agent/TCP/Linux]
    $tcp set minrto_ $rto
    $tcp set windowInit_ 10
    set sink [new Agent/TCPSink/Sack1/DelAck]
    $sink set interval_ $delack
    $ns attach-agent $a $tcp
    $ns attach-agent $b $sink
    $ns connect $tcp $sink
    $ns at 0 "$tcp select_ca cubic"
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at $start "$ftp start"
}
"#;

fn dumbbell(n: u64) -> String {
    format!(
        r#"{COMMON}
set left [$ns node]
set right [$ns node]
wire $left $right 1Gb 8ms 1667
for {{set i 0}} {{$i < {n}}} {{incr i}} {{
    set a [$ns node]
    set b [$ns node]
    wire $a $left 10Gb 1ms 100000
    wire $right $b 10Gb 1ms 100000
    flow $a $b [expr {{double($i) / {n}}}] 0.2 0.04
}}
$ns at 10.0 "exit 0"
$ns run
"#
    )
}

fn clos() -> String {
    // Routes are set by hand: ns-2's own would take one way only.
    format!(
        r#"{COMMON}
for {{set i 0}} {{$i < 192}} {{incr i}} {{ set h($i) [$ns node] }}
for {{set i 0}} {{$i < 12}} {{incr i}} {{ set tor($i) [$ns node] }}
for {{set i 0}} {{$i < 8}} {{incr i}} {{ set agg($i) [$ns node] }}
for {{set i 0}} {{$i < 2}} {{incr i}} {{ set core($i) [$ns node] }}
for {{set i 0}} {{$i < 192}} {{incr i}} {{ wire $h($i) $tor([expr {{$i / 16}}]) 1Gb 5us 200 }}
for {{set i 0}} {{$i < 12}} {{incr i}} {{
    set pod [expr {{$i / 3}}]
    foreach k {{0 1}} {{ wire $tor($i) $agg([expr {{2 * $pod + $k}}]) 10Gb 5us 200 }}
}}
for {{set i 0}} {{$i < 8}} {{incr i}} {{ foreach k {{0 1}} {{ wire $agg($i) $core($k) 40Gb 5us 200 }} }}
set x 1
for {{set i 0}} {{$i < 192}} {{incr i}} {{
    set x [expr {{(1103515245 * $x + 12345) % 2147483648}}]
    set d [expr {{($x >> 8) % 191}}]
    if {{$d >= $i}} {{ incr d }}
    flow $h($i) $h($d) [expr {{$i * 1e-5}}] 0.01 0.001
}}
proc via {{from next to}} {{
    global ns
    $from add-route [$to id] [[$ns link $from $next] head]
}}
proc by_destination {{}} {{
    global h tor agg core
    for {{set d 0}} {{$d < 192}} {{incr d}} {{
        for {{set i 0}} {{$i < 12}} {{incr i}} {{
            if {{$d / 16 != $i}} {{ via $tor($i) $agg([expr {{2 * ($i / 3) + ($d & 1)}}]) $h($d) }}
        }}
        for {{set i 0}} {{$i < 8}} {{incr i}} {{
            if {{$d / 48 != $i / 2}} {{ via $agg($i) $core([expr {{($d >> 1) & 1}}]) $h($d) }}
        }}
    }}
}}
$ns at 0.0 "by_destination"
$ns at 0.1 "exit 0"
$ns run
"#
    )
}

/// User CPU seconds of a child that runs the script; `None` where there is no ns-2.
fn run(script: &str) -> Option<f64> {
    let path = std::env::temp_dir().join(format!("tidegate-bench-{}.tcl", std::process::id()));
    std::fs::File::create(&path).ok()?.write_all(script.as_bytes()).ok()?;
    let before = super::children_cpu();
    let status = Command::new("ns").arg(&path).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let _ = std::fs::remove_file(&path);
    status.ok().filter(|s| s.success())?;
    Some(super::children_cpu() - before)
}

pub fn dumbbell_seconds(n: u64) -> Option<f64> {
    run(&dumbbell(n))
}

pub fn clos_seconds() -> Option<f64> {
    run(&clos())
}
