// Where webhook_bot.mjs and production_poller.mjs keep updates, and who works on them.
import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { log } from './smeet.mjs';

const KEPT_SECONDS = 8 * 24 * 3600; // an event can come again for 7 days
const TRIES = 5; // at handling an update; then it is set aside

const NOT_NOW_SECONDS = 30;

/** Thrown by a handler: this update can never be handled. Its message goes into the log: no personal data. */
export class SetAside extends Error {}

/** Thrown by a handler: nothing can be handled now; the same update is tried again later. */
export class NotNow extends Error {}

/**
 * The updates that were taken, in a file that is only appended to: a line of JSON for each update
 * and one for its end. What store() and take() returned for survives a power cut. One process uses a
 * file at a time; a webhook's receiver and a long poller may use the same one after the other, and
 * nothing is done twice when the owner switches the mode.
 */
export class Inbox {
  #path;
  #file;
  #size = 0; // of what is known to be on the disk
  #known = new Map(); // event_id → {taken, state}, in the order of arrival
  #waiting = new Map(); // event_id → body, in the same order
  #place; // of long polling: {bot, offset, epoch}

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

  #apply({ event_id: eventId, body, batch, place, ...rest }) {
    if (place) this.#place = place;
    for (const record of batch ?? []) this.#apply(record);
    if (eventId === undefined) return;
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

  // snippet: inbox
  /**
   * Stores a batch together with the place behind it, in one line: after a crash all of it is there
   * or nothing. Tells how many updates are new. Throws if it isn't on the disk.
   */
  take(bot, updates, offset, epoch, now = Date.now() / 1000) {
    const fresh = new Map(updates.filter((update) => !this.#known.has(update.event_id)).map((update) => [update.event_id, update]));
    const batch = [...fresh].map(([eventId, update]) => ({ event_id: eventId, taken: now, state: 'waiting', body: JSON.stringify(update) }));
    this.#append({ batch, place: { bot, offset, epoch } });
    return batch.length;
  }
  // snippet end

  /** {offset, epoch} of this bot, empty at first. Throws for another bot's store. */
  place(bot) {
    if (this.#place && this.#place.bot !== bot) throw new Error("it is another bot's, or another server's");
    return { offset: this.#place?.offset, epoch: this.#place?.epoch };
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
    const records = kept.map(([eventId, entry]) => ({ event_id: eventId, body: this.#waiting.get(eventId), ...entry }));
    if (this.#place) records.unshift({ place: this.#place });
    const text = Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
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
  #over = Promise.resolve(); // the run at hand
  #ending = new AbortController();

  constructor(inbox, handler, pauseSeconds = 1) {
    Object.assign(this, { inbox, handler, pauseSeconds });
  }

  /** Works until nothing waits. Does nothing while it works already. */
  async run() {
    if (this.#busy) return;
    this.#busy = true;
    let over;
    this.#over = new Promise((resolve) => { over = resolve; });
    try {
      for (let row, tries = 0; !this.#ending.signal.aborted && (row = this.inbox.first()) !== undefined;) {
        const [eventId, body] = row;
        const state = await this.#handled(eventId, body, tries + 1);
        if (state === 'waiting' || state === 'not now') {
          const seconds = state === 'not now' ? NOT_NOW_SECONDS : 2 ** (tries += 1);
          // The one error it can have is that end() ended it.
          await pause(this.pauseSeconds * 1000 * seconds, undefined, { signal: this.#ending.signal }).catch(() => {});
          continue;
        }
        this.inbox.settle(eventId, state);
        tries = 0;
      }
    } catch (fault) {
      log(`the store fails: ${fault.code}; the next update or start goes on`);
    } finally {
      this.#busy = false;
      over();
    }
  }

  /** What becomes of the update: handled, set aside, waiting for another try, or not now. */
  async #handled(eventId, body, tries) {
    try {
      await this.handler(JSON.parse(body));
      return 'handled';
    } catch (bug) {
      if (bug instanceof NotNow) {
        log(`${bug.message}; trying again in ${NOT_NOW_SECONDS} s`);
        return 'not now';
      }
      if (bug instanceof SetAside) {
        log(`event ${eventId} is set aside: ${bug.message}`);
        return 'set aside';
      }
      // Its message may quote the update, so only its kind and place are told.
      const places = String(bug?.stack).split('\n').filter((line) => line.startsWith('    at '));
      log(`${bug?.name}${places.slice(0, 5).join('')}`);
    }
    if (tries < TRIES) return 'waiting';
    log(`event ${eventId} is set aside after ${tries} tries`);
    return 'set aside';
  }

  /** Asks it to end after the update at hand; the promise holds when it has. */
  end() {
    this.#ending.abort();
    return this.#over;
  }
}
