#!/usr/bin/env python3
"""A webhook receiver: it checks the signature, stores the update, answers, and works afterwards.

The answer decides what becomes of an update, so each has one meaning here:
  200  stored and synced, or stored before, or of a type that this bot doesn't know
  400  signed by SMeet, but no update: it can never be handled (SMeet moves it to FAILED)
  401  the signature doesn't match (SMeet pauses, nothing is lost)
  413  longer than any update
  422  an update that bot_logic.check() refuses for good (SMeet moves it to FAILED, the owner can retry it)
  503  the store failed (SMeet sends it again)
"""
from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, Tuple

import bot_logic
import smeet
from inbox import Inbox, Worker

# snippet: verify
import hashlib
import hmac
import re
from typing import Optional

TOLERANCE_SECONDS = 300


def verify_signature(secret: bytes, header: Optional[str], body: bytes, now: float) -> bool:
    """Tells whether X-SMeet-Signature (t=<unix seconds>,v1=<hex>) was made for this very body.

    secret is the webhook secret as it was shown, in UTF-8: never decode it. body is what came over
    the wire, before any JSON parsing. now is time.time().
    """
    fields = [item.strip().partition("=") for item in (header or "").split(",")]
    times = [value for name, _, value in fields if name == "t"]
    signatures = [value for name, _, value in fields if name == "v1"]
    if len(times) != 1 or not re.fullmatch("[0-9]{1,12}", times[0]):
        return False
    if abs(now - int(times[0])) > TOLERANCE_SECONDS:
        return False  # somebody may be sending an old request again
    expected = hmac.new(secret, times[0].encode() + b"." + body, hashlib.sha256).hexdigest().encode()
    # There may be more than one v1, and any of them may match. compare_digest takes the same time
    # wherever the first difference is.
    return any([hmac.compare_digest(expected, value.encode("utf-8", "replace")) for value in signatures])
# snippet end


log = logging.getLogger("webhook_bot")

MAX_BODY = 512 * 1024         # the largest update is about half of that
DRAINED = 8 * 1024 * 1024     # of a longer body, so that its sender gets to read the answer
IDLE_SECONDS = 75             # SMeet keeps a connection for 60
TYPES = {"message", "message_edited", "message_deleted", "callback_query", "chat_access_changed",
         "file_status_changed"}


class Receiver(ThreadingHTTPServer):
    """Takes SMeet's requests at one path. stored() is called after each new update. check(update) says why
    an update can never be handled."""

    def __init__(self, address: Tuple[str, int], path: str, secret: str, inbox: Inbox, stored: Callable[[], None],
                 tls: Optional[ssl.SSLContext] = None,
                 check: Callable[[Dict[str, Any]], Optional[str]] = lambda _: None) -> None:
        if not secret:
            raise ValueError("without the webhook secret anybody could send updates")
        self.path, self.secret, self.inbox, self.stored, self.check = path, secret.encode(), inbox, stored, check
        super().__init__(address, Request)
        if tls is not None:  # the handshake belongs into the connection's thread, not into accept()
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def take(self, header: Optional[str], body: bytes) -> int:
        """The status for one request."""
        if not verify_signature(self.secret, header, body, time.time()):
            log.warning("a request with a wrong signature was refused")
            return 401
        try:
            text = body.decode()
            update = json.loads(text)
            event_id, update_id, kind = (update[name] for name in ("event_id", "update_id", "type"))
            if not all(re.fullmatch("[!-~]{1,255}", value) for value in (event_id, update_id, kind)):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            log.error("a signed request that is no update was refused for good")
            return 400
        if kind not in TYPES:
            log.info("update %s has the type %s: ignored", update_id, kind)
            return 200
        problem = self.check(update)
        if problem:
            log.error("update %s was refused for good: %s", update_id, problem)
            return 422
        try:
            new = self.inbox.store(event_id, text)
        except sqlite3.Error as fault:
            log.error("update %s can't be stored: %s", update_id, fault)
            return 503
        log.info("update %s %s", update_id, "stored" if new else "came again")
        if new:
            self.stored()
        return 200

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.info("a connection broke: %s", sys.exc_info()[0])


class Request(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"  # keeps the connection for the next update
    timeout = IDLE_SECONDS
    server_version, sys_version = "webhook_bot", ""

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if self.path.partition("?")[0] != self.server.path:
            self.answer(404, close=True)
        elif not re.fullmatch("[0-9]{1,12}", length) or "Transfer-Encoding" in self.headers:
            self.answer(411, close=True)  # SMeet always says the length
        elif int(length) > MAX_BODY:
            left = min(int(length), DRAINED)
            while left > 0 and (part := self.rfile.read(min(left, 65536))):
                left -= len(part)
            self.answer(413, close=True)
        else:
            body = self.rfile.read(int(length))
            if len(body) < int(length):
                self.close_connection = True  # the sender hung up: nobody waits for an answer
                return
            self.answer(self.server.take(self.headers.get("X-SMeet-Signature"), body))

    def do_GET(self) -> None:
        self.answer(200 if self.path == "/healthz" else 405 if self.path == self.server.path else 404, close=True)

    def answer(self, status: int, close: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if close:
            self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass  # the address of a webhook may hold a secret


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    os.umask(0o077)  # the store holds what people wrote
    env, proxied = os.environ.get, "--behind-proxy" in sys.argv[1:]
    secret, token = env("SMEET_WEBHOOK_SECRET", "").strip(), env("SMEET_TOKEN", "").strip()
    certificate, key = env("SMEET_WEBHOOK_CERT"), env("SMEET_WEBHOOK_KEY")
    host = env("SMEET_WEBHOOK_HOST") or ("127.0.0.1" if proxied else "")
    port, path = env("SMEET_WEBHOOK_PORT") or "8443", env("SMEET_WEBHOOK_PATH") or "/smeet"
    if not secret:
        log.error("Set SMEET_WEBHOOK_SECRET to the secret that the Connection screen showed.")
        return 1
    if not proxied and not (certificate and key):
        log.error("Set SMEET_WEBHOOK_CERT and SMEET_WEBHOOK_KEY to the files of the certificate and its key, "
                  "or start with --behind-proxy where a proxy does HTTPS.")
        return 1
    if not re.fullmatch("[0-9]{1,5}", port) or not path.startswith("/"):
        log.error("SMEET_WEBHOOK_PORT is a number, SMEET_WEBHOOK_PATH begins with a slash.")
        return 1
    try:
        tls = None
        if not proxied:
            tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            tls.load_cert_chain(certificate, key)
        client = smeet.Client(env("SMEET_URL") or "http://127.0.0.1:8080", token) if token else None
        inbox = Inbox(env("SMEET_WEBHOOK_STORE") or "./webhook_bot.sqlite3")
        worker = Worker(inbox, bot_logic.Work(client))
        # Without a client updates are only logged, whatever is in them.
        check = bot_logic.check if client else lambda _: None
        receiver = Receiver((host, int(port)), path, secret, inbox, worker.news.set, tls, check)
    except ValueError as problem:
        log.error("SMEET_TOKEN or SMEET_URL is wrong: %s.", problem)
        return 1
    except (OSError, OverflowError, sqlite3.Error) as fault:
        log.error("Can't start: %s", fault)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):  # in a thread, since shutdown() waits for serve_forever()
        signal.signal(number, lambda *_: threading.Thread(target=receiver.shutdown).start())
    worker.start()
    log.info("receiving at %s://%s:%d%s", "http" if proxied else "https", host or "0.0.0.0",
             receiver.server_address[1], path)
    receiver.serve_forever(poll_interval=0.1)
    if client is not None:
        client.stop.set()
    worker.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
