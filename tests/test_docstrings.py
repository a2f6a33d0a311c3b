"""The examples in docstrings are run, and what newcomers call first has one."""

import doctest
import importlib
import tempfile
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

import tidegate
from tidegate.network import Link, Network
from tidegate.p4 import Pipeline, Program
from tidegate.results import Result

MODULES = (
    "tidegate",
    "tidegate.html",
    "tidegate.network.flows",
    "tidegate.network.links",
    "tidegate.network.network",
    "tidegate.network.topology",
    "tidegate.p4",
    "tidegate.results",
    "tidegate.suggest",
    "tidegate.topologies",
    "tidegate.units",
)
FIRST = (
    Network,
    *(
        getattr(Network, name)
        for name in (
            [
                "host",
                "router",
                "switch",
                "link",
                "tcp",
                "udp",
                "transfers",
                "workload",
                "request_response",
                "record",
                "at",
                "capture",
                "run",
            ]
        )
    ),
    Link.set,
    Result.save,
    Result.goodput_mbps,
    Result.page_times,
    Program,
    Pipeline,
    tidegate.program,
    *(
        getattr(importlib.import_module("tidegate.topologies"), name)
        for name in ("dumbbell", "parking_lot", "leaf_spine", "clos")
    ),
)


def examples(module: ModuleType) -> list[doctest.DocTest]:
    known = {**vars(module), "tidegate": tidegate, "Network": Network, "pl": pl}
    return [test for test in doctest.DocTestFinder().find(module, globs=known) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_right_and_leave_nothing_behind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    found = examples(importlib.import_module(name))
    assert found
    for test in found:
        assert runner.run(test).failed == 0, test.name
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("one", FIRST, ids=lambda one: one.__qualname__)
def test_what_is_called_first_has_an_example(one: object) -> None:
    assert ">>> " in (one.__doc__ or "")


def test_a_wrong_example_is_found() -> None:
    module = ModuleType("wrong", ">>> 1 + 1\n3\n")
    runner = doctest.DocTestRunner(verbose=False)
    (test,) = examples(module)
    assert runner.run(test, out=lambda text: None).failed == 1
