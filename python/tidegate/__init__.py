"""Tidegate: P4 data planes that help TCP."""

from pathlib import Path

from tidegate._core import TidegateError, __version__

INCLUDE = str(Path(__file__).parents[1])
"""The folder for `-I` under which `tidegate/p4/*.p4` are: headers, forwarding and ECN marking that systems share."""

__all__ = ["INCLUDE", "TidegateError", "__version__"]
