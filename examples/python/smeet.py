"""A small client for the SMeet Bot API. Standard library only, Python 3.9 or newer.

    client = Client("http://127.0.0.1:8080", token)
    batch = client.get_updates("my-host")

Ids, offsets and epochs are strings; keep them so. Use a Client from one thread;
only interrupt() may be called from another.
"""
from __future__ import annotations

import hashlib
import http.client
import json
import logging
import random
import re
import socket
import threading
from typing import Any, Callable, Dict, List, Optional
from urllib.parse import urlsplit

log = logging.getLogger("smeet")

POLL_SECONDS = 25        # how long getUpdates may wait on the server
ANSWER_SECONDS = 15      # how long any other answer may take; a poll gets this on top of its own time
CONNECT_SECONDS = 10
LONGEST_PAUSE = 30       # between two tries, where the server names no time
LONGEST_RETRY_AFTER = 300
INTERNAL_TRIES = 6       # a 500 may be meant for this one request: give up on it after so many

READS = frozenset({"getMe", "getUpdates", "getDeliveryInfo", "getWebhookInfo"})


class Stopped(Exception):
    """The program was asked to end while a call waited. The call may be repeated after a restart."""


class ApiError(Exception):
    """A call that failed for good.

    code is one of the server's, or one of these three with no answer from the Bot API behind it:
      NOT_CONNECTED  nothing was sent
      NO_ANSWER      the connection broke after sending: the call may or may not have been done
      BAD_ANSWER     the body wasn't from the Bot API, for example a proxy's HTML page
    retry_after is in seconds or None; details holds the error's further fields; status is 0 without
    an answer.
    """

    def __init__(self, code: str, message: str, retry_after: Optional[int] = None,
                 details: Optional[Dict[str, Any]] = None, request_id: Optional[str] = None,
                 status: int = 0) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.retry_after = retry_after
        self.details = details or {}
        self.request_id = request_id
        self.status = status

    def __str__(self) -> str:
        known = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.code}: {self.message}{known}"


