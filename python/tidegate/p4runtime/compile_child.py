"""Compiles one program in a process of its own, within limits. Run by `compiling.py`, never imported.

Arguments: the extension's file, the parent's process id, processor time in seconds, bytes of address space, bytes of an answer;
limits of the compiler, as NAME=VALUE.
The program's text is the standard input. The answer is the standard output: a letter, `+` with the P4Info, or `-` with what is wrong.
It imports nothing of the package, so that it starts in some tens of milliseconds.
"""

import ctypes
import os
import resource
import signal
import sys
import threading

PR_SET_PDEATHSIG = 1
NO_MEMORY = 3
"""Exit code; Rust's own way is to abort, with a message."""
STACK = 4 << 20


def confine(parent: int, cpu_s: int, memory: int) -> None:
    """End with the parent, and within limits."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The soft limit ends it by SIGXCPU, which tells it from other ends.
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    # If memory is short in all, this is the process that can be spared.
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")
    # It writes to pipes alone.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    # Packets come first.
    os.nice(10)


def compiled(extension: str, text: str, limits: dict[str, int]) -> tuple[str, str]:
    """What came of it."""
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("_core", extension, loader=ExtensionFileLoader("_core", extension))
    assert spec is not None
    assert spec.loader is not None
    core = module_from_spec(spec)
    spec.loader.exec_module(core)
    try:
        try:
            program = core.Program.from_text("program.p4", text, limits)
        except core.TidegateError as error:
            return "-", f"the program does not compile:\n{error}"
        try:
            # Its native code, and room for its state.
            core.Pipeline(program, "auto", 0)
        except core.TidegateError as error:
            return "-", f"the program cannot be run: {error}"
        return "+", program.p4info()
    except MemoryError:
        os._exit(NO_MEMORY)
    except BaseException as error:
        # A panic.
        return "-", f"the compiler failed at this program, which is a fault of it: {error}"


def main() -> None:
    """Read, compile, answer."""
    extension, parent, cpu_s, memory, most, *given = sys.argv[1:]
    limits = {name: int(value) for name, _, value in (one.partition("=") for one in given)}
    confine(int(parent), int(cpu_s), int(memory))
    text = sys.stdin.buffer.read().decode()
    # With less room on the stack than threads of the server have: what is deep here is not too deep there.
    threading.stack_size(STACK)
    answers: list[tuple[str, str]] = []
    thread = threading.Thread(target=lambda: answers.append(compiled(extension, text, limits)))
    thread.start()
    thread.join()
    kind, said = answers[0]
    out = said.encode()
    if kind == "+" and len(out) > int(most):
        kind, out = "-", f"the program's P4Info has {len(out)} bytes; at most {most} are taken".encode()
    sys.stdout.buffer.write(kind.encode() + out[: int(most)])


main()
