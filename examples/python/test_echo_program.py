from __future__ import annotations

import os
import signal
import subprocess
import sys
import unittest

from scripted_server import TOKEN, Answer, ScriptedServer, batch, fail, ok, text
from test_echo_bot import WithStateFile

HERE = os.path.dirname(os.path.abspath(__file__))
SENT = ok({"message_id": "1"})


class ProgramTest(WithStateFile):
    """The program as it is started, with real signals."""

    def start(self, url: str, **more: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "SMEET_URL": url, "SMEET_TOKEN": TOKEN + "\n", "SMEET_CONSUMER_ID": "me",
                       "SMEET_STATE": self.path, **more}
        process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "echo_bot.py")], env=environment,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finish(self, process: "subprocess.Popen[str]") -> str:
        output = process.communicate(timeout=30)[1]
        self.assertNotIn(TOKEN, output)
        self.assertNotIn("Traceback", output)
        return output

    def test_sigterm_inside_a_handler(self) -> None:
        def end_and_answer() -> Answer:
            process.send_signal(signal.SIGTERM)
            return SENT
        with ScriptedServer(("getUpdates", batch(text("43"), text("44"), at="43", then="45")),
                            ("sendMessage", end_and_answer),
                            ("getUpdates", batch(text("44"), at="44", then="45"))) as server:
            process = self.start(server.url)
            self.finish(process)
        self.assertEqual(process.returncode, 0)
        self.assertEqual((self.saved()["offset"], self.saved()["epoch"]), ("44", "7"))
        self.assertEqual([a.method for a in server.asked], ["getUpdates", "sendMessage", "getUpdates"])
        self.assertEqual((server.asked[2].params["offset"], server.asked[2].params["timeout"]), ("44", 0))

    def test_signals_end_a_waiting_poll(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number), ScriptedServer(
                    ("getUpdates", lambda: process.send_signal(number) or server.hold())) as server:
                process = self.start(server.url)
                self.assertNotIn("WARNING", self.finish(process))
                self.assertEqual(process.returncode, 0)

    def test_a_signal_ends_a_pause(self) -> None:
        def pause_and_end() -> Answer:
            process.send_signal(signal.SIGTERM)
            return fail(409, "CONSUMER_CONFLICT", retry_after=60)
        with ScriptedServer(("getUpdates", pause_and_end)) as server:
            process = self.start(server.url)
            self.finish(process)
        self.assertEqual(process.returncode, 0)

    def test_errors_for_a_person_end_it_with_one_sentence(self) -> None:
        for status, code, words in ((401, "UNAUTHORIZED", "SMEET_TOKEN"), (403, "BOT_DISABLED", "administrator"),
                                    (400, "INVALID_REQUEST", "SMEET_CONSUMER_ID")):
            with self.subTest(code), ScriptedServer(("getUpdates", fail(status, code))) as server:
                process = self.start(server.url)
                lines = [line for line in self.finish(process).splitlines() if " ERROR " in line]
                self.assertEqual((process.returncode, len(lines)), (1, 1))
                self.assertIn(words, lines[0])

    def test_settings_that_cannot_work(self) -> None:
        with ScriptedServer(("getUpdates", batch(at="43", then="43"))) as server:
            for more, words in (({"SMEET_TOKEN": ""}, "SMEET_TOKEN"), ({"SMEET_URL": "host"}, "SMEET_URL"),
                                ({"SMEET_STATE": "/no/such/folder/state"}, "state file")):
                with self.subTest(words):
                    process = self.start(server.url, **more)
                    self.assertIn(words, self.finish(process))
                    self.assertEqual(process.returncode, 1)


if __name__ == "__main__":
    unittest.main()
