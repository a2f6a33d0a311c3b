"""The engine, in Rust. Answers of commands are JSON text."""

from collections.abc import Callable
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

def stf(
    path: str | PathLike[str],
    test: str | PathLike[str],
    includes: list[str],
    defines: list[str],
    engine: str,
    trace: bool,
    seed: int,
) -> str:
    """Run a test of the Simple Test Framework."""

def replay(
    path: str | PathLike[str],
    inputs: list[tuple[int, str]],
    out: str | PathLike[str],
    commands: str | PathLike[str] | None,
    includes: list[str],
    defines: list[str],
    engine: str,
    trace: int,
    seed: int,
    progress: Callable[[int], None] | None,
) -> str:
    """Play captures through a program."""

class Program:
    """A compiled program."""

    def __new__(cls, path: str | PathLike[str], includes: list[str], defines: list[str]) -> Program: ...
    def p4info(self) -> str: ...
    def summary(self) -> str: ...

class Pipeline:
    """One switch."""

    def __new__(cls, program: Program, engine: str, seed: int) -> Pipeline: ...
    def process(self, now: int, port: int, packet: bytes) -> list[tuple[int, bytes]]: ...
    def trace(self, now: int, port: int, packet: bytes) -> tuple[list[tuple[int, bytes]], str]: ...
    def command(self, now: int, line: str) -> str: ...
    def register_read(self, name: str) -> tuple[bytes, int]: ...
    def register_write(self, name: str, start: int, words: bytes) -> None: ...
    def counter_read(self, name: str) -> bytes: ...
    def drops(self) -> list[tuple[str, int]]: ...
