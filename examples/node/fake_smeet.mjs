// For the tests: a small SMeet on 127.0.0.1 with one bot's queue, leases, and messages that are sent once a key.
//
// at(point) is called at every step of a call. It may end the bot's process; where it gives true the
// answer is lost. The points, in their order:
//   asked getUpdates, confirmed, given    before anything, the position has moved, the answer is out
//   asked sendMessage, sent, answered     before anything, the message is sent, the answer is out
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';

export const TOKEN = 'sbt1_for_tests_only';

export function text(id, words = `Hello ${id}`) {
  return { update_id: String(id), event_id: `event-${id}`, type: 'message', date: '2026-09-26T10:00:00Z',
    message: { message_id: `9${id}`, chat: { id: '550', type: 'private' }, from: { id: '812', display_name: 'Anna', is_bot: false },
      date: '2026-09-26T10:00:00Z', text: words } };
}

export class FakeSMeet extends EventEmitter {
  sent = new Map(); // key → the texts that were sent with it: one, or there is a bug
  position = 1;
  asked = []; // [method, params, key]
  #issued = 0;
  #epoch = 0;
  #script = [];

  constructor(n, { limit = 3, at = () => false } = {}) {
    super();
    Object.assign(this, { updates: Array.from({ length: n }, (_, index) => text(index + 1)), limit, at });
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
    if (method === 'sendMessage') {
      const texts = this.sent.get(key) ?? [];
      if (texts.length === 0) this.sent.set(key, [params.text]); // the same key: nothing happens twice
      return (await this.#step('sent')) ? undefined : [200, { ok: true, result: { message_id: '1' } }, 'answered'];
    }
    const result = this.#getUpdates(params);
    return (await this.#step('confirmed')) ? undefined : [200, { ok: true, result }, 'given'];
  }

  #getUpdates({ consumer_id: consumerId, epoch, offset }) {
    if (epoch === String(this.#epoch) && offset !== undefined && Number(offset) <= this.#issued + 1) this.position = Number(offset);
    if (epoch !== String(this.#epoch)) this.#epoch += 1; // a new lease; what the offset says doesn't count
    const updates = this.updates.slice(this.position - 1, this.position - 1 + this.limit);
    const next = this.position + updates.length;
    this.#issued = Math.max(this.#issued, next - 1);
    return { updates, confirmed_offset: String(this.position), next_offset: String(next), skipped: [],
      lease: { consumer_id: consumerId, epoch: String(this.#epoch), expires_at: '2026-09-26T10:01:04Z' } };
  }

  async #step(point) {
    const isLost = await this.at(point);
    this.emit('step');
    return isLost;
  }

  /** Waits until done(), which is looked at after every step. */
  async until(done) {
    while (!done()) await once(this, 'step');
  }

  /** Everything is confirmed and answered. */
  finished() { return this.position === this.updates.length + 1 && this.sent.size === this.updates.length; }
}

export const fail = (status, code, more = {}) => [status, { ok: false, error: { code, message: 'as scripted', ...more }, request_id: 'r-1' }];
