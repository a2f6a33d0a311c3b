"""The dashboard: a web page on this machine that shows a finished run, or one that goes on.

`page` is the page as the run's process has it; `serving` is the process that serves it, which takes neither the interpreter nor a
processor from the run. `channel` is between the two, and `frames` says what goes over it and over the page's WebSocket. In the page's
process, `board` keeps what is shown, `server` gives it to who has the token, and `packets` reads the trace of a flow, and `flows`
the packets of a switch's port, of which `capturing` is the other side. `finished`,
`running` and `switching` are what is shown. The page is in `tidegate/assets` (`view.html`, `view.js`, `view.css`).
"""
