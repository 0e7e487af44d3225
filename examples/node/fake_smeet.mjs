// For the tests: a small SMeet on 127.0.0.1 with one bot's queue, leases, and keys as the real one keeps them.
//
// at(point) is called at every step of a call. It may end the bot's process; where it gives true the
// answer is lost. The points, in their order:
//   asked getUpdates, confirmed, given    before anything, the position has moved, the answer is out
//   asked sendMessage, sent, answered     before anything, the message is sent, the answer is out
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';

export const TOKEN = 'sbt1_for_tests_only';
const WAIT_MILLISECONDS = 200; // of a poll with nothing to give

/** Every code that the Bot API has, with its status. */
export const CODES = { INVALID_REQUEST: 400, OFFSET_NOT_ISSUED: 400, IDEMPOTENCY_KEY_REQUIRED: 400, UNAUTHORIZED: 401,
  BOT_DISABLED: 403, METHOD_NOT_FOUND: 404, UPDATE_NOT_FOUND: 404, CHAT_NOT_FOUND: 404, METHOD_NOT_ALLOWED: 405,
  CONSUMER_CONFLICT: 409, CURSOR_BEHIND: 409, DELIVERY_MODE_CONFLICT: 409, IDEMPOTENCY_KEY_REUSED: 409, BOT_PAUSED: 409,
  REQUEST_TOO_LARGE: 413, UNSUPPORTED_MEDIA_TYPE: 415, RATE_LIMITED: 429, INTERNAL: 500, MAINTENANCE: 503, UNAVAILABLE: 503 };

/** [status, body] of a code, as the server gives it. */
export function fail(code, more = {}) {
  const status = CODES[code];
  const error = { code, message: 'as scripted', ...more };
  if (status === 429 || status === 503 || code === 'CONSUMER_CONFLICT') error.retry_after ??= 2;
  if (code === 'CURSOR_BEHIND') error.confirmed_offset ??= '40';
  return [status, { ok: false, error, request_id: 'r-1' }];
}

export function text(id, words = `Hello ${id}`) {
  return { update_id: String(id), event_id: `event-${id}`, type: 'message', date: '2026-09-26T10:00:00Z',
    message: { message_id: `9${id}`, chat: { id: '550', type: 'private' }, from: { id: '812', display_name: 'Anna', is_bot: false },
      date: '2026-09-26T10:00:00Z', text: words } };
}

export class FakeSMeet extends EventEmitter {
  sent = []; // [key, text] of every message that people see, in their order
  failed = new Set(); // update_ids that were moved aside
  position = 1;
  asked = []; // [method, params, key]
  #keys = new Map(); // key → [what it was used for, the answer]
  #issued = 0;
  #epoch = 0;
  #script = [];

  constructor(n, { limit = 3, at = () => false } = {}) {
    super();
    Object.assign(this, { updates: Array.from({ length: n }, (_, index) => text(index + 1)), limit, at });
    this.setMaxListeners(0);
  }

  /** The next calls of a method get these answers: [status, body], or undefined for a lost one. */
  script(method, ...answers) { this.#script.push(...answers.map((answer) => [method, answer])); }

  async start(t) {
    this.server = createServer((request, response) => this.#serve(request, response));
    await once(this.server.listen(0, '127.0.0.1'), 'listening');
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    t.after(() => { this.server.closeAllConnections(); this.server.close(); });
    return this;
  }

  async #serve(request, response) {
    let body = '';
    for await (const part of request) body += part;
    const method = request.url.split('/').pop();
    const key = request.headers['idempotency-key'];
    const params = JSON.parse(body);
    this.asked.push([method, params, key]);
    const answer = await this.#answer(method, params, key);
    if (!answer) return request.socket.destroy();
    const [status, content, after] = answer;
    const raw = typeof content === 'string' ? content : JSON.stringify(content);
    response.writeHead(status, { 'Content-Length': Buffer.byteLength(raw), Connection: 'close' }).end(raw);
    await once(response, 'close');
    if (after) await this.#step(after);
    return undefined;
  }

  async #answer(method, params, key) {
    if (method === 'getMe') return [200, { ok: true, result: { id: '1', username: 'a_bot' } }];
    if (await this.#step(`asked ${method}`)) return undefined;
    const due = this.#script.findIndex(([name]) => name === method);
    if (due >= 0) return this.#script.splice(due, 1)[0][1];
    const [answer, point, after] = method === 'getUpdates' ? [await this.#getUpdates(params), 'confirmed', 'given']
      : [this.#write(method, params, key), 'sent', 'answered'];
    if (answer[0] !== 200) return answer;
    return (await this.#step(point)) ? undefined : [...answer, after];
  }

  #write(method, params, key) {
    if (key === undefined) return fail('IDEMPOTENCY_KEY_REQUIRED');
    const use = JSON.stringify([method, params]);
    const [before, answer] = this.#keys.get(key) ?? [];
    if (before === use) return answer; // the same call again: the stored answer, and nothing is done
    if (before) return fail('IDEMPOTENCY_KEY_REUSED');
    if (method === 'rejectUpdate') {
      const id = params.update_id;
      if (params.epoch !== String(this.#epoch)) return fail('CONSUMER_CONFLICT', { retry_after: 1 });
      if (Number(id) < this.position || Number(id) > this.#issued || this.failed.has(id)) return fail('UPDATE_NOT_FOUND');
      this.failed.add(id);
    } else {
      this.sent.push([key, params.text]);
    }
    this.#keys.set(key, [use, [200, { ok: true, result: { message_id: String(this.#keys.size) } }]]);
    return this.#keys.get(key)[1];
  }

  async #getUpdates({ consumer_id: consumerId, epoch, offset, timeout = 25 }) {
    if (epoch === String(this.#epoch) && offset !== undefined) {
      if (Number(offset) < this.position) return fail('CURSOR_BEHIND', { confirmed_offset: String(this.position) });
      if (Number(offset) > this.#issued + 1) return fail('OFFSET_NOT_ISSUED');
      this.position = Number(offset);
      this.emit('step');
    }
    if (epoch !== String(this.#epoch)) this.#epoch += 1; // a new lease; what the offset says doesn't count
    if (timeout > 0 && this.updates.length < this.position) {
      await once(this, 'news', { signal: AbortSignal.timeout(WAIT_MILLISECONDS) }).catch(() => {}); // the one error: it is over
    }
    const span = this.updates.slice(this.position - 1, this.position - 1 + this.limit);
    const next = this.position + span.length;
    this.#issued = Math.max(this.#issued, next - 1);
    const gone = span.map((update) => update.update_id).filter((id) => this.failed.has(id));
    return [200, { ok: true, result: { updates: span.filter((update) => !gone.includes(update.update_id)),
      confirmed_offset: String(this.position), next_offset: String(next),
      skipped: gone.map((id) => ({ from_update_id: id, to_update_id: id, reason: 'failed' })),
      lease: { consumer_id: consumerId, epoch: String(this.#epoch), expires_at: '2026-09-26T10:01:04Z' } } }];
  }

  async #step(point) {
    const isLost = await this.at(point);
    this.emit('step');
    return isLost;
  }

  /** Appends an update, as the messenger or an owner's Retry does. */
  writeEvent(update) {
    this.updates.push({ ...update, update_id: String(this.updates.length + 1) });
    this.emit('news');
  }

  /** Waits until done(), which is looked at after every step. */
  async until(done) {
    while (!done()) await once(this, 'step');
  }

  isConfirmed() { return this.position === this.updates.length + 1; }
}
