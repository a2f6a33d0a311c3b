"""Tidegate: P4 data planes that help TCP."""

from tidegate._core import TidegateError, __version__

__all__ = ["TidegateError", "__version__"]
