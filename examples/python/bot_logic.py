"""What the example bots do with an update: they answer a message with its text, and a pressed button.

Replace check() and answer() with your own. All three bots use them: echo_bot.py, production_poller.py
and webhook_bot.py. answer() may be called again for the same update, after a crash or an owner's Retry:
whatever it does carries a key of event_id and the action, so nothing is done twice.
"""
from __future__ import annotations

import logging
from typing import Any, Callable, Dict, Optional, Tuple

import smeet
from inbox import NotNow, SetAside

log = logging.getLogger("bot")

FRAME = {"message_id", "chat", "from", "date", "text"}  # a message with more than this may do without text
KINDS = {str: "a text", dict: "an object"}

# What it means when the server refuses an answer. All other errors pass, or a person has to mend something.
# An answer that the server will never take:
REFUSED = {"INVALID_REQUEST", "REQUEST_TOO_LARGE", "INTERNAL"}
# An answer that is no longer needed or wanted:
POINTLESS = {"CHAT_NOT_FOUND": "the chat is gone or closed to the bot",
             "UPDATE_NOT_FOUND": "the button press is no longer known",
             "IDEMPOTENCY_KEY_REUSED": "an earlier version of this bot has answered it"}


class Unreadable(Exception):
    """An update that lacks what its type needs. Its text goes to the owner: no personal data in it."""


def check(update: Dict[str, Any]) -> Optional[str]:
    """Why the bot can never handle this update, None if it may. Calls nothing: it is asked before the update is taken."""
    try:
        reader = READERS.get(need(update, "type"))
        need(update, "event_id")
        if reader is not None:
            reader(update)
    except Unreadable as problem:
        return str(problem)
    return None


def answer(client: smeet.Client, update: Dict[str, Any]) -> None:
    """Answers one update. Raises Unreadable, or the ApiError of an answer that wasn't taken."""
    if update.get("type") == "message":
        on_message(client, update)
    elif update.get("type") == "callback_query":
        on_button(client, update)
    else:
        log.info("update %s: nothing to do for type %s", update["update_id"], update.get("type"))


def read_message(update: Dict[str, Any]) -> Optional[Tuple[str, str, str]]:
    """Chat, message and text; None if the message isn't for the bot to answer."""
    message = need(update, "message", dict)
    sender = message.get("from")
    if isinstance(sender, dict) and sender.get("is_bot"):
        return None  # two bots that answer each other never end
    if message.get("text") is None and set(message) - FRAME:
        return None  # a file, or something newer than this bot
    return need(update, "message.chat.id"), need(update, "message.message_id"), need(update, "message.text")


def on_message(client: smeet.Client, update: Dict[str, Any]) -> None:
    message = read_message(update)
    if message is None:
        return
    (chat_id, message_id, text), event_id, buttons = message, need(update, "event_id"), None
    if text.strip() == "/buttons":
        text, buttons = "Choose one:", [[{"text": "Yes", "data": "yes"}, {"text": "No", "data": "no"}]]
    # snippet: send
    # The key is the same after a crash or a lost answer: the server sends the message once.
    client.send_message(chat_id, text, smeet.action_key(event_id, "reply"),
                        reply_to_message_id=message_id, buttons=buttons)
    # snippet end


def read_button(update: Dict[str, Any]) -> Tuple[str, str, str]:
    """The press, its chat, and what was chosen."""
    return (need(update, "callback_query.callback_query_id"), need(update, "callback_query.message.chat.id"),
            need(update, "callback_query.data"))


def on_button(client: smeet.Client, update: Dict[str, Any]) -> None:
    (query_id, chat_id, data), event_id = read_button(update), need(update, "event_id")
    client.answer_callback_query(query_id, smeet.action_key(event_id, "answer"), text="Got it")
    client.send_message(chat_id, f"You chose: {data}"[:4096], smeet.action_key(event_id, "reply"))


READERS: Dict[str, Callable[[Dict[str, Any]], Any]] = {"message": read_message, "callback_query": read_button}


class Work:
    """answer() for an inbox's Worker: what it raises says what becomes of the update.

    Without a client, updates are only logged: a webhook needs no token to receive.
    """

    def __init__(self, client: Optional[smeet.Client]) -> None:
        self.client = client

    def __call__(self, update: Dict[str, Any]) -> None:
        update_id = update["update_id"]
        if self.client is None:
            log.info("handled %s %s (event %s)", update["type"], update_id, update["event_id"])
            return
        try:
            answer(self.client, update)
        except smeet.Stopped:
            raise NotNow("the program stops") from None
        except Unreadable as problem:
            raise SetAside(f"the bot can't read update {update_id}: {problem}") from None
        except smeet.ApiError as error:
            if error.code in POINTLESS:
                log.info("update %s needs no answer: %s", update_id, POINTLESS[error.code])
            elif error.code in REFUSED:
                raise SetAside(f"the answer to update {update_id} was refused: {error}") from None
            else:
                raise NotNow(smeet.advice(error)) from None
        else:
            log.info("answered update %s (event %s)", update_id, update["event_id"])


def need(update: Dict[str, Any], path: str, kind: type = str) -> Any:
    """The field at a dotted path; raises Unreadable where it is missing, empty or of another kind."""
    value: Any = update
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if not value or not isinstance(value, kind):
        raise Unreadable(f"{path} is not {KINDS[kind]}")
    return value
