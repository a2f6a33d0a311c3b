"""Programs that clients push are compiled in a process of their own first, so that none of them can end the switch or hold it up.

That process has limits of memory and time, and ends with this one. Only a program that it could compile, with its native code and its
state, is compiled here too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tidegate import _core
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.limits import Limits

CHILD = str(Path(__file__).resolve().with_name("compile_child.py"))
NO_MEMORY = 3
"""The child's exit code."""
NO_MEMORY_FOR_CODE = "there is no memory for its native code"
"""The end of its answer where the system refuses that alone."""
MOST_MESSAGES = 16_384
"""Characters of the compiler's messages."""


class Compiler:
    """Says what a program's P4Info is, or why it cannot be run. For any thread."""

    def __init__(self, limits: Limits, program_limits: Mapping[str, int] | None = None) -> None:
        """`program_limits`: of the compiler, by name, where they are not its defaults."""
        self._limits = limits
        self.program_limits = dict(program_limits or {})
        self._turns = threading.Condition()
        self._compiling = 0
        self._waiting = {True: 0, False: 0}
        self._clients: set[str] = set()
        self._changed = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def close(self) -> None:
        """End what is being compiled."""
        with self._changed:
            self._closed = True
            for child in self._children:
                child.kill()

    @contextmanager
    def turn(self, client: str, first: bool = False) -> Iterator[None]:
        """The right to compile, here and in a process; waited for if others have it, and refused if many wait.

        What is `first` has a place to wait of its own, and the next turn. Of others a client has one program at a time.
        """
        if first:
            with self._turn(first):
                yield
            return
        with self._turns:
            if client in self._clients:
                why = "another program of this client is being compiled; try again later"
                raise P4Error(Code.RESOURCE_EXHAUSTED, why)
            self._clients.add(client)
        try:
            with self._turn(first):
                yield
        finally:
            with self._turns:
                self._clients.discard(client)

    @contextmanager
    def _turn(self, first: bool) -> Iterator[None]:
        most = self._limits.compilations
        with self._turns:
            others = self._waiting[first] + (0 if first else self._compiling)
            if others >= (1 if first else 2 * most):
                raise self._busy()
            self._waiting[first] += 1
            try:
                # Those before it take twice its time at most: in the process, and here.
                if not self._turns.wait_for(
                    lambda: self._compiling < most and (first or not self._waiting[True]),
                    timeout=2 * self._limits.compile_s,
                ):
                    raise self._busy()
                self._compiling += 1
            finally:
                self._waiting[first] -= 1
                self._turns.notify_all()
        try:
            yield
        finally:
            with self._turns:
                self._compiling -= 1
                self._turns.notify_all()

    @staticmethod
    def _busy() -> P4Error:
        return P4Error(Code.RESOURCE_EXHAUSTED, "other programs are being compiled; try again later")

    def p4info(self, text: str) -> str:
        """P4Info of a program as text, once a process of its own has compiled it and made its native code and state."""
        limits = self._limits
        # -I and -S: nothing of the environment, and no site packages; it starts in less time, too.
        extension = str(Path(str(_core.__file__)).resolve())
        words = [sys.executable, "-I", "-S", CHILD, extension, str(os.getpid())]
        words += [str(limits.compile_cpu_s), str(limits.compile_bytes), str(limits.p4info_bytes)]
        words += [f"{name}={value}" for name, value in self.program_limits.items()]
        began = time.monotonic()
        with self._started(words) as child:
            try:
                out, wrong = child.communicate(text.encode(), timeout=limits.compile_s)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                raise exhausted(f"the program takes more than {limits.compile_s} s to compile") from None
        if self._closed:
            raise going_down()
        if child.returncode:
            raise self._ended(child.returncode, wrong, time.monotonic() - began)
        kind, said = out[:1], out[1:].decode(errors="replace")
        if kind == b"+":
            return said
        if kind == b"-" and said.endswith(NO_MEMORY_FOR_CODE):
            raise self._ended(NO_MEMORY, wrong, time.monotonic() - began)
        if kind == b"-":
            raise invalid(said[:MOST_MESSAGES])
        raise P4Error(Code.INTERNAL, "the process that compiles programs gave no answer")

    @contextmanager
    def _started(self, words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
        with self._changed:
            if self._closed:
                raise going_down()
            child = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env={},
            )
            self._children.add(child)
        try:
            with child:
                yield child
        finally:
            with self._changed:
                self._children.discard(child)

    def _ended(self, code: int, said: bytes, took: float) -> P4Error:
        """Why a process was ended before it had an answer."""
        limits = self._limits
        if code == -signal.SIGXCPU:
            return exhausted(
                f"the program takes more than {limits.compile_cpu_s} s of processor time to compile"
            )
        if code == NO_MEMORY or b"memory allocation" in said:
            return exhausted(
                f"the program takes more than {limits.compile_bytes >> 20} MiB of memory to compile"
            )
        if code == -signal.SIGKILL:
            return exhausted("the system has ended the compiler at this program; memory may be short")
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return invalid(f"the program cannot be compiled: the compiler ended after {took:.1f} s by {name}")


def going_down() -> P4Error:
    """UNAVAILABLE."""
    return P4Error(Code.UNAVAILABLE, "the switch is going down")


def exhausted(why: str) -> P4Error:
    """RESOURCE_EXHAUSTED, for a program."""
    return P4Error(Code.RESOURCE_EXHAUSTED, f"{why}; make it smaller, or raise the limit (--grpc-limit)")
