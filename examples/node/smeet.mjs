// A small client for the SMeet Bot API. No dependencies, Node.js 18 or newer.
//
//     const client = new Client('http://127.0.0.1:8080', token);
//     const batch = await client.getUpdates('my-host');
//
// Ids, offsets and epochs are strings; keep them so.
import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

export const log = (line) => console.error(`${new Date().toISOString()} ${line}`);

const POLL_SECONDS = 25; // how long getUpdates may wait on the server
const ANSWER_SECONDS = 15; // how long any other answer may take; a poll gets this on top of its own time
const LONGEST_PAUSE = 30; // between two tries, where the server names no time
const LONGEST_RETRY_AFTER = 300;
const INTERNAL_TRIES = 6; // a 500 may be meant for this one request: give up on it after so many
const READS = new Set(['getMe', 'getUpdates', 'getDeliveryInfo', 'getWebhookInfo']);

/** The program was asked to end while a call waited. The call may be repeated after a restart. */
export class Stopped extends Error {}

/**
 * A call that failed for good. code is one of the server's, or NOT_CONNECTED (nothing was sent),
 * NO_ANSWER (the call may or may not have been done), BAD_ANSWER (not from the Bot API, for example
 * a proxy's HTML page). retryAfter is in seconds or undefined; details holds the error's further
 * fields; status is 0 without an answer.
 */
export class ApiError extends Error {
  constructor(code, message, { retryAfter, details = {}, requestId, status = 0 } = {}) {
    super(`${code}: ${message}${requestId ? ` (request ${requestId})` : ''}`);
    Object.assign(this, { code, retryAfter, details, requestId, status });
  }
}

/** Calls Bot API methods and repeats by itself what may be repeated. */
export class Client {
  #url;
  #token;
  #sleep;
  #ending = new AbortController();

  /** sleep(seconds, signal) replaces the real pause in tests. Throws for an address or a token that can't be right. */
  constructor(url, token, sleep = (seconds, signal) => wait(seconds * 1000, undefined, { signal })) {
    const address = new URL(url); // throws a TypeError for what is none
    if (!['http:', 'https:'].includes(address.protocol) || address.username || address.password) {
      throw new TypeError('the address must look like https://host or http://host:port');
    }
    if (!/^[!-~]+$/.test(token)) throw new TypeError('the token is empty or holds characters that no token has');
    this.#url = `${address.origin}${address.pathname.replace(/\/+$/, '')}/bot-api/v1/`;
    this.#token = token;
    this.#sleep = sleep;
  }

  getMe() { return this.call('getMe'); }

  /** The next batch. Passing offset confirms every update below it. */
  getUpdates(consumerId, epoch, offset, timeout = POLL_SECONDS, limit = 100) {
    return this.call('getUpdates', { consumer_id: consumerId, epoch, offset, timeout, limit }, undefined, timeout + ANSWER_SECONDS);
  }

  /** Moves an update aside. The owner reads the reason: no personal data, no secrets in it. */
  rejectUpdate(updateId, reason, consumerId, epoch, key) {
    const text = [...reason.replace(/\p{Cc}/gu, ' ')].slice(0, 256).join('');
    return this.call('rejectUpdate', { update_id: updateId, reason: text, consumer_id: consumerId, epoch }, key);
  }

  /** Sends 1 to 4096 characters. buttons is a list of rows of {text, data}. */
  sendMessage(chatId, text, key, { replyTo, buttons } = {}) {
    return this.call('sendMessage', { chat_id: chatId, text, reply_to_message_id: replyTo, buttons }, key);
  }

  answerCallbackQuery(queryId, key, text) {
    return this.call('answerCallbackQuery', { callback_query_id: queryId, text }, key);
  }

