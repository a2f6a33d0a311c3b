"""What the tests of all folders share.

`TIDEGATE_TOOLS` names programs and packages that this machine is meant to have, with spaces between, and `root` where tests are meant to
have its rights: a test that is skipped for want of one of them fails. `.ci/run` sets it to what it installs, and to `root`. Skips for
other reasons, such as a kernel without a feature, stay skips.
"""

import gc
import os
import re
from collections.abc import Generator

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


def demand(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a failure of a skip whose reason names something of `TIDEGATE_TOOLS`."""
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return
    path, line, reason = report.longrepr
    for tool in os.environ.get("TIDEGATE_TOOLS", "").split():
        if re.search(rf"(?<![\w.-]){re.escape(tool)}(?![\w-]|\.\w)", reason, re.IGNORECASE):
            report.outcome = "failed"
            report.longrepr = f"{path}:{line}: {reason}; TIDEGATE_TOOLS says that this machine has `{tool}`"
            return


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skips of tests and fixtures."""
    report = yield
    demand(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skips of whole files."""
    report = yield
    demand(report)
    return report
