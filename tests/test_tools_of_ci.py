"""What `.ci/run` installs is what tests look for, and a test that is skipped there for want of it fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOT_INSTALLED = {
    "cargo": "the builds before the tests need it",
    "cargo-nextest": "a package of requirements.lock",
    "git": "a checkout has it",
    "make": "runs the tests",
    "qemu-aarch64": "a soak test's",
}
"""Programs that tests look for and the list of `.ci/run` does not name."""
BESIDE = {"promtool": "prometheus", "dumpcap": "tshark", "tc": "iproute2"}
"""Programs that come with a package of `TIDEGATE_TOOLS`."""

SKIPS = """
import pytest

@pytest.fixture
def browser():
    pytest.skip("needs chromium")

@pytest.mark.skipif(True, reason="needs node")
def test_a_mark(): ...

def test_a_fixture(browser): ...

def test_the_test():
    pytest.skip("Mininet is not installed: apt install mininet")

def test_a_kernel():
    pytest.skip("this kernel has no sch_dualpi2, says the nodejs-like tool of fish.d")

@pytest.mark.xfail(reason="needs node")
def test_that_is_expected_to_fail():
    assert False
"""


def wanted() -> set[str]:
    """The value of `TIDEGATE_TOOLS` that `.ci/run` makes."""
    text = (ROOT / ".ci" / "run").read_text()
    lists = re.findall(r'^TIDEGATE_TOOLS="([^"$]*)"', text, re.M)
    wants = re.findall(r'\bwant (\S+) ("[^"]*"|[^\s;]+)', text)
    assert len(lists) == 1
    assert len(wants) > 20
    return {*lists[0].split(), *(word.strip('"') for pair in wants for word in " ".join(pair).split())}


def test_every_program_that_tests_look_for_is_in_the_list() -> None:
    files = [*ROOT.glob("tests/*.py"), *ROOT.glob("python/tidegate/**/test_*.py")]
    looked = {name for path in files for name in re.findall(r'which\("([^"]+)"', path.read_text())}
    assert {"node", "systemd-analyze", "chromium"} <= looked
    listed = wanted() | {"hadolint"}
    assert {BESIDE.get(name, name) for name in looked - NOT_INSTALLED.keys()} - listed == set()


LIVE = """
import conftest
import pytest

conftest.may_make_namespaces = lambda: False

@pytest.mark.live
def test_that_is_live(): ...
"""


@pytest.mark.slow
def test_live_tests_that_are_skipped_without_root_fail(tmp_path: Path) -> None:
    assert "root" in wanted()
    returned, said = ran(tmp_path, LIVE, "")
    assert (returned, "1 skipped" in said) == (0, True), said
    returned, said = ran(tmp_path, LIVE, "iperf3 root")
    assert (returned, "needs root: makes network namespaces" in said) == (1, True), said


def test_what_is_skipped_without_root_says_so() -> None:
    files = [*ROOT.glob("tests/*.py"), *ROOT.glob("python/tidegate/**/test_*.py")]
    asked = r"skipif\(os\.geteuid\(\) != 0, reason=(.*)\)"
    reasons = [why for path in files for why in re.findall(asked, path.read_text())]
    assert len(reasons) > 5
    assert [why for why in reasons if not why.startswith('"needs root')] == []


def ran(folder: Path, text: str, tools: str) -> tuple[int, str]:
    """Exit code and last line of pytest over one test file, where these tools are meant to be."""
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "test_skips.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*command, "--rootdir", folder, folder],
        env=os.environ | {"TIDEGATE_TOOLS": tools},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tools", "code", "counts"),
    [
        ("", 0, "4 skipped, 1 xfailed"),
        ("iperf3 dualpi fish tool.s", 0, "4 skipped, 1 xfailed"),
        ("node", 1, "3 skipped, 1 xfailed, 1 error"),
        ("node chromium mininet", 1, "1 failed, 1 skipped, 1 xfailed, 2 errors"),
    ],
)
def test_a_skip_for_want_of_a_tool_of_the_list_fails(
    tools: str, code: int, counts: str, tmp_path: Path
) -> None:
    returned, said = ran(tmp_path, SKIPS, tools)
    assert (returned, counts in said.splitlines()[-1]) == (code, True), said
    if "chromium" in tools:
        assert "needs chromium; TIDEGATE_TOOLS says that this machine has `chromium`" in said


@pytest.mark.slow
def test_so_does_a_file_that_is_skipped(tmp_path: Path) -> None:
    text = 'import pytest\npytest.importorskip("no_such", reason="needs the extra `view`")\n'
    assert ran(tmp_path, text, "")[0] == pytest.ExitCode.NO_TESTS_COLLECTED
    returned, said = ran(tmp_path, text, "extra")
    assert (returned, "TIDEGATE_TOOLS says" in said) == (pytest.ExitCode.INTERRUPTED, True), said
