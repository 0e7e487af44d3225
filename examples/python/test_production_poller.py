from __future__ import annotations

import logging
import os
import re
import sqlite3
import tempfile
import unittest
from typing import Any, List, Optional

import bot_logic
import inbox
import long_poll
import production_poller
import smeet
from scripted_server import CODES, LOST, TOKEN, ScriptedServer, Step, batch, fail, html, ok, refuse, text, update

HERE = os.path.dirname(os.path.abspath(__file__))

# What getUpdates does after each code, as the README's table says.
RECEIVING = {
    "RATE_LIMITED": "repeats", "MAINTENANCE": "repeats", "UNAVAILABLE": "repeats", "CONSUMER_CONFLICT": "repeats",
    "DELIVERY_MODE_CONFLICT": "repeats", "BOT_PAUSED": "repeats", "INTERNAL": "repeats",
    "CURSOR_BEHIND": "40", "OFFSET_NOT_ISSUED": None,  # the offset of the next call
}
# What becomes of a message whose answer got it.
ANSWERING = {
    "RATE_LIMITED": "repeats", "MAINTENANCE": "repeats", "UNAVAILABLE": "repeats",
    "CHAT_NOT_FOUND": "done", "UPDATE_NOT_FOUND": "done", "IDEMPOTENCY_KEY_REUSED": "done",
    "INVALID_REQUEST": "set aside", "REQUEST_TOO_LARGE": "set aside", "INTERNAL": "set aside",
}  # all others: not now


