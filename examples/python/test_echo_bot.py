from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Dict, List, Optional

import bot_logic
import echo_bot
import smeet
from scripted_server import CODES, LOST, TOKEN, ScriptedServer, Step, batch, fail, html, ok, refuse, text, update

HERE = os.path.dirname(os.path.abspath(__file__))
SENT = ok({"message_id": "1"})
PRESS = update("43", "callback_query", callback_query={
    "callback_query_id": "5", "from": {"id": "812"}, "data": "yes",
    "message": {"message_id": "9", "chat": {"id": "550"}}})


class WithStateFile(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "state.json")

    def saved(self) -> Dict[str, Any]:
        with open(self.path) as file:
            return json.load(file)


class BotTest(WithStateFile):
    """The bot in this process, without real pauses."""

    def run_bot(self, *steps: Step, offset: Optional[str] = "43", epoch: Optional[str] = "7") -> None:
        """Runs the bot through the script; it is stopped where the script ends."""
        if offset or epoch:
            echo_bot.State(self.path, "b").save(offset, epoch)
        self.pauses: List[float] = []
        with ScriptedServer(*steps, at_end=lambda: self.bot.stop()) as self.server:
            client = smeet.Client(self.server.url, TOKEN, sleep=self.pauses.append)
            self.bot = echo_bot.EchoBot(client, echo_bot.State(self.path, "b"), "me")
            with self.assertLogs(level="INFO") as self.logs:
                echo_bot.log.info("start")  # assertLogs wants at least one
                self.bot.run()
        self.assertEqual(self.server.surprises, [])
        self.assertEqual(self.server.steps, [], "steps that nobody asked for")

    def asked(self) -> List[Any]:
        """consumer_id, epoch, offset of every getUpdates."""
        return [tuple(a.params.get(name) for name in ("consumer_id", "epoch", "offset"))
                for a in self.server.calls("getUpdates")]

    # What it does with updates.

    def test_echoes_then_saves_then_confirms(self) -> None:
        seen: List[Any] = []
        self.run_bot(("getUpdates", batch(text("43"), text("44", "Bye"), at="43", then="45")),
                     ("sendMessage", SENT), ("sendMessage", lambda: seen.append(self.saved()["offset"]) or SENT),
                     ("getUpdates", lambda: seen.append(self.saved()["offset"]) or batch(at="45", then="45")))
        self.assertEqual(seen, ["43", "45"], "the offset is saved after the batch and before it is confirmed")
        self.assertEqual(self.asked()[:2], [("me", "7", "43"), ("me", "7", "45")])
        first, second = self.server.calls("sendMessage")
        self.assertEqual((first.key, first.params), ("event-43:reply", {
            "chat_id": "550", "text": "Hello", "reply_to_message_id": "943"}))
        self.assertEqual((second.key, second.params["text"]), ("event-44:reply", "Bye"))

    def test_buttons_and_a_press(self) -> None:
        self.run_bot(("getUpdates", batch(text("42", "/buttons"), PRESS, at="42", then="44")), ("sendMessage", SENT),
                     ("answerCallbackQuery", SENT), ("sendMessage", SENT))
        shown, chosen = self.server.calls("sendMessage")
        self.assertEqual([[sorted(button) for button in row] for row in shown.params["buttons"]],
                         [[["data", "text"], ["data", "text"]]])
        answered = self.server.calls("answerCallbackQuery")[0]
        self.assertEqual((answered.params["callback_query_id"], answered.key), ("5", "event-43:answer"))
        self.assertEqual((chosen.params, chosen.key),
                         ({"chat_id": "550", "text": "You chose: yes"}, "event-43:reply"))

    def test_passes_over_what_is_not_for_it(self) -> None:
        self.run_bot(("getUpdates", batch(text("43", is_bot=True), update("44", "of_next_year", of_next_year=1),
                                          update("45", "message_edited"), text("46", None, photo={"file_id": "1"}),
                                          at="43", then="47")))
        self.assertEqual(self.saved()["offset"], "47")

    def test_moves_aside_what_it_cannot_read(self) -> None:
        bad = [text("43", 5), text("44", None), text("45", ""), text("46", chat="x"), update("47"),
               update("48", "callback_query", callback_query={"callback_query_id": "5"})]
        self.run_bot(("getUpdates", batch(*bad, text("49"), at="43", then="50")),
                     *[("rejectUpdate", ok({}))] * 6, ("sendMessage", SENT))
        self.assertEqual(self.server.calls("rejectUpdate")[0].params, {
            "update_id": "43", "consumer_id": "me", "epoch": "7",
            "reason": "The bot can't read this update: message.text is not a text"})
        self.assertEqual([a.key for a in self.server.calls("rejectUpdate")],
                         [f"event-{n}:reject:{n}" for n in range(43, 49)])
        self.assertEqual(self.saved()["offset"], "50")

    def test_a_bug_in_the_bot_moves_the_update_aside_and_tells_no_content(self) -> None:
        def broken(_client: Any, update: Dict[str, Any]) -> None:
            raise KeyError(update["message"]["text"])
        self.addCleanup(setattr, bot_logic, "on_message", bot_logic.on_message)
        bot_logic.on_message = broken  # type: ignore
        self.run_bot(("getUpdates", batch(text("43", "private"), at="43", then="44")), ("rejectUpdate", ok({})))
        reason = self.server.calls("rejectUpdate")[0].params["reason"]
        self.assertEqual(reason, "The bot failed on this update: KeyError")
        self.assertNotIn("private", "".join(self.logs.output))

    def test_nothing_to_move_aside(self) -> None:
        self.run_bot(("getUpdates", batch(text("43", 5), at="43", then="44")),
                     ("rejectUpdate", fail(404, "UPDATE_NOT_FOUND")))
        self.assertEqual(self.saved()["offset"], "44")

    def test_a_chat_that_is_gone_or_an_answer_given_before_holds_up_nothing(self) -> None:
        self.run_bot(("getUpdates", batch(text("42"), PRESS, text("44"), text("45"), at="42", then="46")),
                     ("sendMessage", fail(404, "CHAT_NOT_FOUND")),
                     ("answerCallbackQuery", fail(404, "UPDATE_NOT_FOUND")),
                     ("sendMessage", fail(409, "IDEMPOTENCY_KEY_REUSED")), ("sendMessage", SENT))
        self.assertEqual(self.saved()["offset"], "46")

    def test_an_answer_that_is_refused_for_good_moves_the_update_aside(self) -> None:
        self.run_bot(("getUpdates", batch(text("43"), text("44"), at="43", then="45")),
                     ("sendMessage", fail(400, "INVALID_REQUEST")), ("rejectUpdate", ok({})), ("sendMessage", SENT))
        self.assertEqual(self.server.calls("rejectUpdate")[0].params["reason"],
                         "The bot's answer was refused: INVALID_REQUEST")

    def test_skipped_ranges_are_logged_and_passed(self) -> None:
        gap = {"from_update_id": "43", "to_update_id": "49", "reason": "of_next_year"}
        self.run_bot(("getUpdates", batch(at="43", then="50", skipped=[gap])),
                     ("getUpdates", batch(at="50", then="50")))
        self.assertIn("updates 43 to 49 were skipped: of_next_year", "".join(self.logs.output))
        self.assertEqual(self.asked()[1], ("me", "7", "50"))

    # Faults on the way.

    def test_lost_answers_are_repeated_with_the_same_keys(self) -> None:
        self.run_bot(("getUpdates", LOST), ("getUpdates", html(502)), ("getUpdates", fail(503, "MAINTENANCE")),
                     ("getUpdates", fail(429, "RATE_LIMITED", retry_after=1)),
                     ("getUpdates", batch(text("43"), at="43", then="44")),
                     ("sendMessage", LOST), ("sendMessage", fail(503, "UNAVAILABLE")), ("sendMessage", SENT))
        self.assertEqual(set(self.asked()[:5]), {("me", "7", "43")})
        self.assertEqual({a.key for a in self.server.calls("sendMessage")}, {"event-43:reply"})

    def test_a_stop_while_an_answer_is_lost_leaves_the_update_for_the_next_start(self) -> None:
        def stop_and_lose() -> None:
            self.bot.stop()
            self.bot.client.stop.wait(30)
        self.run_bot(("getUpdates", batch(text("43"), at="43", then="44")), ("sendMessage", stop_and_lose))
        self.assertEqual((len(self.server.asked), self.saved()["offset"]), (2, "43"))

    def test_a_batch_that_comes_again_uses_the_same_keys(self) -> None:
        again = batch(text("43"), at="43", then="44")
        self.run_bot(("getUpdates", again), ("sendMessage", SENT), offset=None, epoch=None)
        first = self.server.calls("sendMessage")
        os.remove(self.path)  # as if it had been killed before it saved
        self.run_bot(("getUpdates", again), ("sendMessage", SENT), offset=None, epoch=None)
        self.assertEqual(self.server.calls("sendMessage"), first)

    def test_three_conflicts_keep_consumer_epoch_and_offset(self) -> None:
        self.run_bot(*[("getUpdates", fail(409, "CONSUMER_CONFLICT", retry_after=n)) for n in (25, 60, 1)],
                     ("getUpdates", batch(at="43", then="43")))
        self.assertEqual(set(self.asked()[:4]), {("me", "7", "43")})
        self.assertEqual(self.pauses[:3], [25, 60, 1])

    def test_cursor_behind_takes_the_servers_position(self) -> None:
        seen: List[Any] = []
        self.run_bot(("getUpdates", fail(409, "CURSOR_BEHIND", confirmed_offset="60")),
                     ("getUpdates", lambda: seen.append(self.saved()["offset"]) or batch(at="60", then="60")))
        self.assertEqual((self.asked()[1], seen), (("me", "7", "60"), ["60"]))

    def test_offset_not_issued_asks_without_offset(self) -> None:
        self.run_bot(("getUpdates", fail(400, "OFFSET_NOT_ISSUED")), ("getUpdates", batch(at="40", then="40")))
        self.assertEqual(self.asked()[1], ("me", "7", None))
        self.assertEqual(self.saved()["offset"], "40")

    def test_webhook_mode_and_pause_are_waited_for(self) -> None:
        self.run_bot(("getUpdates", fail(409, "DELIVERY_MODE_CONFLICT")), ("getUpdates", fail(409, "BOT_PAUSED")),
                     ("getUpdates", batch(text("43"), text("44"), at="43", then="45")),
                     ("sendMessage", SENT), ("sendMessage", fail(409, "BOT_PAUSED")),
                     ("getUpdates", batch(text("44"), at="44", then="45")), ("sendMessage", SENT))
        self.assertEqual(self.pauses[:3], [30, 30, 30])
        self.assertEqual(self.asked()[:4], [("me", "7", "43")] * 3 + [("me", "7", "44")])

    def test_a_new_epoch_is_kept_with_the_position_that_came_with_it(self) -> None:
        seen: List[Any] = []
        self.run_bot(("getUpdates", batch(text("40"), at="40", then="41", epoch="8")),
                     ("sendMessage", lambda: seen.append(self.saved()) or SENT))
        self.assertEqual((seen[0]["offset"], seen[0]["epoch"]), ("40", "8"))

    def test_errors_for_a_person_come_through(self) -> None:
        for status, code in ((401, "UNAUTHORIZED"), (403, "BOT_DISABLED"), (400, "INVALID_REQUEST"), (418, "NEW")):
            with self.subTest(code), self.assertRaises(smeet.ApiError) as caught:
                self.run_bot(("getUpdates", fail(status, code)))
            self.assertEqual(caught.exception.code, code)

    def test_every_code_that_another_method_can_give(self) -> None:
        """What follows, as the README's table says; all others end the bot with the update unconfirmed."""
        follows = {
            "sendMessage": {"done": ("CHAT_NOT_FOUND", "UPDATE_NOT_FOUND", "IDEMPOTENCY_KEY_REUSED"),
                            "rejected": ("INVALID_REQUEST", "REQUEST_TOO_LARGE", "INTERNAL")},
            "rejectUpdate": {"done": ("UPDATE_NOT_FOUND", "IDEMPOTENCY_KEY_REUSED"), "again": ("INTERNAL",)},
        }
        repeats = ("RATE_LIMITED", "MAINTENANCE", "UNAVAILABLE")
        again = ("CONSUMER_CONFLICT", "CURSOR_BEHIND", "OFFSET_NOT_ISSUED", "DELIVERY_MODE_CONFLICT", "BOT_PAUSED")
        for method, known in follows.items():
            one = batch(text("43", "Hello" if method == "sendMessage" else 5), at="43", then="44")
            for code in CODES:
                times = smeet.INTERNAL_TRIES if code == "INTERNAL" else 1
                steps: List[Step] = [("getUpdates", one)] + [(method, refuse(code))] * times
                with self.subTest(method=method, code=code):
                    if code in known["done"]:
                        self.run_bot(*steps)
                    elif code in known.get("rejected", ()):
                        self.run_bot(*steps, ("rejectUpdate", ok({})))
                    elif code in repeats:
                        self.run_bot(*steps, (method, SENT))
                    elif code in again + known.get("again", ()):
                        self.run_bot(*steps, ("getUpdates", one), (method, SENT))
                    else:
                        with self.assertRaises(smeet.ApiError):
                            self.run_bot(*steps)
                        self.assertEqual(self.saved()["offset"], "43")
                        continue
                    self.assertEqual(self.saved()["offset"], "44")

    # The state file.

    def test_a_kill_between_write_and_rename_leaves_the_old_state(self) -> None:
        echo_bot.State(self.path, "b").save("43", "7")
        code = ("import os, signal, sys; sys.path.insert(0, sys.argv[1]); import echo_bot\n"
                "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
                "echo_bot.State(sys.argv[2], 'b').save('44', '8')")
        self.assertEqual(subprocess.run([sys.executable, "-B", "-c", code, HERE, self.path]).returncode,
                         -signal.SIGKILL)
        self.assertTrue(os.path.exists(self.path + ".new"))
        state = echo_bot.State(self.path, "b")
        self.assertEqual((state.offset, state.epoch), ("43", "7"))
        state.save("45", "9")
        state = echo_bot.State(self.path, "b")
        self.assertEqual((state.offset, state.epoch), ("45", "9"))

    def test_a_file_that_is_not_ours_is_no_position(self) -> None:
        for content in ("", "[]", "{}", '{"offset": 5, "epoch": "7"}', '{"offset": "x", "epoch": "7"}',
                        '{"bot": "other", "offset": "43", "epoch": "7"}'):
            with open(self.path, "w") as file:
                file.write(content)
            with self.subTest(content), self.assertLogs("echo_bot", "WARNING"):
                state = echo_bot.State(self.path, "b")
                self.assertEqual((state.offset, state.epoch), (None, None))


if __name__ == "__main__":
    unittest.main()
