#!/usr/bin/env python3
"""An echo bot: it receives by long polling and answers every text message with the same text.

It handles a batch before it confirms it, so a batch can come twice. That is safe here because all
it does is call the Bot API with Idempotency-Keys. A bot that writes to a database of its own should
store the updates together with next_offset first, confirm, and work from its store.
"""
from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
import traceback
from typing import Any, Dict, Optional

import smeet

log = logging.getLogger("echo_bot")

LOOK_AGAIN_SECONDS = 30
# getUpdates has nothing to give now; the owner or the server has to change something first.
LOOK_AGAIN = {"DELIVERY_MODE_CONFLICT": "the bot receives by webhook",
              "BOT_PAUSED": "the bot is paused",
              "INTERNAL": "the server has a fault"}
# An answer that the server will never take: the update is moved aside so that it blocks no other.
REFUSED = {"INVALID_REQUEST", "REQUEST_TOO_LARGE", "INTERNAL"}
# An answer that is no longer needed or wanted.
POINTLESS = {"CHAT_NOT_FOUND": "the chat is gone or closed to the bot",
             "UPDATE_NOT_FOUND": "the button press is no longer known",
             "IDEMPOTENCY_KEY_REUSED": "an earlier version of this bot has answered it"}
ADVICE = {"UNAUTHORIZED": "The token is not valid: take the current one from My bots, put it into "
                          "SMEET_TOKEN and start again.",
          "BOT_DISABLED": "This bot's organisation has bots switched off: ask its administrator to "
                          "switch them on and start again.",
          "INVALID_REQUEST": "The server refuses the request: check SMEET_CONSUMER_ID (1 to 64 of "
                             "A-Z a-z 0-9 . _ -) and start again."}

FRAME = {"message_id", "chat", "from", "date", "text"}  # a message with more than this may do without text
KINDS = {str: "a text", dict: "an object"}


class Unreadable(Exception):
    """An update that lacks what its type needs. Its text goes to the owner: no personal data in it."""


class State:
    """Offset and epoch in one small file. Both always come from the same moment."""

    def __init__(self, path: str, bot: str) -> None:
        """bot marks whose position this is, so that another bot's file is never taken for ours."""
        self.path, self.bot = path, bot
        self.offset: Optional[str] = None
        self.epoch: Optional[str] = None
        try:
            with open(path, encoding="utf-8") as file:
                saved = json.load(file)
            offset, epoch = saved["offset"], saved["epoch"]
            if saved.get("bot", bot) != bot:
                raise ValueError("another bot's")
            if not all(value is None or re.fullmatch("[0-9]+", value) for value in (offset, epoch)):
                raise ValueError("no position")
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError, AttributeError):
            log.warning("%s holds no position of this bot; going on from the server's", path)
            return
        self.offset, self.epoch = offset, epoch

    def save(self, offset: Optional[str], epoch: Optional[str]) -> None:
        """Writes both at once: a crash at any point leaves the old file or the new one, never a mix."""
        if (offset, epoch) == (self.offset, self.epoch):
            return
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump({"bot": self.bot, "offset": offset, "epoch": epoch}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.path + ".new", self.path)
        self.offset, self.epoch = offset, epoch


