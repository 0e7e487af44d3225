from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import logging
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any, Dict, List, Optional

import inbox
import webhook_bot

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "..", "testdata", "signature.json"), encoding="utf-8") as _file:
    VECTORS = json.load(_file)
SECRET = VECTORS["secret"]
BODY = VECTORS["body"].encode()


def sign(body: bytes, t: Optional[int] = None, secret: str = SECRET) -> str:
    at = str(int(time.time()) if t is None else t)
    return f"t={at},v1=" + hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()


def update(event_id: str, kind: str = "message", **fields: Any) -> bytes:
    return json.dumps({"update_id": "1", "event_id": event_id, "type": kind, **fields}).encode()


class SignatureTest(unittest.TestCase):
    def test_vector(self) -> None:
        self.assertEqual(sign(BODY, VECTORS["t"]), VECTORS["header"])
        self.assertTrue(webhook_bot.verify_signature(SECRET.encode(), VECTORS["header"], BODY, VECTORS["t"]))

    def test_cases(self) -> None:
        for case in VECTORS["cases"]:
            with self.subTest(case["name"]):
                got = webhook_bot.verify_signature(case["secret"].encode(), case["header"], case["body"].encode(),
                                                   case["now"])
                self.assertIs(got, case["valid"])

    def test_no_header(self) -> None:
        self.assertFalse(webhook_bot.verify_signature(SECRET.encode(), None, BODY, VECTORS["t"]))


class WithStore(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "store.sqlite3")
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def rows(self) -> List[Any]:
        db = sqlite3.connect(self.path)
        try:
            return db.execute("SELECT event_id, body, state FROM inbox ORDER BY place").fetchall()
        finally:
            db.close()


