"""The durable poller as its own process, killed with SIGKILL at every step, and started again."""
from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest
from typing import Any, Callable, List

from fake_smeet import TOKEN, FakeSMeet
from scripted_server import ScriptedServer, fail, text

HERE = os.path.dirname(os.path.abspath(__file__))
UPDATES = 7
POINTS = {"asked getUpdates": "it asks, the second time with what it stored and nobody has confirmed",
          "confirmed": "the position has moved, it doesn't know",
          "given": "it has a batch, or is about to get it",
          "asked sendMessage": "before it has answered", "sent": "it has answered and doesn't know",
          "answered": "it has answered and not written that down, or just so"}


class CrashTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "store.sqlite3")

    def start(self, url: str) -> "subprocess.Popen[str]":
        env = {**os.environ, "SMEET_URL": url, "SMEET_TOKEN": TOKEN, "SMEET_STORE": self.path, "SMEET_CONSUMER_ID": "me"}
        child = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "production_poller.py")], env=env, text=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.end, child)
        return child

    def end(self, child: "subprocess.Popen[str]") -> None:
        if child.poll() is None:
            child.kill()
        child.wait(20)
        if child.stderr is not None and not child.stderr.closed:
            child.stderr.close()

    def done(self, fake: FakeSMeet) -> bool:
        return fake.confirmed() and len(fake.sent) >= UPDATES

    def everything_once(self, fake: FakeSMeet, what: str) -> None:
        """Starts it once more and waits until all is confirmed and answered, in order and once."""
        before = fake.polls
        again = self.start(fake.url)
        everything = [(f"event-{i}:reply", f"Hello {i}") for i in range(1, UPDATES + 1)]
        self.assertTrue(fake.wait(lambda: fake.polls > before and self.done(fake)), f"{what}: {fake.position}, {fake.sent}")
        again.send_signal(signal.SIGTERM)
        log = again.communicate(timeout=20)[1]
        self.assertEqual((again.returncode, "Traceback" in log, TOKEN in log), (0, False, False), log)
        self.assertEqual(fake.sent, everything, what)
        db = sqlite3.connect(self.path)
        self.addCleanup(db.close)
        # The last may still wait: it was answered before a kill and not written down. Its key is known then.
        self.assertEqual(db.execute("SELECT event_id FROM inbox WHERE state IN ('handled', 'waiting') ORDER BY place").fetchall(),
                         [(f"event-{i}",) for i in range(1, UPDATES + 1)])

    def crash_at(self, point: str, time_of: int, first: Callable[[], Any] = lambda: None) -> FakeSMeet:
        """Kills it at the time_of-th point; first() is called right before the call that leads there is looked at."""
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(self.path + suffix):
                os.remove(self.path + suffix)
        seen, killed = [0], threading.Event()

        def at(where: str) -> bool:
            if where != point or killed.is_set():
                return False
            seen[0] += 1
            if seen[0] < time_of:
                return False
            child.send_signal(signal.SIGKILL)
            child.wait(20)
            killed.set()
            return True
        fake = FakeSMeet(UPDATES, at=at)
        fake.__enter__()
        self.addCleanup(fake.__exit__)
        first()
        child = self.start(fake.url)
        self.assertTrue(fake.wait(killed.is_set), f"the {time_of}. {point} never came")
        self.end(child)
        return fake

    def test_every_event_is_handled_and_none_twice(self) -> None:
        for point, what in POINTS.items():
            for time_of in (1, 2, 3):
                with self.subTest(point=point, time_of=time_of):
                    fake = self.crash_at(point, time_of)
                    self.everything_once(fake, f"killed at the {time_of}. {point} ({what})")

    def test_killed_with_a_batch_that_it_could_not_store_yet(self) -> None:
        """Another connection holds the store, so that the batch can't get in before the kill."""
        self.start_and_stop()
        other = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self.addCleanup(other.close)
        killed = threading.Event()

        def at(where: str) -> bool:
            if where == "asked getUpdates" and not killed.is_set():
                other.execute("BEGIN IMMEDIATE")
            if where == "given" and not killed.is_set():
                child.send_signal(signal.SIGKILL)
                child.wait(20)
                self.assertEqual(other.execute("SELECT count(*) FROM inbox").fetchone(), (0,))
                other.execute("ROLLBACK")
                killed.set()
            return False
        with FakeSMeet(UPDATES, at=at) as fake:
            child = self.start(fake.url)
            self.assertTrue(fake.wait(killed.is_set))
            self.end(child)
            self.everything_once(fake, "killed before it stored")

    def start_and_stop(self) -> None:
        """Makes the store."""
        with FakeSMeet(0) as fake:
            child = self.start(fake.url)
            fake.wait(lambda: fake.epoch > 0)
            self.end(child)

    def test_killed_again_and_again(self) -> None:
        """At each call, whatever it is, until it has got through."""
        with FakeSMeet(UPDATES, limit=2) as fake:
            running: List[Any] = []
            calls = [0]

            def at(where: str) -> bool:
                if not where.startswith("asked"):
                    return False
                calls[0] += 1
                if calls[0] % 3 or len(running) > 8:
                    return False
                running[-1].send_signal(signal.SIGKILL)
                running[-1].wait(20)
                return True
            fake.at = at
            while len(running) <= 8 and not self.done(fake):
                child = self.start(fake.url)
                running.append(child)
                self.assertTrue(fake.wait(lambda: child.poll() is not None or self.done(fake)))
            for child in running:
                self.end(child)
            self.everything_once(fake, f"killed {len(running)} times")

    def test_a_stop_confirms_what_was_stored(self) -> None:
        with FakeSMeet(2) as fake:
            child = self.start(fake.url)
            self.assertTrue(fake.wait(lambda: len(fake.sent) == 2))
            child.send_signal(signal.SIGTERM)
            _, log = child.communicate(timeout=20)
            self.assertEqual((child.returncode, fake.position), (0, 3), log)

    def test_what_it_cannot_read_is_the_owners_and_his_retry_is_answered(self) -> None:
        with FakeSMeet(2) as fake:
            fake.updates[0]["message"]["text"] = 5
            child = self.start(fake.url)
            self.assertTrue(fake.wait(lambda: fake.confirmed() and len(fake.sent) == 1))
            self.assertEqual(fake.failed, {"1"})
            fake.write_event({**text("1", "Hello 1"), "replay_of_update_id": "1"})  # after a fix
            self.assertTrue(fake.wait(lambda: len(fake.sent) == 2))
            self.assertEqual(fake.sent[1], ("event-1:reply", "Hello 1"))
            fake.write_event(text("2", "Hello 2"))  # one that was answered: nothing more
            self.assertTrue(fake.wait(fake.confirmed))
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=20)
            self.assertEqual(len(fake.sent), 2)

    def test_a_wrong_token_is_told_in_words(self) -> None:
        with ScriptedServer(("getMe", fail(401, "UNAUTHORIZED"))) as server:
            child = self.start(server.url)
            log = child.communicate(timeout=20)[1]
        self.assertEqual(child.returncode, 1)
        self.assertIn("take the current one from My bots", log)
        self.assertNotIn(TOKEN, log)


if __name__ == "__main__":
    unittest.main()
