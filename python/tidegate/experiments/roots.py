"""Modules of users' folders. Two folders may have modules of one name, and an experiment has those of its own.

An experiment's folder is entered when it is looked for; modules of the folders that were entered before are then kept from imports, also
from those that a function makes when it is called, until their folder is entered again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from tidegate.experiments import user_code

OF_FILE = "tidegate_file_"
"""How the name begins of a module that a file in no package is. It is of that file alone."""

_aside: dict[Path | None, dict[str, ModuleType]] = {None: {}}
"""Modules that are kept from imports, by the folder that was entered; those of installed packages are under `None`."""
_current: Path | None = None


def enter(top: Path | None) -> None:
    """Let imports find the modules of a folder; of `None`, those of installed packages."""
    global _current
    if top == _current:
        return
    names = set() if top is None else {path.stem for path in top.iterdir()}
    if top is not None:
        _aside.setdefault(top, {})
    for name, module in list(sys.modules.items()):
        own = _folder_of(name, module)
        installed = own is None and name.partition(".")[0] in names and user_code.is_users(_file(module))
        if installed or (own is not None and own != top):
            _aside[own][name] = sys.modules.pop(name)
    back = _aside[top] | {
        name: one for name, one in _aside[None].items() if name.partition(".")[0] not in names
    }
    sys.modules.update(back)
    for kept in (_aside[top], _aside[None]):
        for name in back:
            kept.pop(name, None)
    others = [str(path) for path in _aside if path is not None and path != top]
    sys.path[:] = [path for path in sys.path if path not in others] + [p for p in others if p in sys.path]
    if top is not None:
        sys.path[:] = [str(top), *(path for path in sys.path if path != str(top))]
    _current = top


def _file(module: ModuleType) -> str:
    """Where a module is; of a package without `__init__.py`, its folder."""
    found = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return str(found or "")


def _folder_of(name: str, module: ModuleType) -> Path | None:
    """The folder that was entered that a module is of."""
    if name == "__main__" or name.startswith(OF_FILE):
        return None
    file = Path(_file(module))
    found = [top for top in _aside if top is not None and file.is_relative_to(top)]
    return max(found, key=lambda top: len(top.parts), default=None)