class ReceiverTest(WithStore):
    """The receiver in this process, over HTTP."""

    def setUp(self) -> None:
        super().setUp()
        self.stored = 0
        self.start()

    def start(self) -> None:
        self.inbox = inbox.Inbox(self.path)
        self.receiver = webhook_bot.Receiver(("127.0.0.1", 0), "/hook", SECRET, self.inbox, self.count, check=self.check)
        self.thread = threading.Thread(target=self.receiver.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.receiver.server_address[1], timeout=20)

    def check(self, update: Dict[str, Any]) -> Optional[str]:
        return "it is bad" if update["event_id"] == "bad" else None

    def count(self) -> None:
        self.stored += 1

    def stop(self) -> None:
        self.connection.close()
        self.receiver.shutdown()
        self.thread.join()
        self.receiver.server_close()
        self.inbox.close()

    def tearDown(self) -> None:
        self.stop()

    def post(self, body: bytes, signature: Optional[str] = None, path: str = "/hook", method: str = "POST",
             headers: Optional[Dict[str, str]] = None) -> int:
        sent = {"X-SMeet-Signature": sign(body) if signature is None else signature, **(headers or {})}
        self.connection.request(method, path, body, sent)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status

    def test_good(self) -> None:
        self.assertEqual(self.post(BODY), 200)
        event_id = json.loads(BODY)["event_id"]
        self.assertEqual(self.rows(), [(event_id, BODY.decode(), "waiting")])
        self.assertEqual(self.stored, 1)

    def test_several_on_one_connection(self) -> None:
        self.assertEqual([self.post(update("a")), self.post(update("b")), self.post(update("c"), path="/hook?x=1")],
                         [200, 200, 200])
        self.assertEqual([row[0] for row in self.rows()], ["a", "b", "c"])

    def test_bad_signature(self) -> None:
        for signature in ("", sign(BODY, secret="another"), sign(BODY + b"\n"), sign(BODY, int(time.time()) - 400)):
            self.assertEqual(self.post(BODY, signature), 401)
        self.assertEqual((self.rows(), self.stored), ([], 0))

    def test_signature_comes_before_parsing(self) -> None:
        self.assertEqual(self.post(b"{", "t=1,v1=0"), 401)

    def test_duplicate(self) -> None:
        self.assertEqual([self.post(BODY), self.post(BODY)], [200, 200])
        self.assertEqual((len(self.rows()), self.stored), (1, 1))

    def test_restart_keeps_ids(self) -> None:
        self.assertEqual(self.post(BODY), 200)
        self.inbox.settle(json.loads(BODY)["event_id"], "handled")
        self.stop()
        self.start()
        self.assertEqual(self.post(BODY), 200)
        self.assertEqual(([row[2] for row in self.rows()], self.stored), (["handled"], 1))

    def test_unknown_type(self) -> None:
        self.assertEqual([self.post(update("a", "of_a_later_version")), self.post(update("b", "test"))], [200, 200])
        self.assertEqual(self.rows(), [])

    def test_what_can_never_be_handled(self) -> None:
        for body in (b"", b"{", b"[]", b"null", b'"x"', b"{}", b"\xff", update("", "message"), update("a\n"),
                     b"[" * 100_000, b'{"update_id":1,"event_id":"a","type":"message"}', "\ufeff{}".encode()):
            self.assertEqual(self.post(body), 400, body[:60])
        self.assertEqual(self.rows(), [])

    def test_what_the_bot_can_never_handle(self) -> None:
        self.assertEqual([self.post(update("bad")), self.post(update("good"))], [422, 200])
        self.assertEqual([row[0] for row in self.rows()], ["good"])

    def test_unknown_type_is_not_checked(self) -> None:
        self.assertEqual(self.post(update("bad", "of_a_later_version")), 200)

    def test_oversized(self) -> None:
        body = update("a", text="x" * webhook_bot.MAX_BODY)
        self.assertEqual(self.post(body), 413)
        self.assertEqual(self.post(update("b", text="x" * (webhook_bot.MAX_BODY - 200))), 200)
        self.assertEqual([row[0] for row in self.rows()], ["b"])

    def test_length_is_needed(self) -> None:
        self.connection.request("POST", "/hook", iter([BODY]), {"X-SMeet-Signature": sign(BODY)}, encode_chunked=True)
        self.assertEqual(self.connection.getresponse().status, 411)

    def test_other_addresses(self) -> None:
        self.assertEqual(self.post(BODY, path="/"), 404)
        self.assertEqual(self.post(b"", path="/hook", method="GET"), 405)
        self.assertEqual(self.post(b"", path="/healthz", method="GET"), 200)

    def test_store_fails(self) -> None:
        self.inbox.close()
        self.assertEqual(self.post(BODY), 503)
        self.inbox = inbox.Inbox(self.path)
        self.receiver.inbox = self.inbox
        self.assertEqual(self.post(BODY), 200)

    def test_no_secret(self) -> None:
        with self.assertRaises(ValueError):
            webhook_bot.Receiver(("127.0.0.1", 0), "/", "", self.inbox, self.count)


class ProgramTest(WithStore):
    """The program refuses to start where it could do harm."""

    def start(self, *flags: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([sys.executable, os.path.join(HERE, "webhook_bot.py"), *flags], timeout=20, text=True,
                              capture_output=True, env={"PATH": os.environ["PATH"], "SMEET_WEBHOOK_STORE": self.path, **env})

    def test_refuses(self) -> None:
        for word, flags, env in (("SMEET_WEBHOOK_SECRET", ["--behind-proxy"], {}),
                                 ("SMEET_WEBHOOK_SECRET", ["--behind-proxy"], {"SMEET_WEBHOOK_SECRET": " \n"}),
                                 ("SMEET_WEBHOOK_CERT", [], {"SMEET_WEBHOOK_SECRET": SECRET}),
                                 ("SMEET_WEBHOOK_PATH", ["--behind-proxy"],
                                  {"SMEET_WEBHOOK_SECRET": SECRET, "SMEET_WEBHOOK_PATH": "x"}),
                                 ("Can't start", [], {"SMEET_WEBHOOK_SECRET": SECRET, "SMEET_WEBHOOK_CERT": "/none",
                                                      "SMEET_WEBHOOK_KEY": "/none"})):
            with self.subTest(word):
                ended = self.start(*flags, **env)
                self.assertEqual(ended.returncode, 1)
                self.assertIn(word, ended.stderr)
                self.assertNotIn(SECRET, ended.stderr)


if __name__ == "__main__":
    unittest.main()
