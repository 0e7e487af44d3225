from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any, Dict, List, Optional

import bot_logic
import inbox
import production_poller
import smeet
from fake_smeet import TOKEN, FakeSMeet
from scripted_server import LOST, ScriptedServer, Step, batch, fail, html, ok, text, update

HERE = os.path.dirname(os.path.abspath(__file__))


class WithStore(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "store.sqlite3")


class PollerTest(WithStore):
    """The receiving half in this process, without real pauses and without a worker."""

    def run_poller(self, *steps: Step, offset: Optional[str] = "43", epoch: Optional[str] = "7") -> None:
        self.store = inbox.Inbox(self.path)
        self.addCleanup(self.store.close)
        if offset or epoch:
            self.store.take("b", [], offset, epoch)
        self.rung: List[int] = []
        with ScriptedServer(*steps, at_end=lambda: self.poller.stop()) as self.server:
            client = smeet.Client(self.server.url, TOKEN, sleep=lambda _: None)
            self.poller = production_poller.Poller(client, production_poller.Place(self.store, "b"), "me",
                                                   lambda: self.rung.append(1))
            with self.assertLogs(level="INFO") as self.logs:
                production_poller.log.info("start")  # assertLogs wants at least one
                self.poller.run()
        self.assertEqual(self.server.surprises, [])
        self.assertEqual(self.server.steps, [], "steps that nobody asked for")

    def asked(self) -> List[Any]:
        """epoch and offset of every getUpdates."""
        return [tuple(a.params.get(name) for name in ("epoch", "offset")) for a in self.server.calls("getUpdates")]

    def stored(self) -> List[str]:
        db = sqlite3.connect(self.path, check_same_thread=False)  # the server looks in its own thread
        self.addCleanup(db.close)
        return [row[0] for row in db.execute("SELECT event_id FROM inbox ORDER BY place")]

    def test_stores_updates_and_place_together_then_confirms(self) -> None:
        seen: List[Any] = []

        def look(answer: Any) -> Any:
            seen.append((self.stored(), self.store.place("b")))
            return answer
        self.run_poller(("getUpdates", batch(text("43"), text("44"), at="43", then="45", epoch="8")),
                        ("getUpdates", lambda: look(batch(at="45", then="45", epoch="8"))))
        self.assertEqual(seen, [(["event-43", "event-44"], ("45", "8"))], "stored, with the place, before it is confirmed")
        self.assertEqual(self.asked()[:2], [("7", "43"), ("8", "45")])
        self.assertEqual(self.rung, [1])

    def test_what_comes_again_is_stored_once(self) -> None:
        self.run_poller(("getUpdates", batch(text("43"), text("44"), at="43", then="45")),
                        ("getUpdates", batch(text("43"), text("44"), text("45"), at="43", then="46", epoch="9")))
        self.assertEqual(self.stored(), ["event-43", "event-44", "event-45"])

    def test_every_error_that_getUpdates_can_give(self) -> None:
        gap = {"from_update_id": "43", "to_update_id": "49", "reason": "of_next_year"}
        self.run_poller(
            ("getUpdates", LOST), ("getUpdates", html(502)), ("getUpdates", fail(503, "MAINTENANCE", retry_after=1)),
            ("getUpdates", fail(503, "UNAVAILABLE", retry_after=1)), ("getUpdates", fail(429, "RATE_LIMITED", retry_after=1)),
            ("getUpdates", fail(409, "CONSUMER_CONFLICT", retry_after=2)), ("getUpdates", fail(409, "DELIVERY_MODE_CONFLICT")),
            ("getUpdates", fail(409, "BOT_PAUSED")),
            ("getUpdates", fail(409, "CURSOR_BEHIND", confirmed_offset="40")),
            ("getUpdates", fail(400, "OFFSET_NOT_ISSUED")),
            ("getUpdates", batch(at="43", then="50", skipped=[gap])), ("getUpdates", batch(at="50", then="50")))
        self.assertEqual(set(self.asked()[:9]), {("7", "43")}, "the very same call again")
        self.assertEqual(self.asked()[9:12], [("7", "40"), ("7", None), ("7", "50")])
        self.assertIn("updates 43 to 49 were skipped: of_next_year", "".join(self.logs.output))

    def test_errors_that_a_person_has_to_mend(self) -> None:
        for code, status in (("UNAUTHORIZED", 401), ("BOT_DISABLED", 403), ("INVALID_REQUEST", 400), ("METHOD_NOT_FOUND", 404)):
            with self.subTest(code), self.assertRaises(smeet.ApiError) as raised:
                self.run_poller(("getUpdates", fail(status, code)))
            self.assertEqual(raised.exception.code, code)

    def test_a_store_that_fails_confirms_nothing(self) -> None:
        def broken(*_: Any) -> int:
            raise sqlite3.OperationalError("disk full")
        real = inbox.Inbox.take
        self.addCleanup(setattr, inbox.Inbox, "take", real)
        with self.assertRaises(sqlite3.OperationalError):
            self.run_poller(("getUpdates", lambda: setattr(inbox.Inbox, "take", broken) or batch(text("43"), at="43", then="44")))
        self.assertEqual(self.asked(), [("7", "43")])

    def test_another_bots_store_is_refused(self) -> None:
        store = inbox.Inbox(self.path)
        store.take("b", [], "1", "1")
        with self.assertRaises(ValueError):
            production_poller.Place(store, "c")
        store.close()


