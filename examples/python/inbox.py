"""Where webhook_bot.py and production_poller.py keep updates, and who works on them. Standard library only.

    python3 inbox.py store.sqlite3            lists what was set aside
    python3 inbox.py store.sqlite3 --retry    lets it be tried again
"""
from __future__ import annotations

import json
import logging
import os
import sqlite3
import sys
import threading
import time
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple

log = logging.getLogger("inbox")

KEPT_SECONDS = 8 * 24 * 3600  # an event can come again for 7 days
TRIES = 5                     # at handling an update; then it is set aside
NOT_NOW_SECONDS = 30
TIDY_SECONDS = 3600

COLUMNS = {"chat": "TEXT NOT NULL DEFAULT ''",  # the updates of one chat are handled in their order
           "tries": "INTEGER NOT NULL DEFAULT 0", "due": "REAL NOT NULL DEFAULT 0",
           "reason": "TEXT"}  # why it was set aside: no personal data
INSERT = "INSERT INTO inbox (event_id, chat, body, taken) VALUES (?, ?, ?, ?) ON CONFLICT (event_id) DO NOTHING"


class SetAside(Exception):
    """Raised by a handler: this update can never be handled. Its text is logged and kept: no personal data."""


class NotNow(Exception):
    """Raised by a handler: nothing can be handled now; the same update is tried again later."""


class Inbox:
    """The updates that were taken, in SQLite. What store() and take() returned for survives a power cut.

    A webhook's receiver and a long poller may use the same file one after the other: an event that
    one has stored the other knows, so nothing is done twice when the owner switches the mode. One
    bot and one process use it at a time.
    """

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")  # a commit is on the disk before it returns
        self._db.execute("CREATE TABLE IF NOT EXISTS inbox (place INTEGER PRIMARY KEY AUTOINCREMENT, "
                         "event_id TEXT NOT NULL UNIQUE, body TEXT NOT NULL, taken REAL NOT NULL, "
                         "state TEXT NOT NULL DEFAULT 'waiting')")  # then handled, or set aside
        there = {row[1] for row in self._db.execute("PRAGMA table_info (inbox)")}
        for name in COLUMNS:  # a file of an earlier version lacks some
            if name not in there:
                self._db.execute(f"ALTER TABLE inbox ADD COLUMN {name} {COLUMNS[name]}")
        self._db.execute("CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY CHECK (one = 1), bot TEXT NOT NULL, "
                         "server TEXT NOT NULL, offset TEXT, epoch TEXT)")  # of long polling
        self._db.execute("CREATE INDEX IF NOT EXISTS inbox_waiting ON inbox (place) WHERE state = 'waiting'")
        self._db.execute("CREATE INDEX IF NOT EXISTS inbox_chat ON inbox (chat, place) WHERE state = 'waiting'")

    def store(self, event_id: str, body: str) -> bool:
        """Stores an update once; says whether it is new."""
        with self._lock:
            return self._db.execute(INSERT, (event_id, chat_of(json.loads(body)), body, time.time())).rowcount == 1

    # snippet: inbox
    def take(self, bot: str, server: str, updates: List[Dict[str, Any]], offset: Optional[str], epoch: Optional[str]) -> int:
        """Stores a batch together with the place behind it: all of it or nothing. Says how many are new."""
        with self._lock, self._db:  # one transaction
            self._db.execute("BEGIN IMMEDIATE")
            # INSERT does nothing where the event_id is there already.
            new = sum(self._db.execute(INSERT, (update["event_id"], chat_of(update), json.dumps(update), time.time())).rowcount
                      for update in updates)
            self._db.execute("INSERT OR REPLACE INTO place (one, bot, server, offset, epoch) VALUES (1, ?, ?, ?, ?)",
                             (bot, server, offset, epoch))
        return new
    # snippet end

    def place(self, bot: str, server: str) -> Tuple[Optional[str], Optional[str]]:
        """offset and epoch of this bot at this server, (None, None) where none are known.

        Raises ValueError for another bot's store: its updates aren't ours to answer.
        """
        with self._lock:
            row = self._db.execute("SELECT bot, server, offset, epoch FROM place").fetchone()
        if row is not None and row[0] != bot:
            raise ValueError(f"it is the store of {row[0]}, and this is {bot}")
        if row is not None and row[1] != server:
            log.warning("the place in the store is another server's; going on from where this one stands")
            return None, None
        return (None, None) if row is None else (row[2], row[3])

    def next(self, now: float) -> Optional[Tuple[str, str, int]]:
        """event_id, body and tries of the update to handle now: the first of its chat that isn't done, if it is due."""
        with self._lock:
            return self._db.execute(
                "SELECT event_id, body, tries FROM inbox AS one WHERE state = 'waiting' AND due <= ? AND NOT EXISTS "
                "(SELECT 1 FROM inbox AS other WHERE other.state = 'waiting' AND other.chat = one.chat AND other.place < one.place) "
                "ORDER BY place LIMIT 1", (now,)).fetchone()

    def due(self) -> Optional[float]:
        """When the first of the updates that wait for another try is due."""
        with self._lock:
            return self._db.execute("SELECT min(due) FROM inbox WHERE state = 'waiting' AND tries > 0").fetchone()[0]

    def settle(self, event_id: str, state: str, reason: Optional[str] = None) -> None:
        with self._lock:
            self._db.execute("UPDATE inbox SET state = ?, reason = ? WHERE event_id = ?", (state, reason, event_id))

    def later(self, event_id: str, tries: int, due: float) -> None:
        with self._lock:
            self._db.execute("UPDATE inbox SET tries = ?, due = ? WHERE event_id = ?", (tries, due, event_id))

    def aside(self) -> List[Tuple[str, str, str]]:
        """event_id, body and reason of what was set aside."""
        with self._lock:
            return self._db.execute("SELECT event_id, body, reason FROM inbox WHERE state = 'set aside' ORDER BY place").fetchall()

    def retry(self) -> int:
        """What was set aside waits again, in its old place. Says how many."""
        with self._lock:
            return self._db.execute("UPDATE inbox SET state = 'waiting', tries = 0, due = 0, reason = NULL "
                                    "WHERE state = 'set aside'").rowcount

    def tidy(self, now: float) -> None:
        """Forgets what was handled and is too old to come again."""
        with self._lock:
            self._db.execute("DELETE FROM inbox WHERE state = 'handled' AND taken < ?", (now - KEPT_SECONDS,))

    def close(self) -> None:
        with self._lock:
            self._db.close()


