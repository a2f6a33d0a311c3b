"""`make dev` runs the tests that a change concerns."""

from __future__ import annotations

from affected import ALWAYS, PYTHON, ROOT, SYSTEMS, affected, imports


def names(*changed: str) -> set[str]:
    """Names of the test files that these files concern."""
    return {path.name for path in affected({ROOT / name for name in changed})} - {
        path.name for path in ALWAYS
    }


def test_files_that_import_it() -> None:
    assert PYTHON / "tidegate" / "units.py" in imports(PYTHON / "tidegate" / "p4" / "__init__.py")
    assert "test_network.py" in names("python/tidegate/units.py")


def test_a_test_concerns_itself_alone() -> None:
    assert names("tests/test_stf.py") == {"test_stf.py"}


def test_an_experiment_concerns_the_tests_of_its_system() -> None:
    found = names("python/tidegate/systems/meter/experiments/flows.py")
    own = {path.name for path in (SYSTEMS / "meter").rglob("test_*.py")}
    assert own <= found
    assert "test_switch.py" not in found


def test_p4_concerns_the_modules_of_its_folder() -> None:
    assert "test_stamps.py" in names("python/tidegate/systems/stamping/stamp.p4")


def test_what_is_shared_by_tests_concerns_them() -> None:
    assert "test_live.py" in names("tests/live.py")


def test_a_page_concerns_the_tests_of_pages() -> None:
    assert affected({ROOT / "docs" / "live.md"}) >= set(ALWAYS)
    assert affected([]) == set(ALWAYS)
