// The P4_16 core library (P4_16 1.2.5, appendix "P4 core library").

#ifndef _CORE_P4_
#define _CORE_P4_

/// What a parser may report in `standard_metadata.parser_error`.
error {
    NoError,
    /// `extract`, `lookahead` or `advance` past the end of the packet.
    PacketTooShort,
    /// No case of a `select` matched.
    NoMatch,
    /// A header stack is full (`next`) or empty (`last`).
    StackOutOfBounds,
    /// A varbit field is shorter than the length given for it.
    HeaderTooShort,
    /// The parser ran for too long.
    ParserTimeout,
    /// An argument that no packet could satisfy.
    ParserInvalidArgument
}

extern packet_in {
    /// Reads a header of fixed size.
    void extract<T>(out T hdr);
    /// Reads a header with one varbit field of the given size in bits.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    /// Reads without moving on.
    T lookahead<T>();
    /// Skips bits.
    void advance(in bit<32> sizeInBits);
    /// Length of the packet in bytes.
    bit<32> length();
}

extern packet_out {
    /// Appends every valid header in `hdr`.
    void emit<T>(in T hdr);
}

/// In a parser: unless `check`, report `toSignal` and reject.
extern void verify(in bool check, in error toSignal);

@noWarn("unused")
action NoAction() {}

match_kind {
    exact,
    ternary,
    lpm
}

/// At compile time: `check` must hold.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