class WorkTest(unittest.TestCase):
    """What becomes of an update by what the server says to its answer."""

    def test_every_error_that_an_answer_can_get(self) -> None:
        for status, code, want in (
                (404, "CHAT_NOT_FOUND", None), (404, "UPDATE_NOT_FOUND", None), (409, "IDEMPOTENCY_KEY_REUSED", None),
                (400, "INVALID_REQUEST", inbox.SetAside), (413, "REQUEST_TOO_LARGE", inbox.SetAside),
                (401, "UNAUTHORIZED", inbox.NotNow), (403, "BOT_DISABLED", inbox.NotNow), (409, "BOT_PAUSED", inbox.NotNow)):
            with self.subTest(code), ScriptedServer(("sendMessage", fail(status, code))) as server:
                work = bot_logic.Work(smeet.Client(server.url, TOKEN, sleep=lambda _: None))
                if want is None:
                    work(text("43"))
                else:
                    self.assertRaises(want, work, text("43"))
        with self.subTest("repeated"), ScriptedServer(
                ("sendMessage", LOST), ("sendMessage", fail(503, "UNAVAILABLE", retry_after=1)),
                ("sendMessage", fail(429, "RATE_LIMITED", retry_after=1)), ("sendMessage", ok({}))) as server:
            bot_logic.Work(smeet.Client(server.url, TOKEN, sleep=lambda _: None))(text("43"))
            self.assertEqual({asked.key for asked in server.asked}, {"event-43:reply"})

    def test_what_cannot_be_read_is_set_aside_without_its_content(self) -> None:
        with self.assertRaises(inbox.SetAside) as raised:
            bot_logic.Work(smeet.Client("http://127.0.0.1:1", TOKEN))(text("43", {"private": "words"}))
        self.assertNotIn("private", str(raised.exception))

    def test_types_that_it_does_not_know_are_passed_over(self) -> None:
        bot_logic.Work(smeet.Client("http://127.0.0.1:1", TOKEN))(update("43", "of_next_year", of_next_year=1))


class CrashTest(WithStore):
    """The program as its own process, killed with SIGKILL at every step, and started again."""

    UPDATES = 7

    def start(self, fake: FakeSMeet) -> "subprocess.Popen[str]":
        env = {**os.environ, "SMEET_URL": fake.url, "SMEET_TOKEN": TOKEN, "SMEET_STORE": self.path, "SMEET_CONSUMER_ID": "me"}
        child = subprocess.Popen([sys.executable, os.path.join(HERE, "production_poller.py")], env=env, text=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.end, child)
        return child

    def end(self, child: "subprocess.Popen[str]") -> None:
        if child.poll() is None:
            child.kill()
        child.wait(20)
        if child.stderr is not None and not child.stderr.closed:
            child.stderr.close()

    def crash_at(self, point: str, time_of: int) -> None:
        if os.path.exists(self.path):
            os.remove(self.path)
        seen, killed = [0], threading.Event()

        def at(where: str) -> bool:
            if where != point or killed.is_set():
                return False
            seen[0] += 1
            if seen[0] < time_of:
                return False
            killed.set()
            child.send_signal(signal.SIGKILL)
            child.wait(20)
            return True
        with FakeSMeet(self.UPDATES, at=at) as fake:
            child = self.start(fake)
            self.assertTrue(fake.wait(killed.is_set), f"the {time_of}. {point} never came")
            self.end(child)
            again = self.start(fake)
            self.assertTrue(fake.wait(fake.finished), f"after a crash at the {time_of}. {point}: {fake.position}, {fake.sent}")
            again.send_signal(signal.SIGTERM)
            _, log = again.communicate(timeout=20)
            self.assertEqual(again.returncode, 0, log)
            self.assertEqual(fake.sent, {f"event-{i}:reply": [f"Hello {i}"] for i in range(1, self.UPDATES + 1)})

    def test_every_event_is_handled_and_none_twice(self) -> None:
        for point in ("asked getUpdates", "confirmed", "given", "asked sendMessage", "sent", "answered"):
            for time_of in (1, 2, 3):
                with self.subTest(point=point, time_of=time_of):
                    self.crash_at(point, time_of)

    def test_a_stop_confirms_what_was_stored(self) -> None:
        with FakeSMeet(2) as fake:
            child = self.start(fake)
            self.assertTrue(fake.wait(lambda: len(fake.sent) == 2))
            child.send_signal(signal.SIGTERM)
            _, log = child.communicate(timeout=20)
            self.assertEqual((child.returncode, fake.position), (0, 3), log)

    def test_a_wrong_token_is_told_in_words(self) -> None:
        with ScriptedServer(("getMe", fail(401, "UNAUTHORIZED"))) as server:
            env = {**os.environ, "SMEET_URL": server.url, "SMEET_TOKEN": TOKEN, "SMEET_STORE": self.path}
            done = subprocess.run([sys.executable, os.path.join(HERE, "production_poller.py")], env=env, text=True,
                                  stderr=subprocess.PIPE, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn("take the current one from My bots", done.stderr)
        self.assertNotIn(TOKEN, done.stderr)


if __name__ == "__main__":
    unittest.main()
