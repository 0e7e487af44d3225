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
import threading
from typing import Any, Callable, Dict, Optional

import bot_logic
import smeet
from inbox import Inbox, Worker
from long_poll import LongPoll, consumer_name, mark_of

log = logging.getLogger("production_poller")


class Place:
    """Offset and epoch as the inbox keeps them."""

    def __init__(self, inbox: Inbox, bot: str, server: str) -> None:
        self.inbox, self.bot, self.server = inbox, bot, server
        self.offset, self.epoch = inbox.place(bot, server)

    def save(self, offset: Optional[str], epoch: Optional[str]) -> None:
        self.take([], offset, epoch)

    def take(self, updates: Any, offset: Optional[str], epoch: Optional[str]) -> int:
        if not updates and (offset, epoch) == (self.offset, self.epoch):
            return 0  # nothing to write down
        new = self.inbox.take(self.bot, self.server, updates, offset, epoch)
        self.offset, self.epoch = offset, epoch
        return new


class Poller(LongPoll):
    """stored() is called after a batch with new updates."""

    def __init__(self, client: smeet.Client, place: Place, consumer_id: str, stored: Callable[[], None]) -> None:
        super().__init__(client, place, consumer_id)
        self.stored = stored

    def take(self, batch: Dict[str, Any]) -> bool:
        updates, confirmed, epoch = batch["updates"], batch["confirmed_offset"], batch["lease"]["epoch"]
        problems = [bot_logic.check(update) for update in updates]
        if any(problems):
            self.state.save(confirmed, epoch)  # so that the lease is still ours if a reject fails
        for update, problem in zip(updates, problems):
            if problem:  # kept out of the store: the owner sees it under Failed updates, and can retry it after a fix
                self.reject(update, f"The bot can't read this update: {problem}", epoch)
        accepted = [update for update, problem in zip(updates, problems) if not problem]
        new = self.state.take(accepted, batch["next_offset"], epoch)
        if updates:
            log.info("%d updates, %d of them new", len(updates), new)
        if new:
            self.stored()
        return batch["next_offset"] != confirmed


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    os.umask(0o077)  # the store holds what people wrote
    url = os.environ.get("SMEET_URL") or "http://127.0.0.1:8080"
    token = os.environ.get("SMEET_TOKEN", "").strip()
    consumer_id = consumer_name(os.environ.get("SMEET_CONSUMER_ID"), "production-poller")
    path = os.environ.get("SMEET_STORE") or "./production_poller.sqlite3"
    try:
        # The worker has a client of its own: the poller's waits 25 seconds at a time.
        client, answers = smeet.Client(url, token), smeet.Client(url, token)
    except ValueError as problem:
        log.error("Set SMEET_TOKEN and SMEET_URL: %s.", problem)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):  # until there is a poller to stop
        signal.signal(number, lambda *_: threading.Thread(target=client.interrupt).start())
    try:
        inbox = Inbox(path)
        me = client.get_me()  # whose store it is: the token may change, the bot stays
        place = Place(inbox, f"{me['username']} ({me['id']})", mark_of(url))
    except smeet.Stopped:
        return 0
    except smeet.ApiError as error:
        log.error("%s", smeet.advice(error))
        return 1
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
    code = 0
    try:
        poller.run()
    except smeet.ApiError as error:
        log.error("%s", smeet.advice(error))
        code = 1
    except sqlite3.Error as fault:
        log.error("The store %s fails (%s): nothing was confirmed that isn't in it. Start again.", path, fault)
        code = 1
    answers.stop.set()  # ends the worker's pauses; a message under way still gets its answer
    worker.end()
    log.info("stopped at offset %s", place.offset)
    return code


if __name__ == "__main__":
    sys.exit(main())
