"""Receiving by long polling: what echo_bot.py and production_poller.py have in common."""
from __future__ import annotations

import hashlib
import logging
import re
import socket
import threading
from typing import Any, Dict, Optional

from smeet import ApiError, Client, Stopped, action_key

log = logging.getLogger("long_poll")

LOOK_AGAIN_SECONDS = 30
# getUpdates has nothing to give now; the owner or the server has to change something first.
LOOK_AGAIN = {"DELIVERY_MODE_CONFLICT": "the bot receives by webhook",
              "BOT_PAUSED": "the bot is paused",
              "INTERNAL": "the server has a fault"}


class LongPoll:
    """Asks for batches until stop(), and reacts to the errors of normal operation.

    state has offset and epoch, always from the same moment, and save(offset, epoch), which keeps
    both at once. A subclass has take(batch): it does with the batch what it does, saves, and says
    whether the next call confirms something.
    """

    def __init__(self, client: Client, state: Any, consumer_id: str) -> None:
        self.client, self.state, self.consumer_id = client, state, consumer_id
        self.unconfirmed = False  # whether something was saved that no answered call has confirmed
        self.stopping = False

    def take(self, batch: Dict[str, Any]) -> bool:
        raise NotImplementedError

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
                except ApiError as error:
                    self.react(error)
        except Stopped:
            pass
        if self.unconfirmed:
            self.confirm()

    # snippet: receive
    def receive(self) -> None:
        """One batch. Its offset confirms the batch before it, which was saved."""
        batch = self.client.get_updates(self.consumer_id, self.state.epoch, self.state.offset)
        log_skipped(batch)
        self.unconfirmed = self.take(batch)  # saves next_offset and lease.epoch
    # snippet end

    # snippet: confirm
    def confirm(self) -> None:
        """At the end: tells the server at once what was saved. If it fails, the next start does it."""
        try:
            batch = self.client.get_updates(self.consumer_id, self.state.epoch, self.state.offset,
                                            timeout=0, limit=1)
            self.state.save(batch["confirmed_offset"], batch["lease"]["epoch"])
        except (ApiError, Stopped) as error:
            # A CONSUMER_CONFLICT may be the poll that was just cut short: it has the same offset.
            log.info("offset %s may not be confirmed yet; the next start does it (%s)",
                     self.state.offset, getattr(error, "code", "stopped"))
    # snippet end

    # snippet: errors
    def react(self, error: ApiError) -> None:
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
    # snippet end

    def reject(self, update: Dict[str, Any], reason: str, epoch: str) -> None:
        """Moves an update of the batch at hand to the owner's FAILED list, from where it can be replayed."""
        update_id = update.get("update_id")
        if not isinstance(update_id, str):
            log.error("an update without update_id was passed over: %s", reason)
            return
        # With update_id: a replay is the same event in another place, and may be rejected again.
        key = action_key(str(update.get("event_id")), "reject", update_id)
        try:
            self.client.reject_update(update_id, reason, self.consumer_id, epoch, key)
            log.warning("update %s moved aside: %s", update_id, reason)
        except ApiError as error:
            # It waits no longer, or a call before a crash has moved it, with another reason or epoch.
            if error.code not in ("UPDATE_NOT_FOUND", "IDEMPOTENCY_KEY_REUSED"):
                raise
            log.info("update %s waits no longer, nothing to move aside", update_id)


def log_skipped(batch: Dict[str, Any]) -> None:
    """Logs the ranges that left the queue. New reasons may appear: none is a cause to refuse a batch."""
    for gap in batch.get("skipped") or []:
        log.info("updates %s to %s were skipped: %s",
                 gap.get("from_update_id"), gap.get("to_update_id"), gap.get("reason"))


def consumer_name(chosen: Optional[str], otherwise: str) -> str:
    """The consumer_id of this process: the chosen one, else the host's name in allowed letters."""
    return chosen or re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:64] or otherwise


def mark_of(*whose: str) -> str:
    """Whose position a file holds. It can't be turned back into the token."""
    return hashlib.sha256(" ".join(whose).encode()).hexdigest()[:16]
