"""What `tidegate agent` keeps of notices, compiled for this machine."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from laws import compiled_law
from tidegate.hosts import libbpf

SOURCE = Path(__file__).parent / "data/notice_order.c"
SECOND = 10**9

pytestmark = pytest.mark.skipif(shutil.which(libbpf.COMPILER) is None, reason="needs clang")


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    byte, half, word, wide = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
    return compiled_law(
        SOURCE,
        tmp_path_factory.mktemp("order"),
        ("kept", wide, [half, half, byte]),
        ("kept_rate", word, [wide]),
        ("kept_weight", word, [wide]),
        ("kept_sequence", byte, [wide]),
        ("comes_before", byte, [word, word, wide]),
        ("counts_anew", byte, [wide, wide, wide]),
    )


@pytest.mark.parametrize("weight", [1, 0x7FFF, 0x8000, 0xFFFF])
@pytest.mark.parametrize("sequence", [0, 7, 128, 255])
def test_a_notice_for_all_flows_is_kept_as_it_was_said(
    weight: int, sequence: int, native: ctypes.CDLL
) -> None:
    said = native.kept(0x8001, weight, sequence)
    assert (native.kept_rate(said), native.kept_weight(said), native.kept_sequence(said)) == (
        0x8001,
        weight,
        sequence,
    )


def test_the_order_of_two_notices(native: ctypes.CDLL) -> None:
    # Up to 127 changes later, over the end of the count too; after a second without notices nothing is known.
    assert not native.comes_before(5, 250, 0)
    assert native.comes_before(250, 5, 0)
    assert native.comes_before(250, 5, SECOND - 1)
    assert not native.comes_before(250, 5, SECOND)


@pytest.mark.parametrize(("refresh_s", "wait_s"), [(0.3, 2), (2, 2), (10, 10)])
def test_a_link_that_owes_an_answer_may_count_anew(
    refresh_s: float, wait_s: int, native: ctypes.CDLL
) -> None:
    refresh = round(refresh_s * SECOND)
    assert not native.counts_anew(5, 4 + wait_s * SECOND, refresh)
    assert native.counts_anew(5, 5 + wait_s * SECOND, refresh)
    # One that owes none does not.
    assert not native.counts_anew(0, 10**15, refresh)
