"""The dashboard: a web page on this machine that shows a finished run, or one that goes on in the simulator.

`server` serves it to who has its token, `frames` says what goes over its WebSocket, `finished` and `running` are what is shown. The
page is in `tidegate/assets` (`view.html`, `view.js`, `view.css`).
"""