  /**
   * Calls a method and gives its result. Fields that are undefined or null are left out. Repeats the very same request
   * while the fault may pass; a write without a key only where it is certain that nothing was done.
   * Throws ApiError, or Stopped once stop() was called and a pause is due.
   */
  async call(method, params = {}, key, seconds = ANSWER_SECONDS) {
    const body = JSON.stringify(Object.fromEntries(Object.entries(params).filter(([, value]) => value != null)));
    const repeatable = READS.has(method) || key !== undefined;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#once(method, body, key, seconds);
      } catch (error) {
        if (!(error instanceof ApiError) || !mayRepeat(error, repeatable, tries)) throw error;
        const pause = pauseOf(error.retryAfter, tries);
        log(`${method}: ${error.message}; next try in ${pause.toFixed(1)} s`);
        await this.sleep(pause);
      }
    }
  }

  /** Pauses; throws Stopped as soon as stop() was called. */
  async sleep(seconds) {
    if (!this.#ending.signal.aborted) await this.#sleep(seconds, this.#ending.signal).catch(() => {}); // the one error: stop()
    if (this.#ending.signal.aborted) throw new Stopped();
  }

  /** Ends every pause, and a getUpdates that waits. A write under way still gets its answer. */
  stop() { this.#ending.abort(); }

  async #once(method, body, key, seconds) {
    const headers = { Authorization: `Bearer ${this.#token}`, 'Content-Type': 'application/json' };
    if (key !== undefined) headers['Idempotency-Key'] = key;
    const time = AbortSignal.timeout(seconds * 1000);
    const waits = method === 'getUpdates' && !body.includes('"timeout":0,');
    if (waits && this.#ending.signal.aborted) throw new Stopped();
    const signal = waits ? anyOf(time, this.#ending.signal) : time;
    let response, text;
    try {
      response = await fetch(this.#url + method, { method: 'POST', headers, body, signal, redirect: 'manual' });
      text = await response.text();
    } catch (fault) {
      if (waits && this.#ending.signal.aborted) throw new Stopped();
      const code = fault.cause?.code ?? fault.name;
      if (['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'].includes(code)) throw new ApiError('NOT_CONNECTED', `can't connect (${code})`);
      throw new ApiError('NO_ANSWER', `the connection broke (${code})`);
    }
    return resultOf(response.status, response.headers.get('retry-after'), text);
  }
}

/** AbortSignal.any, which Node.js 18 lacks. */
function anyOf(...signals) {
  const one = new AbortController();
  for (const signal of signals) signal.addEventListener('abort', () => one.abort(signal.reason), { once: true });
  return one.signal;
}

function resultOf(status, retryHeader, text) {
  let answer;
  try {
    answer = JSON.parse(text);
  } catch { /* told below */ }
  if (answer?.ok === true && 'result' in answer) return answer.result;
  const { code, message, retry_after: retryAfter, ...details } = answer?.error ?? {};
  if (typeof code !== 'string') {
    throw new ApiError('BAD_ANSWER', `HTTP ${status} with a body that isn't the Bot API's; if this stays, check the address`,
      { retryAfter: secondsOf(retryHeader), status });
  }
  throw new ApiError(code, String(message ?? ''),
    { retryAfter: secondsOf(retryAfter) ?? secondsOf(retryHeader), details, requestId: answer.request_id, status });
}

function mayRepeat(error, repeatable, tries) {
  if (error.status === 429 || error.code === 'NOT_CONNECTED') return true; // nothing was done
  if (!repeatable) return false;
  if (error.status === 503 || error.code === 'NO_ANSWER' || error.code === 'BAD_ANSWER') return true;
  return error.status >= 500 && tries < INTERNAL_TRIES;
}

/** Seconds to the next try: what the server says and a little more, else growing, never in step. */
function pauseOf(retryAfter, tries) {
  if (retryAfter !== undefined) return retryAfter + Math.random();
  return Math.min(LONGEST_PAUSE, 2 ** Math.min(tries - 1, 10)) * (0.5 + Math.random() / 2);
}

function secondsOf(value) {
  return /^[0-9]{1,9}$/.test(String(value ?? '')) ? Math.min(Math.max(1, Number(value)), LONGEST_RETRY_AFTER) : undefined;
}

/** The Idempotency-Key of one action on one event: the same after a repeat, a restart, a replay. */
export function actionKey(eventId, action, ...more) {
  const key = [eventId, action, ...more].join(':');
  return /^[!-~]{1,255}$/.test(key) ? key : `sha256:${createHash('sha256').update(key).digest('hex')}`;
}

// What a person has to mend, and how.
export const ADVICE = {
  UNAUTHORIZED: 'The token is not valid: take the current one from My bots, put it into SMEET_TOKEN and start again.',
  BOT_DISABLED: "This bot's organisation has bots switched off: ask its administrator to switch them on and start again.",
  INVALID_REQUEST: 'The server refuses the request: check SMEET_CONSUMER_ID (1 to 64 of A-Z a-z 0-9 . _ -) and start again.',
};
export const adviceFor = (error) => `${ADVICE[error.code] ?? 'The server gave an error that this bot does not know; look it up and start again.'} [${error.message}]`;
