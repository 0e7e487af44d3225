"""For the tests: an HTTP server on 127.0.0.1 that answers calls by a script and keeps what it was asked."""
from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

TOKEN = "sbt1_for_tests_only"

# Every code that the Bot API has, with its status.
CODES = {"INVALID_REQUEST": 400, "OFFSET_NOT_ISSUED": 400, "IDEMPOTENCY_KEY_REQUIRED": 400, "UNAUTHORIZED": 401,
         "BOT_DISABLED": 403, "METHOD_NOT_FOUND": 404, "UPDATE_NOT_FOUND": 404, "CHAT_NOT_FOUND": 404,
         "METHOD_NOT_ALLOWED": 405, "CONSUMER_CONFLICT": 409, "CURSOR_BEHIND": 409, "DELIVERY_MODE_CONFLICT": 409,
         "IDEMPOTENCY_KEY_REUSED": 409, "BOT_PAUSED": 409, "REQUEST_TOO_LARGE": 413, "UNSUPPORTED_MEDIA_TYPE": 415,
         "RATE_LIMITED": 429, "INTERNAL": 500, "MAINTENANCE": 503, "UNAVAILABLE": 503}


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Dict[str, str] = {}


class Asked(NamedTuple):
    method: str
    params: Dict[str, Any]
    key: Optional[str]
    authorization: Optional[str]


LOST = None  # the server reads the request and closes the connection
Step = Tuple[str, Union[Answer, None, Callable[[], Optional[Answer]]]]  # the method that is due, the answer


def ok(result: Any) -> Answer:
    return Answer(200, json.dumps({"ok": True, "result": result}).encode())


def fail(status: int, code: str, **more: Any) -> Answer:
    error = {"code": code, "message": "as scripted", **more}
    return Answer(status, json.dumps({"ok": False, "error": error, "request_id": "r-1"}).encode())


def refuse(code: str, **more: Any) -> Answer:
    """The error of this code, as the server gives it."""
    if CODES[code] in (429, 503) or code == "CONSUMER_CONFLICT":
        more.setdefault("retry_after", 2)
    if code == "CURSOR_BEHIND":
        more.setdefault("confirmed_offset", "40")
    return fail(CODES[code], code, **more)


def html(status: int, **headers: str) -> Answer:
    return Answer(status, b"<html>Bad Gateway</html>", {"Content-Type": "text/html", **headers})


def batch(*updates: Dict[str, Any], at: str, then: str, epoch: str = "7",
          skipped: Optional[List[Dict[str, str]]] = None) -> Answer:
    return ok({"updates": list(updates), "confirmed_offset": at, "next_offset": then, "skipped": skipped or [],
               "lease": {"consumer_id": "me", "epoch": epoch, "expires_at": "2026-09-26T10:01:04Z"}})


def update(update_id: str, kind: str = "message", **payload: Any) -> Dict[str, Any]:
    return {"update_id": update_id, "event_id": "event-" + update_id, "type": kind,
            "date": "2026-09-26T10:00:00Z", **payload}


def text(update_id: str, words: Any = "Hello", is_bot: bool = False, **more: Any) -> Dict[str, Any]:
    return update(update_id, message={
        "message_id": "9" + update_id, "chat": {"id": "550", "type": "private"},
        "from": {"id": "812", "display_name": "Anna", "is_bot": is_bot},
        "date": "2026-09-26T10:00:00Z", "text": words, **more})


class ScriptedServer:
    """Use as a context manager. After the last step it calls at_end and closes every connection."""

    def __init__(self, *steps: Step, at_end: Callable[[], Any] = lambda: None) -> None:
        self.steps, self.at_end = list(steps), at_end
        self.asked: List[Asked] = []
        self.surprises: List[str] = []
        self.lock, self.over = threading.Lock(), threading.Event()

    def __enter__(self) -> "ScriptedServer":
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                answer = script.answer(Asked(self.path.rpartition("/")[2], json.loads(raw),
                                             self.headers["Idempotency-Key"], self.headers["Authorization"]))
                if answer is not None:
                    self.send_response(answer.status)
                    for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                        self.send_header(name.replace("_", "-"), value)
                    self.end_headers()
                    self.wfile.write(answer.body)

            def log_message(self, format: str, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a client that went away while it was answered

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, asked: Asked) -> Optional[Answer]:
        with self.lock:
            self.asked.append(asked)
            due, answer = self.steps.pop(0) if self.steps else (asked.method, self.end)
            if asked.method != due:
                self.surprises.append(f"asked {asked.method}, due was {due}")
        return answer() if callable(answer) else answer

    def end(self) -> Optional[Answer]:
        self.at_end()
        return LOST

    def hold(self) -> Optional[Answer]:
        """An answer that doesn't come while the test runs."""
        self.over.wait(30)
        return LOST

    def calls(self, method: str) -> List[Asked]:
        return [asked for asked in self.asked if asked.method == method]