def chat_of(update: Any) -> str:
    """The id of the chat that an update belongs to; "" where none is named."""
    payload = update.get(update.get("type")) if isinstance(update, dict) and isinstance(update.get("type"), str) else None
    for holder in (payload, payload.get("message") if isinstance(payload, dict) else None):
        chat = holder.get("chat") if isinstance(holder, dict) else None
        if isinstance(chat, dict) and isinstance(chat.get("id"), str):
            return chat["id"]
    return ""


class Worker(threading.Thread):
    """Handles the stored updates one at a time, the ones left from before a restart too.

    One that fails is tried again after a while. Until then the later ones of its chat wait; other chats go on.
    """

    def __init__(self, inbox: Inbox, handler: Callable[[Dict[str, Any]], None], pause: float = 1) -> None:
        super().__init__(daemon=True)
        self.inbox, self.handler, self.pause = inbox, handler, pause
        self.news, self.ending = threading.Event(), threading.Event()

    def run(self) -> None:
        tidied = 0.0
        while not self.ending.is_set():
            self.news.clear()  # before looking: what is stored after the look rings again
            now = time.time()
            try:
                if now - tidied > TIDY_SECONDS:
                    tidied = now
                    self.inbox.tidy(now)
                row = self.inbox.next(now)
                if row is not None:
                    self.handle(*row)
                    continue
                due = self.inbox.due()
                self.news.wait(TIDY_SECONDS if due is None else min(TIDY_SECONDS, max(due - now, 0.01)))
            except NotNow as reason:
                log.warning("%s; trying again in %d s", reason, NOT_NOW_SECONDS)
                self.ending.wait(NOT_NOW_SECONDS * self.pause)
            except sqlite3.Error as fault:
                log.error("the store fails: %s", fault)
                self.ending.wait(5 * self.pause)

    def handle(self, event_id: str, body: str, tries: int) -> None:
        """Handles one update and writes down what became of it. Raises NotNow, or the store's errors."""
        try:
            self.handler(json.loads(body))
        except NotNow:
            raise
        except SetAside as problem:
            reason = str(problem)
        except Exception as bug:  # its text may quote the update, so only its kind and place are told
            reason = f"{type(bug).__name__}, {tries + 1} times"
            log.error("event %s: %s at\n%s", event_id, type(bug).__name__, "".join(traceback.format_tb(bug.__traceback__)))
            if tries + 1 < TRIES:
                self.inbox.later(event_id, tries + 1, time.time() + self.pause * 2 ** (tries + 1))
                return
        else:
            self.inbox.settle(event_id, "handled")
            return
        log.error("event %s is set aside: %s", event_id, reason)
        self.inbox.settle(event_id, "set aside", reason)

    def end(self) -> None:
        """Asks it to end after the update at hand, and waits for that."""
        self.ending.set()
        self.news.set()
        self.join(10)


def main(arguments: List[str]) -> int:
    if not arguments or not os.path.exists(arguments[0]) or arguments[1:] not in ([], ["--retry"]):
        print("usage: inbox.py STORE [--retry]; STORE is the file of a bot", file=sys.stderr)
        return 2
    inbox = Inbox(arguments[0])
    if arguments[1:]:
        print(f"{inbox.retry()} updates will be tried again at the bot's next start")
    else:
        for event_id, body, reason in inbox.aside():
            update = json.loads(body)
            print(f"{event_id}  {update.get('type')} {update.get('update_id')}  {reason}")
    inbox.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
