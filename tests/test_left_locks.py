"""What `tidegate clean` removes of locks of interfaces."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from namespaces import needs_root
from tidegate.hosts import interface_lock, left_locks


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(left_locks, "SWITCHES", tmp_path / "switch")
    monkeypatch.setattr(interface_lock, "FOLDER", tmp_path / "router")
    (tmp_path / "switch").mkdir(mode=0o700)
    (tmp_path / "router").mkdir(mode=0o755)
    return tmp_path


@needs_root
def test_free_locks_are_removed_and_others_stay(folder: Path) -> None:
    free = [folder / "switch/interface-4026532177-6.lock", folder / "router/4026532177-2.lock"]
    other = [folder / "switch/interface-4026532177-x.lock", folder / "switch/notes"]
    held, full = folder / "switch/interface-4026532177-7.lock", folder / "switch/interface-1-1.lock"
    for path in (*free, *other, held):
        path.touch()
    full.write_text("somebody's")
    (folder / "switch/interface-1-2.lock").symlink_to(full)
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert left_locks.remove() == [str(path) for path in free]
    assert sorted(os.listdir(folder / "switch")) == sorted(
        [held.name, full.name, "interface-1-2.lock", *(path.name for path in other)]
    )
    assert left_locks.remove() == [str(held)]


@needs_root
def test_a_lock_that_is_free_has_no_second_owner(folder: Path) -> None:
    """Who has opened the file before its name is removed sees that, and takes another one."""
    interface_lock.FOLDER.mkdir(exist_ok=True)
    first = interface_lock.InterfaceLock("lo", 1)
    (name,) = os.listdir(interface_lock.FOLDER)
    assert left_locks.remove() == []
    first.close()
    (interface_lock.FOLDER / name).touch()
    assert left_locks.remove() == [str(interface_lock.FOLDER / name)]
    interface_lock.InterfaceLock("lo", 1).close()


@needs_root
def test_a_folder_that_others_can_write_is_left_alone(folder: Path) -> None:
    (folder / "switch/interface-1-1.lock").touch()
    (folder / "switch").chmod(0o777)
    assert left_locks.remove() == []
    subprocess.run(["chown", "nobody", folder / "switch"], check=True)
    (folder / "switch").chmod(0o700)
    assert left_locks.remove() == []
