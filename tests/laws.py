"""The arithmetic of BPF congestion controls, compiled for this machine."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tidegate import TidegateError
from tidegate.hosts import libbpf
from tidegate.network import Network


def compiled_law(source: Path, folder: Path, *calls: tuple[str, Any, list[Any]]) -> ctypes.CDLL:
    """Functions of `source`: names, results and arguments. They stop where a number has no room."""
    library = folder / "law.so"
    command = [libbpf.COMPILER, "-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    checks = ["-fsanitize=undefined", "-fsanitize-trap=undefined"]
    subprocess.run([*command, *checks, "-o", str(library), str(source)], check=True)
    loaded = ctypes.CDLL(str(library))
    for name, result, arguments in calls:
        call = getattr(loaded, name)
        call.restype, call.argtypes = result, arguments
    return loaded


def simulated_options(control: str) -> list[str]:
    """Names of the options of a simulated congestion control, in alphabetical order."""
    net = Network()
    a, b = net.host("a"), net.host("b")
    with pytest.raises(TidegateError) as error:
        net.tcp(a, b, congestion_control=control, control_options={"no": 1})
    found = re.search(r"it has ([a-z_, ]+)", str(error.value))
    assert found is not None
    return sorted(found[1].split(", "))
