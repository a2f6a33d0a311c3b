"""Optuna's storages on file systems that get full: what is said of them, and a journal that stays whole."""

from __future__ import annotations

import errno
import os
import sqlite3
from typing import Any

FULL = (errno.ENOSPC, errno.EDQUOT)


def goes_on(error: object) -> str:
    """How to go on after a full file system; nothing after other errors."""
    full = (
        error.errno in FULL
        if isinstance(error, OSError)
        else getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    )
    return "; make room there: the same command goes on, and what is done is kept" if full else ""


def journal_file(path: str) -> Any:
    """A journal in a file. Optuna appends to a line that was cut off, as by a full file system, and then nobody can read the journal
    any more: here such a line is removed first.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

    class WholeLines(JournalFileSymlinkLock):  # type: ignore[misc]
        def acquire(self) -> bool:
            held: bool = super().acquire()
            _remove_part_of_line(path)
            return held

    return JournalStorage(JournalFileBackend(path, lock_obj=WholeLines(path)))


def _remove_part_of_line(path: str) -> None:
    with open(path, "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - 4096)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            if newline >= 0:
                end = begin + newline + 1
                break
            end = begin
        file.truncate(end)
