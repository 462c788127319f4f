"""`curl`: real HTTPS through the uplink, and a small emulation of olmo-data.org."""

from __future__ import annotations

import argparse
import http.client
import re
import ssl
import sys
import time
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from simulator.sandbox.library import olmo_data
from simulator.sandbox.library.https import HttpsConnection
from simulator.sandbox.library.olmo_data import Answer

BAD_OPTION, UNRESOLVED, UNREACHABLE, HTTP_ERROR, WRITE_ERROR, BAD_FILE, TIMED_OUT = 2, 6, 7, 22, 23, 26, 28
CERTIFICATE, EMPTY_ANSWER = 60, 52
TRANSIENT = (408, 429, 500, 502, 503, 504)
SECONDS = 1 / 20  # between retries, curl waits this part of the time on real Azure
TIMEOUT_S = 60.0
_ADDRESS = re.compile(r"[0-9.]+")
_REACHED = rf"{_ADDRESS.pattern}|[a-z0-9]+\.blob\.core\.windows\.net"
"""Hosts that the uplink may reach."""


class CurlError(Exception):
    """An error that ends curl with `code`."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CurlError(BAD_OPTION, f"{message} (the simulator's curl supports some options only)")


def main(arguments: list[str]) -> int:
    silent = show = False
    try:
        options = parse(arguments)
        silent, show = options.silent, options.show_error
        _perform(options)
    except CurlError as error:
        if show or not silent:
            print(f"curl: ({error.code}) {error}", file=sys.stderr)
        return error.code
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = _Parser(add_help=False, allow_abbrev=False)
    for flag in ("-s/--silent", "-S/--show-error", "-f/--fail", "-L/--location", "-I/--head", "--retry-all-errors"):
        parser.add_argument(*flag.split("/"), action="store_true")
    for flag in (
        "-X/--request",
        "-T/--upload-file",
        "-o/--output",
        "-D/--dump-header",
        "-w/--write-out",
        "-K/--config",
    ):
        parser.add_argument(*flag.split("/"), default="")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("-r", "--range", default="")
    parser.add_argument("--connect-timeout", type=float, default=TIMEOUT_S)
    parser.add_argument("--retry", type=int, default=0)
    parser.add_argument("url", nargs="?", default="")
    options = parser.parse_args(arguments)
    if options.config:
        options.url = options.url or _configured(options.config)
    if not options.url:
        raise CurlError(BAD_OPTION, "no URL specified")
    return options


def _configured(name: str) -> str:
    text = sys.stdin.read() if name == "-" else Path(name).read_text()
    found = re.search(r'^\s*url\s*[= ]\s*"?([^"\n]+)"?\s*$', text, re.MULTILINE)
    return found[1] if found else ""


def _perform(options: argparse.Namespace) -> None:
    for attempt in range(options.retry + 1):
        last = attempt == options.retry
        try:
            answer = _ask(options)
        except CurlError:
            if last or not options.retry_all_errors:
                raise
        else:
            failed = options.fail and answer.status >= 400
            if last or not (answer.status in TRANSIENT or (failed and options.retry_all_errors)):
                return _deliver(options, answer)
        time.sleep(SECONDS * 2**attempt)
    return None


def _ask(options: argparse.Namespace) -> Answer:
    url = urlsplit(options.url)
    method = options.request or ("HEAD" if options.head else "PUT" if options.upload_file else "GET")
    if url.hostname == olmo_data.HOST:
        return olmo_data.answer(method, url.path, options.range)
    if url.scheme != "https" or not re.fullmatch(_REACHED, url.hostname or ""):
        raise CurlError(UNRESOLVED, f"Could not resolve host: {url.hostname}")
    headers = dict(_header(line) for line in options.header)
    if options.range:
        headers["Range"] = f"bytes={options.range}"
    return _real(str(url.hostname), url.port or 443, method, f"{url.path}?{url.query}", headers, options)


def _real(
    host: str, port: int, method: str, target: str, headers: dict[str, str], options: argparse.Namespace
) -> Answer:
    try:
        body = Path(options.upload_file).read_bytes() if options.upload_file else None
    except OSError as error:
        raise CurlError(BAD_FILE, f"Failed to open {options.upload_file}: {error.strerror}") from error
    connection = HttpsConnection(host, port, timeout=options.connect_timeout)
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        return Answer(response.status, response.reason, dict(response.getheaders()), response.read())
    except ssl.SSLCertVerificationError as error:
        raise CurlError(CERTIFICATE, f"SSL certificate problem: {error.verify_message}") from error
    except TimeoutError as error:
        raise CurlError(TIMED_OUT, "Operation timed out") from error
    except ConnectionRefusedError as error:
        if not _ADDRESS.fullmatch(host):
            raise CurlError(UNRESOLVED, f"Could not resolve host: {host}") from error
        raise CurlError(UNREACHABLE, str(error)) from error
    except (OSError, http.client.HTTPException) as error:
        raise CurlError(EMPTY_ANSWER, f"Empty reply from server ({error})") from error
    finally:
        connection.close()


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def _deliver(options: argparse.Namespace, answer: Answer) -> None:
    head = f"HTTP/1.1 {answer.status} {answer.reason}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items()) + "\r\n"
    _write(options.dump_header, head.encode())
    if options.fail and answer.status >= 400:
        raise CurlError(HTTP_ERROR, f"The requested URL returned error: {answer.status}")
    if options.head:
        _write(options.output or "-", head.encode())
    else:
        _write(options.output or "-", answer.body)
    if options.write_out:
        print(options.write_out.replace("%{http_code}", str(answer.status)).replace("\\n", "\n"), end="")


def _write(name: str, content: bytes) -> None:
    if name == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    elif name:
        try:
            Path(name).write_bytes(content)
        except OSError as error:
            raise CurlError(WRITE_ERROR, f"Failure writing output to {name}: {error.strerror}") from error
