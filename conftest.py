"""What the tests of all folders share."""

import gc

import pytest
from hypothesis import settings

from tidegate.lab.kernel import may_make_namespaces

# The machine may have other work, so examples of property tests have no deadline.
settings.register_profile("tidegate", deadline=None)
settings.load_profile("tidegate")


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip live tests where they cannot run."""
    if item.get_closest_marker("live") and not may_make_namespaces():
        pytest.skip("needs root: makes network namespaces and opens packet sockets")
