#!/usr/bin/env python3
"""An echo bot: it receives by long polling and answers every text message with the same text.

It handles a batch before it confirms it, so a batch can come twice. That is safe here because all
it does is call the Bot API with Idempotency-Keys. A bot that writes to a database of its own should
store the updates together with next_offset first, confirm, and work from its store.
"""
from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
import traceback
from typing import Any, Dict, Optional

import bot_logic
import smeet
from long_poll import LongPoll, consumer_name, mark_of

log = logging.getLogger("echo_bot")


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


class EchoBot(LongPoll):
    """Handles a batch, saves its end; the next getUpdates confirms it."""

    def take(self, batch: Dict[str, Any]) -> bool:
        updates, epoch = batch["updates"], batch["lease"]["epoch"]
        reached = batch["confirmed_offset"]
        self.state.save(reached, epoch)  # an epoch may be new: keep it, with the position that goes with it
        # offset means "the next update I want": inside a batch the next one's id, at its end next_offset.
        wanted_next = [update["update_id"] for update in updates[1:]] + [batch["next_offset"]]
        try:
            for update, following in zip(updates, wanted_next):
                if self.stopping:
                    return reached != batch["confirmed_offset"]
                self.handle(update, epoch)
                reached = following
            reached = batch["next_offset"]
        finally:
            self.state.save(reached, epoch)
            self.unconfirmed = reached != batch["confirmed_offset"]
        return self.unconfirmed

    def handle(self, update: Dict[str, Any], epoch: str) -> None:
        """Answers one update. Returns when it is done with, one way or another."""
        update_id = update["update_id"]
        try:
            bot_logic.answer(self.client, update)
        except smeet.Stopped:
            raise
        except smeet.ApiError as error:
            if error.code in bot_logic.POINTLESS:
                log.info("update %s needs no answer: %s", update_id, bot_logic.POINTLESS[error.code])
            elif error.code in bot_logic.REFUSED:
                log.error("the answer to update %s was refused: %s", update_id, error)
                self.reject(update, f"The bot's answer was refused: {error.code}", epoch)
            else:
                raise
        except bot_logic.Unreadable as problem:
            self.reject(update, f"The bot can't read this update: {problem}", epoch)
        except Exception as bug:  # its text may quote the update, so only its kind and place are told
            kind = type(bug).__name__
            log.error("update %s: %s at\n%s", update_id, kind, "".join(traceback.format_tb(bug.__traceback__)))
            self.reject(update, f"The bot failed on this update: {kind}", epoch)


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    url = os.environ.get("SMEET_URL") or "http://127.0.0.1:8080"
    token = os.environ.get("SMEET_TOKEN", "").strip()
    consumer_id = consumer_name(os.environ.get("SMEET_CONSUMER_ID"), "echo-bot")
    path = os.environ.get("SMEET_STATE") or "./echo_bot.state.json"
    try:
        client = smeet.Client(url, token)
    except ValueError as problem:
        log.error("Set SMEET_TOKEN and SMEET_URL: %s.", problem)
        return 1
    try:
        state = State(path, mark_of(url, token))
        bot = EchoBot(client, state, consumer_id)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, bot.stop)
        log.info("receiving as %s from offset %s", consumer_id, state.offset or "(the server's position)")
        bot.run()
    except smeet.ApiError as error:
        log.error("%s", smeet.advice(error))
        return 1
    except OSError as fault:
        log.error("The state file %s can't be used (%s): make its folder writable and start again.",
                  path, fault.strerror)
        return 1
    log.info("stopped at offset %s", state.offset)
    return 0


if __name__ == "__main__":
    sys.exit(main())
