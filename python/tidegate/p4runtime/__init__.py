"""P4Runtime: a server in front of a switch, and a switch behind a server."""

import os

# Errors are exceptions here, with one message each; what gRPC's core prints beside them is of no use to anybody.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# gRPC's handler of forks aborts some of the children that Popen forks with a `preexec_fn`; none of Tidegate's uses gRPC.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from tidegate.p4runtime.client import RemoteSwitch, connect
from tidegate.p4runtime.connection import ClientTls, Connection
from tidegate.p4runtime.limits import Limits
from tidegate.p4runtime.listening import Tls
from tidegate.p4runtime.server import Server

__all__ = ["ClientTls", "Connection", "Limits", "RemoteSwitch", "Server", "Tls", "connect"]
