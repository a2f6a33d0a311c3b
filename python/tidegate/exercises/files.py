"""Files that describe a network of exercises: those of the public P4 tutorials, and those of p4-utils."""

from __future__ import annotations

from pathlib import Path

from tidegate.exercises import p4utils, tutorials
from tidegate.exercises.reading import load
from tidegate.exercises.topology import Topology


def read(path: Path) -> Topology:
    """The topology in a file; raises `TidegateError` with the place of what is wrong."""
    text = load(path)
    return p4utils.build(path, text) if "topology" in text else tutorials.build(path, text)
