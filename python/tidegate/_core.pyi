"""The engine, in Rust. Answers of commands are JSON text."""

from os import PathLike

__version__: str

class TidegateError(Exception):
    """The input or the run is at fault; the text says where and what would be right."""

def check(
    path: str | PathLike[str],
    includes: list[str],
    defines: list[str],
    p4info: str | PathLike[str] | None,
    color: bool,
) -> str:
    """Compile a program; with `p4info`, write its P4Info to that file."""
