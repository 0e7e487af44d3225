from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import queue
import sqlite3
import tempfile
import time
import unittest
from typing import Any, Dict, List

import inbox
from scripted_server import text


def of_chat(event_id: str, chat: str) -> str:
    return json.dumps({"update_id": "1", "event_id": event_id, "type": "message", "message": {"chat": {"id": chat}}})


class WithInbox(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "store.sqlite3")
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        self.inbox = inbox.Inbox(self.path)
        self.addCleanup(lambda: self.inbox.close())

    def rows(self, what: str = "event_id, state") -> List[Any]:
        db = sqlite3.connect(self.path)
        try:
            return db.execute(f"SELECT {what} FROM inbox ORDER BY place").fetchall()
        finally:
            db.close()


class InboxTest(WithInbox):
    def test_the_first_of_each_chat_is_next(self) -> None:
        for event_id, chat in (("a1", "a"), ("a2", "a"), ("b1", "b")):
            self.inbox.store(event_id, of_chat(event_id, chat))
        self.assertEqual(self.inbox.next(0)[0], "a1")  # type: ignore
        self.inbox.later("a1", 1, 100)
        self.assertEqual(self.inbox.next(99)[0], "b1", "a1 isn't due, and a2 is behind it")  # type: ignore
        self.inbox.settle("b1", "handled")
        self.assertIsNone(self.inbox.next(99))
        self.assertEqual(self.inbox.due(), 100)
        self.assertEqual((self.inbox.next(100) or [])[::2], ("a1", 1))
        self.inbox.settle("a1", "set aside", "why")
        self.assertEqual(self.inbox.next(0)[0], "a2")  # type: ignore

    def test_what_names_no_chat_keeps_its_order_too(self) -> None:
        for update, chat in (({}, ""), ({"type": "x"}, ""), ({"type": "x", "x": {"chat": 5}}, ""), (text("1"), "550"), (5, ""),
                             ({"type": "callback_query", "callback_query": {"message": {"chat": {"id": "7"}}}}, "7"),
                             ({"type": ["x"]}, "")):
            self.assertEqual(inbox.chat_of(update), chat)

    def test_a_batch_is_taken_whole_or_not_at_all(self) -> None:
        self.inbox.take("b", "s", [text("1")], "2", "7")
        with self.assertRaises(Exception):
            self.inbox.take("b", "s", [text("2"), {"no": "event"}], "4", "7")
        self.assertEqual((self.rows(), self.inbox.place("b", "s")), ([("event-1", "waiting")], ("2", "7")))

    def test_tidy(self) -> None:
        for event_id in ("old", "waits", "aside"):
            self.inbox.store(event_id, "{}")
        self.inbox.settle("old", "handled")
        self.inbox.settle("aside", "set aside", "why")
        self.inbox.tidy(time.time() + inbox.KEPT_SECONDS - 60)
        self.assertEqual(len(self.rows()), 3)
        self.inbox.tidy(time.time() + inbox.KEPT_SECONDS + 60)
        self.assertEqual(self.rows(), [("waits", "waiting"), ("aside", "set aside")])

    def test_a_file_of_an_earlier_version(self) -> None:
        self.inbox.close()
        os.remove(self.path)
        db = sqlite3.connect(self.path)
        db.execute("CREATE TABLE inbox (place INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL UNIQUE, "
                   "body TEXT NOT NULL, taken REAL NOT NULL, state TEXT NOT NULL DEFAULT 'waiting')")
        db.execute("INSERT INTO inbox (event_id, body, taken) VALUES ('a', '{}', 1)")
        db.commit()
        db.close()
        self.inbox = inbox.Inbox(self.path)
        self.assertEqual(self.inbox.next(0), ("a", "{}", 0))
        self.assertFalse(self.inbox.store("a", "{}"))

    def run_main(self, *arguments: str) -> Any:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            return inbox.main(list(arguments)), out.getvalue()

    def test_a_person_lists_what_was_set_aside_and_lets_it_be_tried_again(self) -> None:
        self.inbox.take("b", "s", [text("1", "private"), text("2")], "3", "7")
        self.inbox.settle("event-1", "set aside", "KeyError, 5 times")
        self.assertEqual(self.run_main(self.path), (0, "event-1  message 1  KeyError, 5 times\n"))
        self.assertEqual(self.run_main(self.path, "--retry")[0], 0)
        self.assertEqual(self.rows("state, tries, reason"), [("waiting", 0, None)] * 2)
        self.assertEqual(self.inbox.next(0)[0], "event-1", "in its old place")  # type: ignore
        for wrong in ([], [self.path, "--all"], [self.path + "x"]):
            self.assertEqual(self.run_main(*wrong)[0], 2)
        self.assertFalse(os.path.exists(self.path + "x"))


