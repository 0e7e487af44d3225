// The part of webhook_bot.mjs that keeps updates: where they are stored, and who works on them.
import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const KEPT_SECONDS = 8 * 24 * 3600; // an event can come again for 7 days
const TRIES = 5; // at handling an update; then it is set aside

export const log = (line) => console.error(`${new Date().toISOString()} ${line}`);

/**
 * The updates that were taken, in a file that is only appended to: a line of JSON for each update
 * and one for its end. What store() returned for survives a power cut. One process uses a file.
 */
export class Inbox {
  #path;
  #file;
  #size = 0; // of what is known to be on the disk
  #known = new Map(); // event_id → {taken, state}, in the order of arrival
  #waiting = new Map(); // event_id → body, in the same order

  constructor(path, now = Date.now() / 1000) {
    this.#path = path;
    const lines = (existsSync(path) ? readFileSync(path, 'utf8') : '').split('\n');
    lines.pop(); // what follows the last line's end was cut by a crash: it was never answered with 200
    lines.forEach((line, index) => {
      try {
        this.#apply(JSON.parse(line));
      } catch {
        throw new Error(`line ${index + 1} of ${path} isn't what this program writes`);
      }
    });
    this.tidy(now);
  }

  #apply({ event_id: eventId, body, ...rest }) {
    const entry = { ...this.#known.get(eventId), ...rest };
    const text = body ?? this.#waiting.get(eventId);
    this.#known.set(eventId, entry);
    this.#waiting.delete(eventId);
    if (entry.state === 'waiting') this.#waiting.set(eventId, text);
    if (entry.state === 'set aside') entry.body = text; // for a person to look at
  }

  #append(record) {
    const line = Buffer.from(`${JSON.stringify(record)}\n`);
    try {
      writeAll(this.#file, line, this.#size);
    } catch (fault) {
      ftruncateSync(this.#file, this.#size); // half a line would spoil the next one
      throw fault;
    }
    this.#size += line.length;
    this.#apply(record);
  }

  /** Stores an update once; tells whether it is new. Throws if it isn't on the disk. */
  store(eventId, body, now = Date.now() / 1000) {
    if (this.#known.has(eventId)) return false;
    this.#append({ event_id: eventId, taken: now, state: 'waiting', body });
    return true;
  }

  /** The update that waits longest: [event_id, body], or undefined. */
  first() {
    return this.#waiting.entries().next().value;
  }

  /** Ends the wait: state is "handled" or "set aside". */
  settle(eventId, state) {
    this.#append({ event_id: eventId, state });
  }

  /** Writes the file anew without what was handled and is too old to come again. */
  tidy(now = Date.now() / 1000) {
    const kept = [...this.#known].filter(([, entry]) => entry.state !== 'handled' || entry.taken > now - KEPT_SECONDS);
    const text = Buffer.from(kept.map(([eventId, entry]) => `${JSON.stringify(
      { event_id: eventId, body: this.#waiting.get(eventId), ...entry })}\n`).join(''));
    const file = openSync(`${this.#path}.new`, 'w', 0o600); // it holds what people wrote
    try {
      writeAll(file, text, 0);
      renameSync(`${this.#path}.new`, this.#path);
    } catch (fault) {
      closeSync(file);
      throw fault;
    }
    this.close();
    [this.#file, this.#size, this.#known] = [file, text.length, new Map(kept)];
    const folder = openSync(dirname(this.#path), 'r'); // the new name has to reach the disk as well
    fsyncSync(folder);
    closeSync(folder);
  }

  close() {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

function writeAll(file, bytes, place) {
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at, bytes.length - at, place + at);
  fsyncSync(file);
}

/** Handles the stored updates one after another, the ones left from before a restart too. */
export class Worker {
  #busy = false;
  #ending = new AbortController();

  constructor(inbox, handler, pauseSeconds = 1) {
    Object.assign(this, { inbox, handler, pauseSeconds });
  }

  /** Works until nothing waits. Does nothing while it works already. */
  async run() {
    if (this.#busy) return;
    this.#busy = true;
    try {
      for (let row, tries = 0; !this.#ending.signal.aborted && (row = this.inbox.first()) !== undefined;) {
        const [eventId, body] = row;
        const handled = await this.#handled(body);
        tries += handled ? 0 : 1;
        if (!handled && tries < TRIES) {
          // The one error it can have is that end() ended it.
          await pause(this.pauseSeconds * 1000 * 2 ** tries, undefined, { signal: this.#ending.signal }).catch(() => {});
          continue;
        }
        if (!handled) log(`event ${eventId} is set aside after ${tries} tries`);
        this.inbox.settle(eventId, handled ? 'handled' : 'set aside');
        tries = 0;
      }
    } catch (fault) {
      log(`the store fails: ${fault.code}; the next update or start goes on`);
    } finally {
      this.#busy = false;
    }
  }

  async #handled(body) {
    try {
      await this.handler(JSON.parse(body));
      return true;
    } catch (bug) { // its message may quote the update, so only its kind and place are told
      const places = String(bug?.stack).split('\n').filter((line) => line.startsWith('    at '));
      log(`${bug?.name}${places.slice(0, 5).join('')}`);
      return false;
    }
  }

  /** Asks it to end after the update at hand. */
  end() {
    this.#ending.abort();
  }
}