class EchoBot:
    def __init__(self, client: smeet.Client, state: State, consumer_id: str) -> None:
        self.client, self.state, self.consumer_id = client, state, consumer_id
        self.unconfirmed = False  # whether something was saved that no call has confirmed
        self.stopping = False

    def stop(self, *_signal: Any) -> None:
        """Asks run() to end after the update at hand. Fit to be a signal handler."""
        self.stopping = True
        # In a thread, since the signal may have come while this one holds the lock of client.stop.
        threading.Thread(target=self.client.interrupt).start()

    def run(self) -> None:
        """Receives until stop(). Raises the ApiErrors that a person has to mend."""
        try:
            while not self.stopping:
                try:
                    self.receive()
                except smeet.ApiError as error:
                    self.react(error)
        except smeet.Stopped:
            pass
        if self.unconfirmed:
            self.confirm()

    def receive(self) -> None:
        """One batch: receive, handle, save. The next getUpdates confirms it."""
        self.unconfirmed = False
        batch = self.client.get_updates(self.consumer_id, self.state.epoch, self.state.offset)
        smeet.log_skipped(batch)
        updates, epoch = batch["updates"], batch["lease"]["epoch"]
        reached = batch["confirmed_offset"]
        self.state.save(reached, epoch)  # an epoch may be new: keep it, with the position that goes with it
        # offset means "the next update I want": inside a batch the next one's id, at its end next_offset.
        wanted_next = [update["update_id"] for update in updates[1:]] + [batch["next_offset"]]
        try:
            for update, following in zip(updates, wanted_next):
                if self.stopping:
                    return
                self.handle(update, epoch)
                reached = following
            reached = batch["next_offset"]
        finally:
            self.state.save(reached, epoch)
            self.unconfirmed = reached != batch["confirmed_offset"]

    def confirm(self) -> None:
        """At the end: tells the server at once what the file says. If it fails, the next start does it."""
        try:
            batch = self.client.get_updates(self.consumer_id, self.state.epoch, self.state.offset,
                                            timeout=0, limit=1)
            self.state.save(batch["confirmed_offset"], batch["lease"]["epoch"])
        except (smeet.ApiError, smeet.Stopped):
            log.info("offset %s is not confirmed yet; the next start does it", self.state.offset)

    def react(self, error: smeet.ApiError) -> None:
        """The errors of normal operation; all others are raised again."""
        state = self.state
        if error.code == "CONSUMER_CONFLICT":
            # Another consumer has the lease, or a poll still waits: our own, right after a crash.
            # Epoch and offset stay; the server decides whether they still count.
            wait = error.retry_after or 5
            log.warning("another getUpdates holds this bot; next try in %d s", wait)
            self.client.sleep(wait)
        elif error.code == "CURSOR_BEHIND":
            log.warning("offset %s is behind; going on from %s", state.offset, error.details.get("confirmed_offset"))
            state.save(error.details.get("confirmed_offset"), state.epoch)
        elif error.code == "OFFSET_NOT_ISSUED":
            log.warning("offset %s is unknown to this lease; asking the server for its position", state.offset)
            state.save(None, state.epoch)
        elif error.code in LOOK_AGAIN:
            log.warning("%s (%s); looking again in %d s", LOOK_AGAIN[error.code], error, LOOK_AGAIN_SECONDS)
            self.client.sleep(LOOK_AGAIN_SECONDS)
        else:
            raise error

    def handle(self, update: Dict[str, Any], epoch: str) -> None:
        """Answers one update. Returns when it is done with, one way or another."""
        update_id = update["update_id"]
        try:
            self.answer(update)
        except smeet.Stopped:
            raise
        except smeet.ApiError as error:
            if error.code in POINTLESS:
                log.info("update %s needs no answer: %s", update_id, POINTLESS[error.code])
            elif error.code in REFUSED:
                log.error("the answer to update %s was refused: %s", update_id, error)
                self.reject(update, f"The bot's answer was refused: {error.code}", epoch)
            else:
                raise
        except Unreadable as problem:
            self.reject(update, f"The bot can't read this update: {problem}", epoch)
        except Exception as bug:  # its text may quote the update, so only its kind and place are told
            kind = type(bug).__name__
            log.error("update %s: %s at\n%s", update_id, kind, "".join(traceback.format_tb(bug.__traceback__)))
            self.reject(update, f"The bot failed on this update: {kind}", epoch)

    def reject(self, update: Dict[str, Any], reason: str, epoch: str) -> None:
        """Moves the update to the owner's FAILED list, from where it can be replayed."""
        update_id = update["update_id"]
        # With update_id: a replay is the same event in another place, and may be rejected again.
        key = smeet.action_key(str(update.get("event_id")), "reject", update_id)
        try:
            self.client.reject_update(update_id, reason, self.consumer_id, epoch, key)
            log.warning("update %s moved aside: %s", update_id, reason)
        except smeet.ApiError as error:
            if error.code != "UPDATE_NOT_FOUND":
                raise
            log.info("update %s waits no longer, nothing to move aside", update_id)

    # What the bot does. Replace this part with your own.

    def answer(self, update: Dict[str, Any]) -> None:
        if update.get("type") == "message":
            self.on_message(update)
        elif update.get("type") == "callback_query":
            self.on_button(update)
        else:
            log.info("update %s: nothing to do for type %s", update["update_id"], update.get("type"))

    def on_message(self, update: Dict[str, Any]) -> None:
        message, event_id = need(update, "message", dict), need(update, "event_id")
        sender = message.get("from")
        if isinstance(sender, dict) and sender.get("is_bot"):
            return  # two bots that answer each other never end
        if message.get("text") is None and set(message) - FRAME:
            return  # a file, or something newer than this bot
        text, buttons = need(update, "message.text"), None
        if text.strip() == "/buttons":
            text, buttons = "Choose one:", [[{"text": "Yes", "data": "yes"}, {"text": "No", "data": "no"}]]
        self.client.send_message(need(update, "message.chat.id"), text, smeet.action_key(event_id, "reply"),
                                 reply_to_message_id=need(update, "message.message_id"), buttons=buttons)

    def on_button(self, update: Dict[str, Any]) -> None:
        event_id, query_id = need(update, "event_id"), need(update, "callback_query.callback_query_id")
        chat_id, data = need(update, "callback_query.message.chat.id"), need(update, "callback_query.data")
        self.client.answer_callback_query(query_id, smeet.action_key(event_id, "answer"), text="Got it")
        self.client.send_message(chat_id, f"You chose: {data}"[:4096], smeet.action_key(event_id, "reply"))


def need(update: Dict[str, Any], path: str, kind: type = str) -> Any:
    """The field at a dotted path; raises Unreadable where it is missing, empty or of another kind."""
    value: Any = update
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if not value or not isinstance(value, kind):
        raise Unreadable(f"{path} is not {KINDS[kind]}")
    return value


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    url = os.environ.get("SMEET_URL") or "http://127.0.0.1:8080"
    token = os.environ.get("SMEET_TOKEN", "").strip()
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:64]
    consumer_id = os.environ.get("SMEET_CONSUMER_ID") or host or "echo-bot"
    path = os.environ.get("SMEET_STATE") or "./echo_bot.state.json"
    try:
        client = smeet.Client(url, token)
    except ValueError as problem:
        log.error("Set SMEET_TOKEN and SMEET_URL: %s.", problem)
        return 1
    try:
        # The mark can't be turned back into the token.
        state = State(path, hashlib.sha256(f"{url} {token}".encode()).hexdigest()[:16])
        bot = EchoBot(client, state, consumer_id)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, bot.stop)
        log.info("receiving as %s from offset %s", consumer_id, state.offset or "(the server's position)")
        bot.run()
    except smeet.ApiError as error:
        log.error("%s [%s]", ADVICE.get(error.code, "The server gave an error that this bot does not know; "
                                        "look it up and start again."), error)
        return 1
    except OSError as fault:
        log.error("The state file %s can't be used (%s): make its folder writable and start again.",
                  path, fault.strerror)
        return 1
    log.info("stopped at offset %s", state.offset)
    return 0


if __name__ == "__main__":
    sys.exit(main())
