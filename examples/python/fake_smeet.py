"""For the tests: a small SMeet on 127.0.0.1 with one bot's queue, leases, and keys as the real one keeps them.

at(point) is called at every step of a call; it may end the bot's process, and says whether the answer
is lost. The points, in their order:

  asked getUpdates, confirmed, given      before anything, the position has moved, the answer is out
  asked sendMessage, sent, answered       before anything, the message is sent, the answer is out
"""
from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from scripted_server import text

TOKEN = "sbt1_for_tests_only"
WAIT_SECONDS = 0.2  # of a poll with nothing to give


class FakeSMeet:
    """Use as a context manager. It has the updates 1 to n, and gives up to limit a batch."""

    def __init__(self, n: int, limit: int = 3, at: Callable[[str], bool] = lambda _: False) -> None:
        self.updates = [text(str(i), f"Hello {i}") for i in range(1, n + 1)]
        self.limit, self.at = limit, at
        self.position, self.issued, self.epoch = 1, 0, 0
        self.failed: Set[str] = set()            # update_ids that were moved aside
        self.sent: List[Tuple[str, str]] = []    # key and text of every message that people see, in their order
        self.keys: Dict[str, Tuple[Any, Any]] = {}  # key -> what it was used for, and the answer
        self.polls = 0
        self.changed = threading.Condition()

    def __enter__(self) -> "FakeSMeet":
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                method = self.path.rpartition("/")[2]
                params = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, body, after = fake.call(method, params, self.headers["Idempotency-Key"])
                if body is None:
                    self.close_connection = True
                    return
                raw = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
                self.wfile.flush()
                if after:
                    fake.step(after)

            def log_message(self, format: str, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a client that is gone

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.shutdown()
        self.server.server_close()

    def call(self, method: str, params: Dict[str, Any], key: Optional[str]) -> Tuple[int, Any, str]:
        """Status, body (None: lost) and the point after the answer."""
        if method == "getMe":
            return 200, {"ok": True, "result": {"id": "1", "username": "a_bot"}}, ""
        if self.step("asked " + method):
            return 0, None, ""
        with self.changed:
            status, result = self.get_updates(params) if method == "getUpdates" else self.write(method, params, key)
        if status != 200:
            return status, {"ok": False, "error": result, "request_id": "r"}, ""
        point, after = {"getUpdates": ("confirmed", "given"), "sendMessage": ("sent", "answered")}.get(method, ("done", ""))
        return (0, None, "") if self.step(point) else (200, {"ok": True, "result": result}, after)

    def step(self, point: str) -> bool:
        lost = self.at(point)
        with self.changed:
            self.changed.notify_all()
        return lost

    def write(self, method: str, params: Dict[str, Any], key: Optional[str]) -> Tuple[int, Any]:
        if key is None:
            return 400, {"code": "IDEMPOTENCY_KEY_REQUIRED", "message": "-"}
        used = (method, params)
        if key in self.keys:  # the same call again: the stored answer, and nothing is done
            before, result = self.keys[key]
            return (200, result) if before == used else (409, {"code": "IDEMPOTENCY_KEY_REUSED", "message": "-"})
        if method == "rejectUpdate":
            if params["epoch"] != str(self.epoch):
                return 409, {"code": "CONSUMER_CONFLICT", "message": "-", "retry_after": 1}
            if not self.position <= int(params["update_id"]) <= self.issued or params["update_id"] in self.failed:
                return 404, {"code": "UPDATE_NOT_FOUND", "message": "-"}
            self.failed.add(params["update_id"])
        else:
            self.sent.append((key, params["text"]))
        self.keys[key] = (used, {"message_id": str(len(self.keys))})
        return 200, self.keys[key][1]

    def get_updates(self, params: Dict[str, Any]) -> Tuple[int, Any]:
        self.polls += 1
        offset = params.get("offset")
        if params.get("epoch") == str(self.epoch) and offset is not None:
            if int(offset) < self.position:
                return 409, {"code": "CURSOR_BEHIND", "message": "-", "confirmed_offset": str(self.position)}
            if int(offset) > self.issued + 1:
                return 400, {"code": "OFFSET_NOT_ISSUED", "message": "-"}
            self.position = int(offset)
        if params.get("epoch") != str(self.epoch):
            self.epoch += 1  # a new lease; what the offset says doesn't count
        if params.get("timeout", 25) > 0:
            self.changed.wait_for(lambda: len(self.updates) >= self.position, WAIT_SECONDS)
        span = self.updates[self.position - 1:self.position - 1 + self.limit]
        following = self.position + len(span)
        self.issued = max(self.issued, following - 1)
        gone = [update["update_id"] for update in span if update["update_id"] in self.failed]
        return 200, {"updates": [update for update in span if update["update_id"] not in gone],
                     "confirmed_offset": str(self.position), "next_offset": str(following),
                     "skipped": [{"from_update_id": i, "to_update_id": i, "reason": "failed"} for i in gone],
                     "lease": {"consumer_id": params["consumer_id"], "epoch": str(self.epoch), "expires_at": "2026-09-26T10:01:04Z"}}

    def write_event(self, update: Dict[str, Any]) -> None:
        """Appends an update, as the messenger or an owner's Retry does."""
        with self.changed:
            self.updates.append({**update, "update_id": str(len(self.updates) + 1)})
            self.changed.notify_all()

    def wait(self, done: Callable[[], bool], seconds: float = 30) -> bool:
        """Waits until done(), which is looked at after every step."""
        with self.changed:
            return self.changed.wait_for(done, seconds)

    def confirmed(self) -> bool:
        return self.position == len(self.updates) + 1
