"""The official P4Runtime messages, as `p4.TableEntry` and so on.

The package `p4runtime` holds code that was generated for a protobuf so old that today's cannot import it. The descriptors in it are
the official ones all the same, so the messages are made from those. They are in a pool of their own: a program that has
another copy of the same messages can use both.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf import any_pb2, descriptor_pool, message_factory, struct_pb2, text_format

from tidegate._core import TidegateError

# In the order of need. None is imported: that would put it into the pool that all share.
_FILES = (
    ("google.rpc", "status_pb2.py"),
    ("p4", "config/v1/p4types_pb2.py"),
    ("p4", "config/v1/p4info_pb2.py"),
    ("p4", "v1/p4data_pb2.py"),
    ("p4", "v1/p4runtime_pb2.py"),
)
# In either form that generated code has had.
_DESCRIPTOR = re.compile(
    r"""(?:serialized_pb=|AddSerializedFile\(\s*)(b(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))"""
)
_PACKAGES = ("p4.v1", "p4.config.v1", "google.rpc", "google.protobuf")
SERVICE = "p4.v1.P4Runtime"


def _pool() -> tuple[descriptor_pool.DescriptorPool, list[Any]]:
    """A pool, and the files in it."""
    pool = descriptor_pool.DescriptorPool()
    files = [pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb) for known in (any_pb2, struct_pb2)]
    for package, name in _FILES:
        found = importlib.util.find_spec(package)
        if found is None or not found.submodule_search_locations:
            raise TidegateError(f"{package} is not there; `pip install p4runtime` brings it")
        path = Path(next(iter(found.submodule_search_locations))) / name
        match = re.search(_DESCRIPTOR, path.read_text())
        if match is None:
            raise TidegateError(f"{path} holds no descriptor; use p4runtime 1.6")
        files.append(pool.AddSerializedFile(ast.literal_eval(match[1])))
    return pool, files


def _classes(messages: Iterable[Any]) -> Iterator[Any]:
    """The classes of messages and of those declared in them."""
    for found in messages:
        yield message_factory.GetMessageClass(found)
        yield from _classes(found.nested_types)


class _Messages:
    """Message classes by name."""

    def __init__(self) -> None:
        self.pool, files = _pool()
        # Protobuf holds a class only while there is a message of it. If one thread collects it as garbage while another one makes
        # such a message, protobuf 6.33 crashes. So all of them are made here, and held.
        self.classes = [one for file in files for one in _classes(file.message_types_by_name.values())]

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
