"""`make demo`: `python -m tidegate.systems.meter FOLDER`. Ctrl-C ends it from its first moment on."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

INTERRUPTED = 130
MAIN = os.getpid()


def stop(number: int, frame: object) -> None:
    """End at once, with everything that this process has started: what is half done is of no use."""
    if os.getpid() != MAIN:
        # A worker process, which has this from its parent.
        os._exit(INTERRUPTED)
    import multiprocessing

    for worker in multiprocessing.active_children():
        worker.kill()
    # On a terminal a line may be half written, and the cursor hidden.
    sys.stderr.write("\r\x1b[K\x1b[?25h" if sys.stderr.isatty() else "")
    sys.stderr.write("interrupted; the demo can be begun again with `make demo`\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)


def main() -> None:
    """Entry point."""
    folders = sys.argv[1:]
    if len(folders) > 1 or any(folder.startswith("-") for folder in folders):
        sys.stderr.write("usage: python -m tidegate.systems.meter [FOLDER]\n")
        sys.exit(2)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    # What these need takes a second to load.
    from tidegate._core import TidegateError
    from tidegate.systems.meter import demo

    try:
        demo.main(Path(folders[0] if folders else "runs/demo"))
    except KeyboardInterrupt:
        # While the experiment's own handler was in the place of ours.
        stop(signal.SIGINT, None)
    except TidegateError as error:
        sys.exit(f"tidegate: error: {error}")


if __name__ == "__main__":
    main()