class WorkerTest(WithInbox):
    def setUp(self) -> None:
        super().setUp()
        self.calls: "queue.Queue[str]" = queue.Queue()

    def worker(self, handler: Any, pause: float = 0) -> inbox.Worker:
        worker = inbox.Worker(self.inbox, handler, pause)
        worker.start()
        self.addCleanup(worker.end)
        return worker

    def got(self, n: int) -> List[str]:
        return [self.calls.get(timeout=20) for _ in range(n)]

    def fails(self, *which: str) -> Any:
        def handler(update: Dict[str, Any]) -> None:
            self.calls.put(update["event_id"])
            if update["event_id"] in which:
                raise KeyError("private")
        return handler

    def test_handles_in_order_and_what_was_left(self) -> None:
        for event_id in ("a", "b"):
            self.inbox.store(event_id, of_chat(event_id, event_id))
        worker = self.worker(self.fails())
        self.assertEqual(self.got(2), ["a", "b"])
        self.inbox.store("c", of_chat("c", "c"))
        worker.news.set()
        self.assertEqual(self.got(1), ["c"])
        worker.end()
        self.assertEqual(self.rows("state"), [("handled",)] * 3)

    def test_sets_aside_what_always_fails_and_goes_on_in_its_chat(self) -> None:
        for event_id in ("a", "b"):
            self.inbox.store(event_id, of_chat(event_id, "one"))
        worker = self.worker(self.fails("a"))
        self.assertEqual(self.got(inbox.TRIES + 1), ["a"] * inbox.TRIES + ["b"])
        worker.end()
        self.assertEqual(self.rows("state, reason"), [("set aside", "KeyError, 5 times"), ("handled", None)])

    def test_while_one_chat_waits_the_others_go_on(self) -> None:
        for event_id, chat in (("a1", "a"), ("a2", "a"), ("b1", "b")):
            self.inbox.store(event_id, of_chat(event_id, chat))
        worker = self.worker(self.fails("a1"), pause=1000)
        self.assertEqual(self.got(2), ["a1", "b1"])
        self.inbox.store("b2", of_chat("b2", "b"))
        worker.news.set()
        self.assertEqual(self.got(1), ["b2"])
        worker.end()
        self.assertEqual(self.rows(), [("a1", "waiting"), ("a2", "waiting"), ("b1", "handled"), ("b2", "handled")])

    def test_a_restart_goes_on_counting(self) -> None:
        self.inbox.store("a", of_chat("a", "a"))
        self.inbox.later("a", inbox.TRIES - 1, 0)
        worker = self.worker(self.fails("a"), pause=1000)
        self.assertEqual(self.got(1), ["a"])
        worker.end()
        self.assertEqual(self.rows(), [("a", "set aside")])

    def test_not_now_holds_everything_and_sets_nothing_aside(self) -> None:
        tries: List[str] = []

        def handler(update: Dict[str, Any]) -> None:
            tries.append(update["event_id"])
            self.calls.put(update["event_id"])
            if len(tries) <= inbox.TRIES + 1:
                raise inbox.NotNow("the token is wrong")
        for event_id in ("a", "b"):
            self.inbox.store(event_id, of_chat(event_id, event_id))
        worker = self.worker(handler)
        self.assertEqual(self.got(inbox.TRIES + 3), ["a"] * (inbox.TRIES + 2) + ["b"])
        worker.end()
        self.assertEqual(self.rows("state, tries"), [("handled", 0)] * 2)

    def test_a_store_that_fails_for_a_while(self) -> None:
        real, failed = self.inbox.settle, []

        def broken(*arguments: Any) -> None:
            if len(failed) < 2:
                failed.append(1)
                raise sqlite3.OperationalError("disk full")
            real(*arguments)
        self.inbox.settle = broken  # type: ignore
        self.inbox.store("a", of_chat("a", "a"))
        worker = self.worker(self.fails())
        self.assertEqual(self.got(3), ["a"] * 3)
        worker.end()
        self.assertEqual(self.rows(), [("a", "handled")])


if __name__ == "__main__":
    unittest.main()