class Client:
    """Calls Bot API methods and repeats by itself what may be repeated.

    stop ends every pause as soon as it is set. sleep(seconds) replaces the real pause in tests.
    Raises ValueError for an address or a token that can't be right.
    """

    def __init__(self, base_url: str, token: str, stop: Optional[threading.Event] = None,
                 sleep: Optional[Callable[[float], Any]] = None) -> None:
        address = urlsplit(base_url)
        if address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
            raise ValueError("the address must look like https://host or http://host:port")
        address.hostname.encode("idna")
        if not re.fullmatch(r"[!-~]+", token):  # anything else would end up in an error text of http.client
            raise ValueError("the token is empty or holds characters that no token has")
        self._secure = address.scheme == "https"
        self._host, self._port = address.hostname, address.port
        self._path = address.path.rstrip("/") + "/bot-api/v1/"
        self._token = token
        self._poll: Optional[socket.socket] = None
        self.stop = stop or threading.Event()
        self._sleep = sleep or self.stop.wait

    # The methods of the Bot API.

    def get_me(self) -> Dict[str, Any]:
        return self.call("getMe")

    def get_delivery_info(self) -> Dict[str, Any]:
        return self.call("getDeliveryInfo")

    def get_updates(self, consumer_id: str, epoch: Optional[str] = None, offset: Optional[str] = None,
                    timeout: int = POLL_SECONDS, limit: int = 100) -> Dict[str, Any]:
        """The next batch. Passing offset confirms every update below it."""
        return self.call("getUpdates", {"consumer_id": consumer_id, "epoch": epoch, "offset": offset,
                                        "timeout": timeout, "limit": limit},
                         timeout=timeout + ANSWER_SECONDS)

    def reject_update(self, update_id: str, reason: str, consumer_id: str, epoch: str,
                      idempotency_key: str) -> Dict[str, Any]:
        """Moves an update aside. The owner reads the reason: no personal data, no secrets in it."""
        reason = "".join(c if c.isprintable() else " " for c in reason)[:256]
        return self.call("rejectUpdate", {"update_id": update_id, "reason": reason,
                                          "consumer_id": consumer_id, "epoch": epoch}, idempotency_key)

    def send_message(self, chat_id: str, text: str, idempotency_key: str,
                     reply_to_message_id: Optional[str] = None,
                     buttons: Optional[List[List[Dict[str, str]]]] = None) -> Dict[str, Any]:
        """Sends 1 to 4096 characters. buttons is a list of rows of {"text": …, "data": …}."""
        return self.call("sendMessage", {"chat_id": chat_id, "text": text, "buttons": buttons,
                                         "reply_to_message_id": reply_to_message_id}, idempotency_key)

    def answer_callback_query(self, callback_query_id: str, idempotency_key: str,
                              text: Optional[str] = None) -> Dict[str, Any]:
        return self.call("answerCallbackQuery", {"callback_query_id": callback_query_id, "text": text},
                         idempotency_key)

    # How a call travels.

    def call(self, method: str, params: Optional[Dict[str, Any]] = None,
             idempotency_key: Optional[str] = None, timeout: float = ANSWER_SECONDS) -> Any:
        """Calls a method and gives its result. Fields that are None are left out.

        Repeats the very same request while the fault may pass: 429, 503, a lost connection, a body
        that isn't the Bot API's. A write without idempotency_key is repeated only where it is certain
        that nothing was done. Raises ApiError, or Stopped once stop is set and a pause is due.
        """
        params = {name: value for name, value in (params or {}).items() if value is not None}
        repeatable = method in READS or idempotency_key is not None
        tries = 0
        while True:
            try:
                return self._once(method, params, idempotency_key, timeout)
            except ApiError as error:
                tries += 1
                if not may_repeat(error, repeatable, tries):
                    raise
                if self.stop.is_set():
                    raise Stopped() from None
                wait = pause(error.retry_after, tries)
                log.warning("%s: %s; next try in %.1f s", method, error, wait)
            self.sleep(wait)

    def sleep(self, seconds: float) -> None:
        """Pauses; raises Stopped as soon as stop is set."""
        self._sleep(seconds)
        if self.stop.is_set():
            raise Stopped()

    def interrupt(self) -> None:
        """Sets stop and ends a getUpdates that waits. A write in flight still gets its answer."""
        self.stop.set()
        poll = self._poll
        if poll is not None:
            try:
                socket.socket.shutdown(poll, socket.SHUT_RDWR)
            except OSError:
                pass  # it has just ended by itself

    def _once(self, method: str, params: Dict[str, Any], key: Optional[str], timeout: float) -> Any:
        headers = {"Authorization": "Bearer " + self._token, "Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        connect = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = connect(self._host, self._port, timeout=CONNECT_SECONDS)
        try:
            try:
                connection.connect()
            except OSError as fault:
                raise ApiError("NOT_CONNECTED", f"can't connect ({fault})") from None
            connection.sock.settimeout(timeout)
            if method == "getUpdates" and params.get("timeout", POLL_SECONDS) > 0:
                self._poll = connection.sock
                if self.stop.is_set():  # interrupt() may have come before the line above
                    raise Stopped()
            connection.request("POST", self._path + method, json.dumps(params), headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as fault:
            raise ApiError("NO_ANSWER", f"the connection broke ({type(fault).__name__})") from None
        finally:
            self._poll = None
            connection.close()
        return result_of(response.status, response.getheader("Retry-After"), body)


def result_of(status: int, retry_header: Optional[str], body: bytes) -> Any:
    """The result in an answer; raises the ApiError that the answer stands for."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        answer = {}
    if answer.get("ok") is True and "result" in answer:
        return answer["result"]
    error = answer.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("code"), str):
        raise ApiError("BAD_ANSWER", f"HTTP {status} with a body that isn't the Bot API's; "
                       "if this stays, check the address", retry_seconds(retry_header), status=status)
    details = {name: value for name, value in error.items() if name not in ("code", "message", "retry_after")}
    raise ApiError(error["code"], str(error.get("message", "")),
                   retry_seconds(error.get("retry_after")) or retry_seconds(retry_header),
                   details, answer.get("request_id"), status)


def may_repeat(error: ApiError, repeatable: bool, tries: int) -> bool:
    """Whether the same request may go out again."""
    if error.status == 429 or error.code == "NOT_CONNECTED":
        return True  # nothing was done
    if not repeatable:
        return False
    if error.status == 503 or error.code in ("NO_ANSWER", "BAD_ANSWER"):
        return True
    return error.status >= 500 and tries < INTERNAL_TRIES


def pause(retry_after: Optional[int], tries: int) -> float:
    """Seconds to the next try: what the server says and a little more, else growing, never in step."""
    if retry_after is not None:
        return retry_after + random.uniform(0, 1)
    return min(LONGEST_PAUSE, 2 ** min(tries - 1, 10)) * random.uniform(0.5, 1)


def retry_seconds(value: Any) -> Optional[int]:
    """A retry_after of at least 1 and at most LONGEST_RETRY_AFTER seconds, or None if it is no number."""
    if isinstance(value, int) or (isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value)):
        return max(1, min(int(value), LONGEST_RETRY_AFTER))
    return None


def action_key(event_id: str, action: str, *more: str) -> str:
    """The Idempotency-Key of one action on one event: the same after a repeat, a restart, a replay."""
    key = ":".join((event_id, action) + more)
    if re.fullmatch(r"[!-~]{1,255}", key):
        return key
    return "sha256:" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


# What a person has to mend, and how.
ADVICE = {"UNAUTHORIZED": "The token is not valid: take the current one from My bots, put it into "
                          "SMEET_TOKEN and start again.",
          "BOT_DISABLED": "This bot's organisation has bots switched off: ask its administrator to "
                          "switch them on and start again.",
          "INVALID_REQUEST": "The server refuses the request: check SMEET_CONSUMER_ID (1 to 64 of "
                             "A-Z a-z 0-9 . _ -) and start again."}


def advice(error: ApiError) -> str:
    """What to do about an error that ends the program or holds it up."""
    return f"{ADVICE.get(error.code, 'The server gave an error that this bot does not know; look it up and start again.')} [{error}]"
