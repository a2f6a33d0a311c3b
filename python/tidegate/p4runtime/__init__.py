"""P4Runtime: a server in front of a switch, and a switch behind a server."""

from tidegate.p4runtime.client import RemoteSwitch, connect
from tidegate.p4runtime.connection import ClientTls, Connection
from tidegate.p4runtime.listening import Tls
from tidegate.p4runtime.server import Server

__all__ = ["ClientTls", "Connection", "RemoteSwitch", "Server", "Tls", "connect"]
