from __future__ import annotations

import socket
import threading
import time
import unittest
from typing import Any, List

import smeet
from scripted_server import LOST, TOKEN, Answer, ScriptedServer, Step, fail, html, ok


class ClientTest(unittest.TestCase):
    def start(self, *steps: Step) -> smeet.Client:
        """A client of a server with this script. Pauses are kept in self.pauses, not waited for."""
        self.server = ScriptedServer(*steps)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__)
        self.pauses: List[float] = []
        return smeet.Client(self.server.url, TOKEN, sleep=self.pauses.append)

    def tearDown(self) -> None:
        if hasattr(self, "server"):
            self.assertEqual(self.server.surprises, [])
            self.assertEqual(self.server.steps, [], "steps that nobody asked for")

    def quietly(self) -> Any:
        return self.assertLogs("smeet", "WARNING")

    def refused(self, client: smeet.Client, *args: Any, **more: Any) -> smeet.ApiError:
        with self.assertRaises(smeet.ApiError) as caught:
            client.call(*args, **more)
        return caught.exception

    def test_a_call_carries_token_key_and_fields_without_none(self) -> None:
        client = self.start(("sendMessage", ok({"message_id": "9"})))
        self.assertEqual(client.send_message("550", "Hi", "k"), {"message_id": "9"})
        asked = self.server.asked[0]
        self.assertEqual((asked.params, asked.key, asked.authorization),
                         ({"chat_id": "550", "text": "Hi"}, "k", "Bearer " + TOKEN))

    def test_an_error_comes_typed(self) -> None:
        client = self.start(("getUpdates", fail(409, "CURSOR_BEHIND", confirmed_offset="43")))
        error = self.refused(client, "getUpdates")
        self.assertEqual((error.code, error.message, error.details, error.request_id, error.status, error.retry_after),
                         ("CURSOR_BEHIND", "as scripted", {"confirmed_offset": "43"}, "r-1", 409, None))

    def test_passing_faults_are_repeated_with_the_same_offset(self) -> None:
        for name, fault in (("429", fail(429, "RATE_LIMITED", retry_after=2)), ("503", fail(503, "MAINTENANCE")),
                            ("lost", LOST), ("502", html(502)), ("504", html(504)),
                            ("cut off", Answer(200, b'{"ok":'))):
            with self.subTest(name), self.quietly():
                client = self.start(("getUpdates", fault), ("getUpdates", fault), ("getUpdates", ok({})))
                client.get_updates("me", "7", "43")
                self.assertEqual([a.params["offset"] + a.params["epoch"] for a in self.server.asked], ["437"] * 3)

    def test_a_lost_write_is_repeated_with_the_same_key(self) -> None:
        client = self.start(("sendMessage", LOST), ("sendMessage", html(502)), ("sendMessage", ok({})))
        with self.quietly():
            client.send_message("550", "Hi", "k1")
        self.assertEqual(len({(a.key, str(a.params)) for a in self.server.asked}), 1)

    def test_a_write_without_key_is_not_repeated_when_its_outcome_is_unknown(self) -> None:
        for name, fault, code in (("lost", LOST, "NO_ANSWER"), ("502", html(502), "BAD_ANSWER"),
                                  ("503", fail(503, "UNAVAILABLE", retry_after=1), "UNAVAILABLE")):
            with self.subTest(name):
                client = self.start(("sendMessage", fault))
                self.assertEqual(self.refused(client, "sendMessage").code, code)

    def test_a_write_without_key_is_repeated_when_nothing_was_done(self) -> None:
        client = self.start(("sendMessage", fail(429, "RATE_LIMITED", retry_after=1)), ("sendMessage", ok({})))
        with self.quietly():
            client.call("sendMessage")

    def test_a_server_that_is_not_there_is_tried_again(self) -> None:
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
            client = smeet.Client("http://127.0.0.1:%d" % held.getsockname()[1], TOKEN,
                                  sleep=lambda _: tries.append(1) or len(tries) > 2 and client.stop.set())
            tries: List[int] = []
            with self.quietly(), self.assertRaises(smeet.Stopped):
                client.call("sendMessage")
        self.assertEqual(len(tries), 3)

    def test_internal_is_given_up_after_a_few_tries(self) -> None:
        client = self.start(*[("getMe", fail(500, "INTERNAL"))] * smeet.INTERNAL_TRIES)
        with self.quietly():
            self.assertEqual(self.refused(client, "getMe").code, "INTERNAL")

    def test_retry_after_is_kept_to(self) -> None:
        client = self.start(("getMe", fail(429, "RATE_LIMITED", retry_after=9)), ("getMe", html(503, Retry_After="8")),
                            ("getMe", fail(503, "MAINTENANCE")._replace(headers={"Retry-After": "7"})),
                            ("getMe", fail(503, "UNAVAILABLE", retry_after=10 ** 9)), ("getMe", ok({})))
        with self.quietly():
            client.get_me()
        for got, least in zip(self.pauses, (9, 8, 7, smeet.LONGEST_RETRY_AFTER)):
            self.assertTrue(least <= got <= least + 1, f"paused {got}, want {least} to {least + 1}")

    def test_pauses_grow_differ_and_stay_bounded(self) -> None:
        pauses = [smeet.pause(None, tries) for tries in range(1, 200)]
        self.assertTrue(0.5 <= pauses[0] <= 1 and 2 <= pauses[2] <= 4, pauses[:3])
        self.assertLessEqual(max(pauses), smeet.LONGEST_PAUSE)
        self.assertGreater(len(set(pauses[10:])), 100)

    def test_a_poll_gets_15_seconds_more_than_it_may_wait(self) -> None:
        client = smeet.Client("http://127.0.0.1", TOKEN)
        seen: List[float] = []
        client._once = lambda method, params, key, timeout: seen.append(timeout)  # type: ignore
        client.get_updates("me")
        client.get_updates("me", timeout=0)
        client.get_me()
        self.assertEqual(seen, [40, 15, 15])

    def test_a_silent_server_counts_as_lost(self) -> None:
        client = self.start(("sendMessage", lambda: self.server.hold()))
        begun = time.monotonic()
        self.assertEqual(self.refused(client, "sendMessage", timeout=0.05).code, "NO_ANSWER")
        self.assertLess(time.monotonic() - begun, 8)  # not the 10 of the connection

    def test_interrupt_ends_a_pause_at_once(self) -> None:
        client = smeet.Client("http://127.0.0.1", TOKEN)
        threading.Timer(0.02, client.interrupt).start()
        begun = time.monotonic()
        with self.assertRaises(smeet.Stopped):
            client.sleep(60)
        self.assertLess(time.monotonic() - begun, 20)

    def test_interrupt_ends_a_waiting_poll_at_once(self) -> None:
        client = self.start(("getUpdates", lambda: client.interrupt() or self.server.hold()))
        begun = time.monotonic()
        with self.assertRaises(smeet.Stopped):
            client.get_updates("me")
        self.assertLess(time.monotonic() - begun, 20)

    def test_the_token_shows_nowhere(self) -> None:
        client = self.start(("getMe", LOST), ("getMe", fail(401, "UNAUTHORIZED")))
        with self.quietly() as logs:
            error = self.refused(client, "getMe")
        self.assertNotIn(TOKEN, " ".join(logs.output) + str(error) + repr(error) + repr(client))
        for bad in ("", "sbt1_x\n", "sbt1_\u044f"):
            with self.assertRaises(ValueError) as caught:
                smeet.Client("http://127.0.0.1", bad)
            self.assertNotIn("sbt1", str(caught.exception))

    def test_addresses_that_cannot_be_right(self) -> None:
        for bad in ("", "127.0.0.1:8080", "ftp://host", "http://user:pass@host", "http://host:port", "http://a..b"):
            with self.subTest(bad), self.assertRaises(ValueError):
                smeet.Client(bad, TOKEN)

    def test_a_redirect_is_not_followed(self) -> None:
        client = self.start(("sendMessage", html(307, Location="http://127.0.0.1:1/")))
        self.assertEqual(self.refused(client, "sendMessage").status, 307)

    def test_a_reason_fits(self) -> None:
        client = self.start(("rejectUpdate", ok({})))
        client.reject_update("1", "a\nb" + "я" * 300, "me", "7", "k")
        self.assertEqual(self.server.asked[0].params["reason"], "a b" + "я" * 253)

    def test_action_keys(self) -> None:
        self.assertEqual(smeet.action_key("e1", "reject", "42"), "e1:reject:42")
        for event_id in ("ж", "e" * 300, "\ud800", "a b"):
            key = smeet.action_key(event_id, "reply")
            self.assertRegex(key, r"\A[!-~]{1,255}\Z")
            self.assertEqual(key, smeet.action_key(event_id, "reply"))
            self.assertNotEqual(key, smeet.action_key(event_id, "other"))


if __name__ == "__main__":
    unittest.main()
