"""Dashboards for Grafana and alert rules for Prometheus, of the metrics of `tidegate switch` and the pacing agent."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from tidegate.files import replacing

FILES = ("README.md", "switch.json", "agent.json", "alerts.yml", "alerts_test.yml")


def write(folder: Path) -> list[Path]:
    """Write them into a folder; gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        with replacing(folder / name) as file:
            file.write(files(__name__).joinpath(name).read_bytes())
    return [folder / name for name in FILES]
