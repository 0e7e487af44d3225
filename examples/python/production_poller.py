#!/usr/bin/env python3
"""A long poller that survives crashes: it stores each batch with its place before it confirms it.

    getUpdates -> one transaction: the updates, next_offset, epoch -> the next getUpdates confirms
                                        |
                                  a worker answers from the store, in order, with Idempotency-Keys

A crash at any point loses nothing and does nothing twice: what wasn't stored wasn't confirmed and
comes again; what was stored is known by its event_id; what was done is known by its key.
"""
from __future__ import annotations

import logging
import os
import signal
import sqlite3
import sys
from typing import Any, Callable, Dict, Optional

import bot_logic
import smeet
from inbox import Inbox, Worker

log = logging.getLogger("production_poller")


class Place:
    """Offset and epoch as the inbox keeps them."""

    def __init__(self, inbox: Inbox, bot: str) -> None:
        self.inbox, self.bot = inbox, bot
        self.offset, self.epoch = inbox.place(bot)

    def save(self, offset: Optional[str], epoch: Optional[str]) -> None:
        self.take([], offset, epoch)

    def take(self, updates: Any, offset: Optional[str], epoch: Optional[str]) -> int:
        new = self.inbox.take(self.bot, updates, offset, epoch)
        self.offset, self.epoch = offset, epoch
        return new


class Poller(smeet.LongPoll):
    """stored() is called after a batch with new updates."""

    def __init__(self, client: smeet.Client, place: Place, consumer_id: str, stored: Callable[[], None]) -> None:
        super().__init__(client, place, consumer_id)
        self.stored = stored

    def take(self, batch: Dict[str, Any]) -> bool:
        if not batch["updates"] and (batch["next_offset"], batch["lease"]["epoch"]) == (self.state.offset, self.state.epoch):
            return False  # nothing to write down
        new = self.state.take(batch["updates"], batch["next_offset"], batch["lease"]["epoch"])
        if batch["updates"]:
            log.info("%d updates, %d of them new", len(batch["updates"]), new)
        if new:
            self.stored()
        return batch["next_offset"] != batch["confirmed_offset"]


def advise(error: smeet.ApiError) -> int:
    log.error("%s [%s]", smeet.ADVICE.get(error.code, "The server gave an error that this bot does not know; "
                                          "look it up and start again."), error)
    return 1


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    os.umask(0o077)  # the store holds what people wrote
    url = os.environ.get("SMEET_URL") or "http://127.0.0.1:8080"
    token = os.environ.get("SMEET_TOKEN", "").strip()
    consumer_id = smeet.consumer_name(os.environ.get("SMEET_CONSUMER_ID"), "production-poller")
    path = os.environ.get("SMEET_STORE") or "./production_poller.sqlite3"
    try:
        # The worker has a client of its own: the poller's waits 25 seconds at a time.
        client, answers = smeet.Client(url, token), smeet.Client(url, token)
        for number in (signal.SIGTERM, signal.SIGINT):  # until there is a poller to stop
            signal.signal(number, lambda *_: client.stop.set())
    except ValueError as problem:
        log.error("Set SMEET_TOKEN and SMEET_URL: %s.", problem)
        return 1
    code = 0
    try:
        inbox = Inbox(path)
        # Whose store it is: the bot's id, which stays when the token changes.
        place = Place(inbox, smeet.mark_of(url, client.get_me()["id"]))
    except smeet.Stopped:
        return 0
    except smeet.ApiError as error:
        return advise(error)
    except (sqlite3.Error, OSError) as fault:
        log.error("The store %s can't be used (%s): make its folder writable and start again.", path, fault)
        return 1
    except ValueError as problem:
        log.error("The store %s can't be used: %s. Give each bot a store of its own in SMEET_STORE.", path, problem)
        return 1
    worker = Worker(inbox, bot_logic.Work(answers))
    poller = Poller(client, place, consumer_id, worker.news.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, poller.stop)
    worker.start()
    log.info("receiving as %s from offset %s", consumer_id, place.offset or "(the server's position)")
    try:
        poller.run()
    except smeet.ApiError as error:
        code = advise(error)
    except sqlite3.Error as fault:
        log.error("The store %s fails (%s): nothing was confirmed that isn't in it. Start again.", path, fault)
        code = 1
    answers.stop.set()  # ends the worker's pauses; a message under way still gets its answer
    worker.end()
    log.info("stopped at offset %s", place.offset)
    return code


if __name__ == "__main__":
    sys.exit(main())
