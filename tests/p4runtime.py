"""The official P4Runtime messages.

The `p4runtime` package holds code generated for a protobuf so old that today's cannot use it (maps come out wrong). What
it says about the messages is still right, so they are made anew from that.
"""

import os

os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"

from google.protobuf import any_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import Message
from p4.config.v1 import p4info_pb2, p4types_pb2


def _p4info_class() -> type[Message]:
    pool = descriptor_pool.DescriptorPool()
    for module in (any_pb2, p4types_pb2, p4info_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p4.config.v1.P4Info"))


def parse_p4info(text: str) -> Message:
    """P4Info from its text form; raises if anything in it is unknown."""
    return text_format.Parse(text, _p4info_class()())
