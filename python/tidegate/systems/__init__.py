"""The systems that Tidegate carries, one folder each.

The environment variable TIDEGATE_SYSTEMS names further folders with systems in them, apart by `:`. A system is found by being there:
its experiments are the files in its `experiments`.
"""

from __future__ import annotations

import os

ELSEWHERE = [folder for folder in os.environ.get("TIDEGATE_SYSTEMS", "").split(os.pathsep) if folder]
__path__ += ELSEWHERE
