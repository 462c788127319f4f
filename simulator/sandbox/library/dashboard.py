"""The web server in place of Aim's and TensorBoard's: a page with the curves of all runs, and their points as JSON."""

from __future__ import annotations

import http.server
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import parse_qsl, urlsplit

from simulator.sandbox.library.scalars import Point, Run

WIDTH, HEIGHT = 300, 90  # of a curve, in units of SVG
REFRESH_SECONDS = 5
ALL = "/scalars.json"
Query = Mapping[str, str]
Data = Callable[[Sequence[Run], Query], object]
"""What is answered at a path, as JSON. Raises KeyError where there is no such thing."""


@dataclass(frozen=True)
class Dashboard:
    """`read` finds the runs, anew for each request; `data` has paths of the real server that answer as it does."""

    name: str
    read: Callable[[], Sequence[Run]]
    data: Mapping[str, Data]

    def server(self, host: str, port: int) -> http.server.ThreadingHTTPServer:
        """Listens. Raises OSError where it cannot."""
        handler = type("Handler", (_Handler,), {"dashboard": self})
        return http.server.ThreadingHTTPServer((host, port), handler)

    def answer(self, target: str) -> tuple[int, str, str]:
        """Status, content type and body for a path with its query."""
        url = urlsplit(target)
        runs = self.read()
        if url.path == "/":
            return 200, "text/html; charset=utf-8", self.page(runs)
        try:
            found = {**self.data, ALL: _all}[url.path](runs, dict(parse_qsl(url.query)))
        except KeyError as error:
            return 404, "text/plain; charset=utf-8", f"not found: {error.args[0]}\n"
        return 200, "application/json", json.dumps(found)

    def page(self, runs: Sequence[Run]) -> str:
        """HTML, complete in itself."""
        title = escape(f"{self.name}: the simulator's stand-in")
        body = "".join(map(_section, runs)) or "<p>There are no runs.</p>"
        links = " ".join(f'<a href="{path}">{path}</a>' for path in (ALL, *self.data))
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}"><style>body{{font-family:sans-serif}}'
            f"figure{{display:inline-block;margin:8px}}svg{{border:1px solid #ccc;display:block}}td{{padding:0 12px}}"
            f"</style></head><body><h1>{title}</h1><p>What the simulated training has written. JSON: {links}</p>"
            f"{body}</body></html>\n"
        )


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    dashboard: Dashboard

    def do_GET(self) -> None:
        status, kind, text = self.dashboard.answer(self.path)
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing, as the real ones do at the level of their logs."""


def _all(runs: Sequence[Run], _: Query) -> object:
    return {run.name: {"ended": run.ended, "scalars": run.curves} for run in runs}


def _section(run: Run) -> str:
    state = "ended" if run.ended else "in progress"
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{points[-1][2]:g}</td></tr>" for name, points in run.curves.items())
    figures = "".join(_figure(name, points) for name, points in run.curves.items())
    table = f"<table><tr><th>scalar</th><th>at update {run.steps}</th></tr>{rows}</table>"
    return f"<h2>{escape(run.name)}: {run.steps} updates, {state}</h2>{figures}{table}"


def _figure(name: str, points: Sequence[Point]) -> str:
    steps, values = [point[1] for point in points], [point[2] for point in points]
    low, high = min(values), max(values)
    across, up = WIDTH / max(steps[-1] - steps[0], 1), HEIGHT / ((high - low) or 1)
    places = " ".join(
        f"{(step - steps[0]) * across:.1f},{HEIGHT - (value - low) * up:.1f}"
        for step, value in zip(steps, values, strict=True)
    )
    line = f'<polyline points="{places}" fill="none" stroke="#06c"/>'
    caption = f"<figcaption>{escape(name)}: {low:g} to {high:g}</figcaption>"
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">{line}</svg>{caption}</figure>'
    )