class PollerTest(unittest.TestCase):
    """The receiving half in this process, without real pauses and without a worker."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "store.sqlite3")

    def run_poller(self, *steps: Step, offset: Optional[str] = "43", epoch: Optional[str] = "7", server: str = "s") -> None:
        self.store = inbox.Inbox(self.path)
        self.addCleanup(self.store.close)
        if offset or epoch:
            self.store.take("b", server, [], offset, epoch)
        self.rung: List[int] = []
        self.pauses: List[float] = []
        with ScriptedServer(*steps, at_end=lambda: self.poller.stop()) as self.server:
            client = smeet.Client(self.server.url, TOKEN, sleep=self.pauses.append)
            with self.assertLogs(level="INFO") as self.logs:
                self.poller = production_poller.Poller(client, production_poller.Place(self.store, "b", "s"), "me",
                                                       lambda: self.rung.append(1))
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
            seen.append((self.stored(), self.store.place("b", "s")))
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

    def test_an_owners_retry_of_an_event_that_is_known(self) -> None:
        again = {**text("45"), "event_id": "event-43", "replay_of_update_id": "43"}
        self.run_poller(("getUpdates", batch(text("43"), text("44"), at="43", then="45")),
                        ("getUpdates", batch(again, at="45", then="46")), ("getUpdates", batch(at="46", then="46")))
        self.assertEqual(self.stored(), ["event-43", "event-44"])

    def test_an_event_that_the_webhook_took_before_the_switch(self) -> None:
        webhook = inbox.Inbox(self.path)
        webhook.store("event-43", "{}")
        webhook.close()
        self.run_poller(("getUpdates", batch(text("43"), text("44"), at="43", then="45")))
        self.assertEqual(self.stored(), ["event-43", "event-44"])
        self.assertFalse(self.store.store("event-44", "{}"), "and the other way round")

    def test_what_can_never_be_handled_goes_to_the_owners_list(self) -> None:
        seen: List[Any] = []
        self.run_poller(("getUpdates", batch(text("43"), text("44", {"private": "words"}), update("45", "message"), text("46"),
                                             at="43", then="47", epoch="8")),
                        ("rejectUpdate", lambda: seen.append(self.stored()) or fail(503, "UNAVAILABLE", retry_after=1)),
                        ("rejectUpdate", ok({})), ("rejectUpdate", fail(404, "UPDATE_NOT_FOUND")),
                        ("getUpdates", batch(at="47", then="47", epoch="8")))
        self.assertEqual(seen, [[]])
        self.assertEqual(self.stored(), ["event-43", "event-46"])
        rejected = self.server.calls("rejectUpdate")
        self.assertEqual([(a.key, a.params["epoch"]) for a in rejected],
                         [("event-44:reject:44", "8")] * 2 + [("event-45:reject:45", "8")])
        self.assertEqual(rejected[0].params["reason"], "The bot can't read this update: message.text is not a text")
        self.assertNotIn("private", "".join(self.logs.output))

    def test_a_reject_that_fails_stores_nothing_and_keeps_the_lease(self) -> None:
        self.run_poller(("getUpdates", batch(text("43"), text("44", 5), at="43", then="45", epoch="8")),
                        ("rejectUpdate", refuse("CONSUMER_CONFLICT")),
                        ("getUpdates", lambda: self.assertEqual(self.stored(), []) or
                            batch(text("43"), text("44", 5), at="43", then="45", epoch="8")),
                        ("rejectUpdate", ok({})))
        self.assertEqual(self.asked()[:3], [("7", "43"), ("8", "43"), ("8", "45")])
        self.assertEqual(self.stored(), ["event-43"])

    def test_types_and_reasons_of_next_year(self) -> None:
        gap = {"from_update_id": "44", "to_update_id": "49", "reason": "of_next_year"}
        self.run_poller(("getUpdates", batch(update("43", "of_next_year", of_next_year=1), at="43", then="50", skipped=[gap])),
                        ("getUpdates", batch(at="50", then="50")))
        self.assertEqual(self.asked()[1], ("7", "50"))
        self.assertIn("updates 44 to 49 were skipped: of_next_year", "".join(self.logs.output))

    def test_every_code_that_getUpdates_can_give(self) -> None:
        for code in CODES:
            with self.subTest(code):
                times = smeet.INTERNAL_TRIES if code == "INTERNAL" else 1
                steps: List[Step] = [("getUpdates", refuse(code))] * times + [("getUpdates", batch(at="43", then="43"))]
                if code not in RECEIVING:
                    with self.assertRaises(smeet.ApiError) as raised:
                        self.run_poller(*steps[:1])
                    self.assertEqual(raised.exception.code, code)
                    self.assertEqual(self.asked(), [("7", "43")], "nothing is asked, and nothing confirmed, after that")
                    continue
                self.run_poller(*steps)
                want = "43" if RECEIVING[code] == "repeats" else RECEIVING[code]
                self.assertEqual(self.asked()[:times + 1], [("7", "43")] * times + [("7", want)])
        for name, fault in (("lost", LOST), ("502", html(502)), ("a page", html(200))):
            with self.subTest(name):
                self.run_poller(("getUpdates", fault), ("getUpdates", batch(at="43", then="43")))
                self.assertEqual(self.asked()[:2], [("7", "43")] * 2)

    def test_how_long_it_waits(self) -> None:
        self.run_poller(("getUpdates", refuse("CONSUMER_CONFLICT", retry_after=25)), ("getUpdates", refuse("DELIVERY_MODE_CONFLICT")),
                        ("getUpdates", refuse("BOT_PAUSED")), ("getUpdates", refuse("RATE_LIMITED", retry_after=3)),
                        ("getUpdates", batch(at="43", then="43")))
        self.assertEqual(self.pauses[:3], [25, long_poll.LOOK_AGAIN_SECONDS, long_poll.LOOK_AGAIN_SECONDS])
        self.assertTrue(3 <= self.pauses[3] <= 4, self.pauses)

    def test_the_readme_has_every_code(self) -> None:
        with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
            table = file.read().split("## What each error means for it")[1].split("\n# ")[0]
        named = set(re.findall("`([A-Z_]+)`", table))
        self.assertEqual(set(CODES) - named, set())
        self.assertEqual(named - set(CODES) - {"SMEET_URL", "SMEET_TOKEN", "SMEET_CONSUMER_ID"}, set())

    def test_a_store_that_fails_confirms_nothing(self) -> None:
        def broken(*_: Any) -> int:
            raise sqlite3.OperationalError("disk full")
        real = inbox.Inbox.take
        self.addCleanup(setattr, inbox.Inbox, "take", real)
        with self.assertRaises(sqlite3.OperationalError):
            self.run_poller(("getUpdates", lambda: setattr(inbox.Inbox, "take", broken) or batch(text("43"), at="43", then="44")))
        self.assertEqual(self.asked(), [("7", "43")])

    def test_a_stop_before_the_next_poll_confirms_what_was_stored(self) -> None:
        def store_and_stop() -> None:
            self.poller.stopping = True  # as a signal would, while the batch is stored
        self.run_poller(("getUpdates", lambda: store_and_stop() or batch(text("43"), at="43", then="44")),
                        ("getUpdates", batch(at="44", then="44")))
        self.assertEqual([(a.params["offset"], a.params["timeout"]) for a in self.server.asked], [("43", 25), ("44", 0)])

    def test_a_stop_after_a_poll_that_was_refused_confirms_too(self) -> None:
        def stop_and_refuse() -> Any:
            self.poller.stop()
            self.poller.client.stop.wait(30)
            return refuse("MAINTENANCE")
        self.run_poller(("getUpdates", batch(text("43"), at="43", then="44")), ("getUpdates", stop_and_refuse),
                        ("getUpdates", batch(at="44", then="44")))
        self.assertEqual([(a.params["offset"], a.params["timeout"]) for a in self.server.asked][1:], [("44", 25), ("44", 0)])

    def test_another_bots_store_is_refused(self) -> None:
        store = inbox.Inbox(self.path)
        self.addCleanup(store.close)
        store.take("b", "s", [], "1", "1")
        with self.assertRaises(ValueError):
            production_poller.Place(store, "c", "s")

    def test_another_servers_place_confirms_nothing_here(self) -> None:
        self.run_poller(("getUpdates", batch(text("3"), at="3", then="4", epoch="1")), server="another")
        self.assertEqual(self.asked()[:2], [(None, None), ("1", "4")])


class WorkTest(unittest.TestCase):
    """What becomes of an update by what the server says to its answer."""

    def setUp(self) -> None:
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def test_every_code_that_an_answer_can_get(self) -> None:
        for code in CODES:
            want = ANSWERING.get(code, "not now")
            times = smeet.INTERNAL_TRIES if code == "INTERNAL" else 1
            with self.subTest(code), ScriptedServer(*[("sendMessage", refuse(code))] * times, ("sendMessage", ok({}))) as server:
                work = bot_logic.Work(smeet.Client(server.url, TOKEN, sleep=lambda _: None))
                try:
                    work(text("43"))
                    got = "repeats" if len(server.asked) > 1 else "done"
                except inbox.SetAside:
                    got = "set aside"
                except inbox.NotNow:
                    got = "not now"
                self.assertEqual(got, want)
                self.assertEqual({asked.key for asked in server.asked}, {"event-43:reply"})

    def test_a_lost_answer_is_asked_for_again_with_its_key(self) -> None:
        with ScriptedServer(("sendMessage", LOST), ("sendMessage", html(502)), ("sendMessage", ok({}))) as server:
            bot_logic.Work(smeet.Client(server.url, TOKEN, sleep=lambda _: None))(text("43"))
            self.assertEqual([asked.key for asked in server.asked], ["event-43:reply"] * 3)

    def test_what_is_checked_before_it_is_taken(self) -> None:
        for good in (text("1"), text("1", is_bot=True), text("1", None, photo={}), update("1", "of_next_year"), update("1", "message_edited")):
            self.assertIsNone(bot_logic.check(good))
        for bad in (text("1", {"private": "words"}), text("1", None), update("1", "message"), {**text("1"), "event_id": None},
                    {**text("1"), "type": 5}, update("1", "callback_query", callback_query={"data": "x"})):
            self.assertRegex(bot_logic.check(bad) or "", r"^[a-z_.]+ is not (a text|an object)$")

    def test_what_cannot_be_read_is_set_aside_without_its_content(self) -> None:
        with self.assertRaises(inbox.SetAside) as raised:
            bot_logic.Work(smeet.Client("http://127.0.0.1:1", TOKEN))(text("43", {"private": "words"}))
        self.assertNotIn("private", str(raised.exception))

    def test_types_that_it_does_not_know_are_passed_over(self) -> None:
        bot_logic.Work(smeet.Client("http://127.0.0.1:1", TOKEN))(update("43", "of_next_year", of_next_year=1))


if __name__ == "__main__":
    unittest.main()
