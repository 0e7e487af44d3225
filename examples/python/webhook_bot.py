#!/usr/bin/env python3
"""A webhook receiver: it checks the signature, stores the update, answers, and works afterwards.

The answer decides what becomes of an update, so each has one meaning here:
  200  stored and synced, or stored before, or of a type that this bot doesn't know
  400  signed by SMeet, but no update: it can never be handled (SMeet moves it to FAILED)
  401  the signature doesn't match (SMeet pauses, nothing is lost)
  413  longer than any update
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
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, Tuple

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
KEPT_SECONDS = 8 * 24 * 3600  # an event can come again for 7 days
TRIES = 5                     # at handling an update; then it is set aside
TYPES = {"message", "message_edited", "message_deleted", "callback_query", "chat_access_changed",
         "file_status_changed"}


# What the bot does. Replace this with your own.

def handle(update: Dict[str, Any]) -> None:
    """Works on one update, after it was answered. After a crash it can be called again for the same
    update: give whatever it does a key of event_id and the action, for example "<event_id>:reply"."""
    log.info("handled %s %s (event %s)", update["type"], update["update_id"], update["event_id"])


class Inbox:
    """The updates that were taken, in SQLite. What store() returned for survives a power cut."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")  # a commit is on the disk before it returns
        self._db.execute("CREATE TABLE IF NOT EXISTS inbox (place INTEGER PRIMARY KEY AUTOINCREMENT, "
                         "event_id TEXT NOT NULL UNIQUE, body TEXT NOT NULL, taken REAL NOT NULL, "
                         "state TEXT NOT NULL DEFAULT 'waiting')")  # then handled, or set aside
        self._db.execute("CREATE INDEX IF NOT EXISTS inbox_waiting ON inbox (place) WHERE state = 'waiting'")

    def store(self, event_id: str, body: str) -> bool:
        """Stores an update once; says whether it is new."""
        with self._lock:
            return self._db.execute("INSERT INTO inbox (event_id, body, taken) VALUES (?, ?, ?) "
                                    "ON CONFLICT (event_id) DO NOTHING", (event_id, body, time.time())).rowcount == 1

    def first(self) -> Optional[Tuple[str, str]]:
        """event_id and body of the update that waits longest."""
        with self._lock:
            return self._db.execute("SELECT event_id, body FROM inbox WHERE state = 'waiting' "
                                    "ORDER BY place LIMIT 1").fetchone()

    def settle(self, event_id: str, state: str) -> None:
        with self._lock:
            self._db.execute("UPDATE inbox SET state = ? WHERE event_id = ?", (state, event_id))

    def tidy(self, now: float) -> None:
        """Forgets what was handled and is too old to come again."""
        with self._lock:
            self._db.execute("DELETE FROM inbox WHERE state = 'handled' AND taken < ?", (now - KEPT_SECONDS,))

    def close(self) -> None:
        with self._lock:
            self._db.close()


class Worker(threading.Thread):
    """Handles the stored updates one after another, the ones left from before a restart too."""

    def __init__(self, inbox: Inbox, handler: Callable[[Dict[str, Any]], None] = handle, pause: float = 1) -> None:
        super().__init__(daemon=True)
        self.inbox, self.handler, self.pause = inbox, handler, pause
        self.news, self.ending = threading.Event(), threading.Event()

    def run(self) -> None:
        tries, tidied = 0, 0.0
        while not self.ending.is_set():
            self.news.clear()  # before looking: what is stored after the look rings again
            try:
                if time.time() - tidied > 3600:
                    tidied = time.time()
                    self.inbox.tidy(tidied)
                row = self.inbox.first()
                if row is None:
                    self.news.wait(3600)
                    continue
                if self._handled(row[1]):
                    self.inbox.settle(row[0], "handled")
                    tries = 0
                    continue
                tries += 1
                if tries == TRIES:
                    log.error("event %s is set aside after %d tries", row[0], tries)
                    self.inbox.settle(row[0], "set aside")
                    tries = 0
                    continue
            except sqlite3.Error as fault:
                log.error("the store fails: %s", fault)
            self.ending.wait(self.pause * 2 ** tries)

    def _handled(self, body: str) -> bool:
        try:
            self.handler(json.loads(body))
            return True
        except Exception as bug:  # its text may quote the update, so only its kind and place are told
            log.error("%s at\n%s", type(bug).__name__, "".join(traceback.format_tb(bug.__traceback__)))
            return False

    def end(self) -> None:
        """Asks it to end after the update at hand, and waits for that."""
        self.ending.set()
        self.news.set()
        self.join(10)


class Receiver(ThreadingHTTPServer):
    """Takes SMeet's requests at one path. stored() is called after each new update."""

    def __init__(self, address: Tuple[str, int], path: str, secret: str, inbox: Inbox,
                 stored: Callable[[], None], tls: Optional[ssl.SSLContext] = None) -> None:
        if not secret:
            raise ValueError("without the webhook secret anybody could send updates")
        self.path, self.secret, self.inbox, self.stored = path, secret.encode(), inbox, stored
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
    secret = env("SMEET_WEBHOOK_SECRET", "").strip()
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
        inbox = Inbox(env("SMEET_WEBHOOK_STORE") or "./webhook_bot.sqlite3")
        worker = Worker(inbox)
        receiver = Receiver((host, int(port)), path, secret, inbox, worker.news.set, tls)
    except (OSError, OverflowError, sqlite3.Error) as fault:
        log.error("Can't start: %s", fault)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):  # in a thread, since shutdown() waits for serve_forever()
        signal.signal(number, lambda *_: threading.Thread(target=receiver.shutdown).start())
    worker.start()
    log.info("receiving at %s://%s:%d%s", "http" if proxied else "https", host or "0.0.0.0",
             receiver.server_address[1], path)
    receiver.serve_forever(poll_interval=0.1)
    worker.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
