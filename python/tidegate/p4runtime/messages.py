"""The official P4Runtime messages, as `p4.TableEntry` and so on.

The package `p4runtime` holds code that was generated for a protobuf so old that today's cannot import it. The descriptors in it are
the official ones all the same, so the messages are made from those. They are in a pool of their own: a program that has
another copy of the same messages can use both.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from typing import Any

from google.protobuf import any_pb2, descriptor_pool, message_factory, text_format
from google.rpc import status_pb2

from tidegate._core import TidegateError

_FILES = (
    "config/v1/p4types_pb2.py",
    "config/v1/p4info_pb2.py",
    "v1/p4data_pb2.py",
    "v1/p4runtime_pb2.py",
)
_PACKAGES = ("p4.v1", "p4.config.v1", "google.rpc", "google.protobuf")
SERVICE = "p4.v1.P4Runtime"


def _pool() -> descriptor_pool.DescriptorPool:
    found = importlib.util.find_spec("p4")
    if found is None or not found.submodule_search_locations:
        raise TidegateError("the package `p4runtime` is not there; `pip install p4runtime` brings it")
    root = Path(next(iter(found.submodule_search_locations)))
    pool = descriptor_pool.DescriptorPool()
    for module in (any_pb2, status_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    for name in _FILES:
        # Either form that generated code has had.
        match = re.search(
            r"(?:serialized_pb=|AddSerializedFile\()(b'(?:[^'\\]|\\.)*')", (root / name).read_text()
        )
        if match is None:
            raise TidegateError(f"{root / name} holds no descriptor; use p4runtime 1.6")
        pool.AddSerializedFile(ast.literal_eval(match[1]))
    return pool


class _Messages:
    """Message classes by name."""

    def __init__(self) -> None:
        self.pool = _pool()

    def __getattr__(self, name: str) -> Any:
        for package in _PACKAGES:
            try:
                found = self.pool.FindMessageTypeByName(f"{package}.{name}")
            except KeyError:
                continue
            made = message_factory.GetMessageClass(found)
            setattr(self, name, made)
            return made
        raise AttributeError(f"P4Runtime has no message {name}")


p4 = _Messages()


def parse_p4info(text: str) -> Any:
    """P4Info from its text form; raises if anything in it is unknown."""
    return text_format.Parse(text, p4.P4Info())


def methods() -> list[Any]:
    """The service's methods, as descriptors."""
    return list(p4.pool.FindServiceByName(SERVICE).methods)
