"""Where webhook_bot.py and production_poller.py keep updates, and who works on them. Standard library only."""
from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple

log = logging.getLogger("inbox")

KEPT_SECONDS = 8 * 24 * 3600  # an event can come again for 7 days
TRIES = 5                     # at handling an update; then it is set aside
NOT_NOW_SECONDS = 30


class SetAside(Exception):
    """Raised by a handler: this update can never be handled. Its text goes into the log: no personal data."""


class NotNow(Exception):
    """Raised by a handler: nothing can be handled now; the same update is tried again later."""


class Inbox:
    """The updates that were taken, in SQLite. What store() and take() returned for survives a power cut.

    A webhook's receiver and a long poller may use the same file one after the other: an event that
    one has stored the other knows, so nothing is done twice when the owner switches the mode. One
    process uses it at a time.
    """

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")  # a commit is on the disk before it returns
        self._db.execute("CREATE TABLE IF NOT EXISTS inbox (place INTEGER PRIMARY KEY AUTOINCREMENT, "
                         "event_id TEXT NOT NULL UNIQUE, body TEXT NOT NULL, taken REAL NOT NULL, "
                         "state TEXT NOT NULL DEFAULT 'waiting')")  # then handled, or set aside
        self._db.execute("CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY CHECK (one = 1), "
                         "bot TEXT NOT NULL, offset TEXT, epoch TEXT)")  # of long polling
        self._db.execute("CREATE INDEX IF NOT EXISTS inbox_waiting ON inbox (place) WHERE state = 'waiting'")

    def store(self, event_id: str, body: str) -> bool:
        """Stores an update once; says whether it is new."""
        with self._lock:
            return self._db.execute("INSERT INTO inbox (event_id, body, taken) VALUES (?, ?, ?) "
                                    "ON CONFLICT (event_id) DO NOTHING", (event_id, body, time.time())).rowcount == 1

    # snippet: inbox
    def take(self, bot: str, updates: List[Dict[str, Any]], offset: Optional[str], epoch: Optional[str]) -> int:
        """Stores a batch together with the place behind it: all of it or nothing. Says how many are new."""
        with self._lock, self._db:  # one transaction
            self._db.execute("BEGIN IMMEDIATE")
            new = sum(self._db.execute("INSERT INTO inbox (event_id, body, taken) VALUES (?, ?, ?) "
                                       "ON CONFLICT (event_id) DO NOTHING",
                                       (update["event_id"], json.dumps(update), time.time())).rowcount
                      for update in updates)
            self._db.execute("INSERT INTO place (one, bot, offset, epoch) VALUES (1, ?, ?, ?) ON CONFLICT (one) "
                             "DO UPDATE SET bot = excluded.bot, offset = excluded.offset, epoch = excluded.epoch",
                             (bot, offset, epoch))
        return new
    # snippet end

    def place(self, bot: str) -> Tuple[Optional[str], Optional[str]]:
        """offset and epoch of this bot, (None, None) at first. Raises ValueError for another bot's store."""
        with self._lock:
            row = self._db.execute("SELECT bot, offset, epoch FROM place").fetchone()
        if row is not None and row[0] != bot:
            raise ValueError("it is another bot's, or another server's")
        return (None, None) if row is None else (row[1], row[2])

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

    def __init__(self, inbox: Inbox, handler: Callable[[Dict[str, Any]], None], pause: float = 1) -> None:
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
                state = self._handled(row[0], row[1], tries + 1)
                if state != "waiting":
                    self.inbox.settle(row[0], state)
                    tries = 0
                    continue
                tries += 1
            except NotNow as reason:
                log.warning("%s; trying again in %d s", reason, NOT_NOW_SECONDS)
                self.ending.wait(NOT_NOW_SECONDS * self.pause)
                continue
            except sqlite3.Error as fault:
                log.error("the store fails: %s", fault)
            self.ending.wait(self.pause * 2 ** tries)

    def _handled(self, event_id: str, body: str, tries: int) -> str:
        """What becomes of the update: handled, set aside, or waiting for another try."""
        try:
            self.handler(json.loads(body))
            return "handled"
        except NotNow:
            raise
        except SetAside as reason:
            log.error("event %s is set aside: %s", event_id, reason)
            return "set aside"
        except Exception as bug:  # its text may quote the update, so only its kind and place are told
            log.error("%s at\n%s", type(bug).__name__, "".join(traceback.format_tb(bug.__traceback__)))
        if tries < TRIES:
            return "waiting"
        log.error("event %s is set aside after %d tries", event_id, tries)
        return "set aside"

    def end(self) -> None:
        """Asks it to end after the update at hand, and waits for that."""
        self.ending.set()
        self.news.set()
        self.join(10)
