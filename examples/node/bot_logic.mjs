// What the example bots do with an update: they answer a message with its text, and a pressed button.
//
// Replace check() and answer() with your own. answer() may be called again for the same update, after a
// crash or an owner's Retry: whatever it does carries a key of event_id and the action, so nothing is done twice.
import { ApiError, Stopped, actionKey, adviceFor, log } from './smeet.mjs';
import { NotNow, SetAside } from './worker.mjs';

const FRAME = new Set(['message_id', 'chat', 'from', 'date', 'text']); // a message with more than this may do without text
// An answer that the server will never take.
export const REFUSED = new Set(['INVALID_REQUEST', 'REQUEST_TOO_LARGE', 'INTERNAL']);
// An answer that is no longer needed or wanted.
export const POINTLESS = {
  CHAT_NOT_FOUND: 'the chat is gone or closed to the bot', UPDATE_NOT_FOUND: 'the button press is no longer known',
  IDEMPOTENCY_KEY_REUSED: 'an earlier version of this bot has answered it',
};

/** An update that lacks what its type needs. Its message goes to the owner: no personal data in it. */
export class Unreadable extends Error {}

/** Why the bot can never handle this update, undefined if it may. Calls nothing: it is asked before the update is taken. */
export function check(update) {
  try {
    const reader = READERS[need(update, 'type')];
    need(update, 'event_id');
    reader?.(update);
    return undefined;
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return error.message;
  }
}

/** Answers one update. Throws Unreadable, or the ApiError of an answer that wasn't taken. */
export async function answer(client, update) {
  if (update.type === 'message') return onMessage(client, update);
  if (update.type === 'callback_query') return onButton(client, update);
  return log(`update ${update.update_id}: nothing to do for type ${update.type}`);
}

/** Chat, message and text; undefined if the message isn't for the bot to answer. */
function readMessage(update) {
  const message = need(update, 'message', 'object');
  if (message.from?.is_bot) return undefined; // two bots that answer each other never end
  if (message.text == null && Object.keys(message).some((name) => !FRAME.has(name))) return undefined; // a file, or something newer
  return { chatId: need(update, 'message.chat.id'), messageId: need(update, 'message.message_id'), text: need(update, 'message.text') };
}

async function onMessage(client, update) {
  const message = readMessage(update);
  if (!message) return;
  const eventId = need(update, 'event_id');
  const { chatId, messageId } = message;
  let { text } = message;
  let buttons;
  if (text.trim() === '/buttons') [text, buttons] = ['Choose one:', [[{ text: 'Yes', data: 'yes' }, { text: 'No', data: 'no' }]]];
  // snippet: send
  // The key is the same after a crash or a lost answer: the server sends the message once.
  await client.sendMessage(chatId, text, actionKey(eventId, 'reply'), { replyTo: messageId, buttons });
  // snippet end
}

/** The press, its chat, and what was chosen. */
function readButton(update) {
  return { queryId: need(update, 'callback_query.callback_query_id'), chatId: need(update, 'callback_query.message.chat.id'),
    data: need(update, 'callback_query.data') };
}

async function onButton(client, update) {
  const { queryId, chatId, data } = readButton(update);
  const eventId = need(update, 'event_id');
  await client.answerCallbackQuery(queryId, actionKey(eventId, 'answer'), 'Got it');
  await client.sendMessage(chatId, [...`You chose: ${data}`].slice(0, 4096).join(''), actionKey(eventId, 'reply'));
}

const READERS = { __proto__: null, message: readMessage, callback_query: readButton };

/** The field at a dotted path; throws Unreadable where it is missing, empty or of another kind. */
function need(update, path, kind = 'string') {
  const value = path.split('.').reduce((at, name) => (typeof at === 'object' ? at?.[name] : undefined), update);
  if (!value || typeof value !== kind) throw new Unreadable(`${path} is no ${kind}`);
  return value;
}

/**
 * answer() for an inbox's Worker: what it throws says what becomes of the update. Without a client
 * updates are only logged: a webhook needs no token to receive.
 */
export function work(client) {
  return async (update) => {
    if (!client) return log(`handled ${update.type} ${update.update_id} (event ${update.event_id})`);
    try {
      await answer(client, update);
      return log(`answered update ${update.update_id} (event ${update.event_id})`);
    } catch (error) {
      if (error instanceof Stopped) throw new NotNow('the program stops');
      if (error instanceof Unreadable) throw new SetAside(`the bot can't read update ${update.update_id}: ${error.message}`);
      if (!(error instanceof ApiError)) throw error;
      if (POINTLESS[error.code]) return log(`update ${update.update_id} needs no answer: ${POINTLESS[error.code]}`);
      if (REFUSED.has(error.code)) throw new SetAside(`the answer to update ${update.update_id} was refused: ${error.message}`);
      throw new NotNow(adviceFor(error));
    }
  };
}
