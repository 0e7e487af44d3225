// Where webhook_bot.mjs and production_poller.mjs keep updates.
//
//   node inbox.mjs store.jsonl            lists what was set aside
//   node inbox.mjs store.jsonl --retry    lets it be tried again; stop the bot first
import {
  closeSync, existsSync, fstatSync, fsyncSync, ftruncateSync, openSync, readFileSync, realpathSync, renameSync, statSync, writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { log } from './smeet.mjs';

const KEPT_SECONDS = 8 * 24 * 3600; // an event can come again for 7 days
const seconds = () => Date.now() / 1000;

/**
 * The updates that were taken, in a file that is only appended to: lines of JSON. What store() and
 * take() returned for survives a power cut. A webhook's receiver and a long poller may use the same
 * file one after the other, and nothing is done twice when the owner switches the mode. One process
 * uses it at a time: the writes of one that was started before fail, with the code TAKEN_OVER.
 */
export class Inbox {
  #path;
  #file;
  #size = 0; // of what is known to be on the disk
  #known = new Map(); // event_id → {taken, state, tries, due, reason, body}, in the order of arrival
  #waiting = new Map(); // event_id → {body, chat} of those that wait, in the same order
  #place; // of long polling: {bot, server, offset, epoch}

  /** readOnly is for a look at the file of a bot that runs. */
  constructor(path, now = seconds(), readOnly = false) {
    this.#path = path;
    const old = existsSync(path) ? openSync(path, 'r') : undefined;
    const text = old === undefined ? Buffer.alloc(0) : readFileSync(old);
    const whole = text.lastIndexOf(10) + 1; // what follows was cut by a crash: nobody was told that it is stored
    const lines = text.subarray(0, whole).toString().split('\n').slice(0, -1);
    for (const [index, line] of lines.entries()) {
      try {
        this.#apply(JSON.parse(line));
      } catch {
        if (index < lines.length - 1) throw new Error(`line ${index + 1} of ${path} isn't what this program writes`);
        log(`the last line of ${path} is spoiled, as after a power cut, and was left out`); // it was never synced
      }
    }
    this.#sort();
    if (!readOnly) {
      this.tidy(now);
      // A bot that ran until now may have stored more before its file was replaced.
      const more = old === undefined ? [] : Buffer.concat([text.subarray(whole), readFileSync(old)]).toString().split('\n').slice(0, -1);
      for (const line of more) this.#append(JSON.parse(line));
    }
    if (old !== undefined) closeSync(old);
  }

  #apply({ event_id: eventId, body, batch, place, ...rest }) {
    if (place) this.#place = place;
    for (const record of batch ?? []) this.#apply(record);
    if (eventId === undefined) return;
    const { body: kept, ...entry } = { ...this.#known.get(eventId), ...rest };
    const text = body ?? this.#waiting.get(eventId)?.body ?? kept;
    if (entry.state === 'waiting') this.#waiting.set(eventId, { body: text, chat: chatOf(text) });
    else this.#waiting.delete(eventId);
    this.#known.set(eventId, entry.state === 'set aside' ? { ...entry, body: text } : entry); // for a person to look at
  }

  #append(record) {
    const line = Buffer.from(`${JSON.stringify(record)}\n`);
    try {
      writeAll(this.#file, line, this.#size);
      this.#mustBeOurs(); // after the write: whoever takes over from now on reads it
    } catch (fault) {
      if (fault.code !== 'TAKEN_OVER') ftruncateSync(this.#file, this.#size); // half a line would spoil the next one
      throw fault;
    }
    this.#size += line.length;
    this.#apply(record);
  }

  #mustBeOurs() {
    const there = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    if (there?.ino === fstatSync(this.#file, { bigint: true }).ino) return;
    throw Object.assign(new Error('another program has taken it over, or it was removed'), { code: 'TAKEN_OVER' });
  }

  /** Stores an update once; tells whether it is new. Throws if it isn't on the disk. */
  store(eventId, body, now = seconds()) {
    if (this.#known.has(eventId)) return false;
    this.#append({ event_id: eventId, taken: now, state: 'waiting', body });
    return true;
  }

  // snippet: inbox
  /**
   * Stores a batch together with the place behind it, in one line: after a crash all of it is there
   * or nothing. Tells how many updates are new. Throws if it isn't on the disk.
   */
  take(bot, server, updates, offset, epoch, now = seconds()) {
    const fresh = new Map(updates.filter((update) => !this.#known.has(update.event_id)).map((update) => [update.event_id, update]));
    const batch = [...fresh].map(([eventId, update]) => ({ event_id: eventId, taken: now, state: 'waiting', body: JSON.stringify(update) }));
    this.#append({ batch, place: { bot, server, offset, epoch } }); // written and synced
    return batch.length;
  }
  // snippet end

  /**
   * {offset, epoch} of this bot at this server, empty where none are known. Throws for another bot's
   * store: its updates aren't ours to answer.
   */
  place(bot, server) {
    const place = this.#place;
    if (place && place.bot !== bot) throw new Error(`it is the store of ${place.bot}, and this is ${bot}: give each bot its own`);
    if (place && place.server !== server) {
      log("the place in the store is another server's; going on from where this one stands");
      return {};
    }
    return { offset: place?.offset, epoch: place?.epoch };
  }

  /** [event_id, body, tries] of the update to handle now: the first of its chat that isn't done, if it is due. */
  next(now = seconds()) {
    const held = new Set();
    for (const [eventId, { body, chat }] of this.#waiting) {
      if (held.has(chat)) continue;
      const { due = 0, tries = 0 } = this.#known.get(eventId);
      if (due <= now) return [eventId, body, tries];
      held.add(chat);
    }
    return undefined;
  }

  /** When the first of the updates that wait for another try is due. */
  due() {
    const all = [...this.#waiting.keys()].map((eventId) => this.#known.get(eventId)).filter((entry) => entry.tries > 0);
    return all.length > 0 ? Math.min(...all.map((entry) => entry.due)) : undefined;
  }

  /** Ends the wait: state is "handled" or "set aside". */
  settle(eventId, state, reason) {
    this.#append({ event_id: eventId, state, reason });
  }

  later(eventId, tries, due) {
    this.#append({ event_id: eventId, tries, due });
  }

  /** [event_id, body, reason] of what was set aside. */
  aside() {
    return [...this.#known].filter(([, entry]) => entry.state === 'set aside').map(([eventId, entry]) => [eventId, entry.body, entry.reason]);
  }

  /** What was set aside waits again, in its old place. Tells how many. */
  retry() {
    const all = this.aside();
    for (const [eventId] of all) this.#append({ event_id: eventId, state: 'waiting', tries: 0, due: 0, reason: null });
    this.#sort();
    return all.length;
  }

  /** Puts what waits into the order of arrival, which retry() has disturbed. */
  #sort() {
    const order = [...this.#known.keys()].filter((eventId) => this.#waiting.has(eventId));
    this.#waiting = new Map(order.map((eventId) => [eventId, this.#waiting.get(eventId)]));
  }

  /** Writes the file anew without what was handled and is too old to come again. */
  tidy(now = seconds()) {
    const kept = [...this.#known].filter(([, entry]) => entry.state !== 'handled' || entry.taken > now - KEPT_SECONDS);
    const records = kept.map(([eventId, entry]) => ({ event_id: eventId, body: this.#waiting.get(eventId)?.body, ...entry }));
    if (this.#place) records.unshift({ place: this.#place });
    const text = Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
    const file = openSync(`${this.#path}.new`, 'w', 0o600); // it holds what people wrote
    try {
      writeAll(file, text, 0);
      if (this.#file !== undefined) this.#mustBeOurs();
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

  /** tidy() once a day, until clearInterval() of what it gives. */
  tidyDaily() {
    return setInterval(() => {
      try {
        this.tidy();
      } catch (fault) {
        log(`the store can't be tidied: ${fault.message}`);
      }
    }, 24 * 3600 * 1000);
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

/** The id of the chat that an update belongs to; "" where none is named. */
function chatOf(body) {
  const update = JSON.parse(body);
  const payload = update?.[update.type];
  const id = payload?.chat?.id ?? payload?.message?.chat?.id;
  return typeof id === 'string' ? id : '';
}

function main(path, flag, ...more) {
  if (!path || !existsSync(path) || (flag ?? '--retry') !== '--retry' || more.length > 0) {
    console.error('usage: node inbox.mjs STORE [--retry]; STORE is the file of a bot');
    process.exitCode = 2;
    return;
  }
  const inbox = new Inbox(path, undefined, !flag);
  if (flag) {
    console.log(`${inbox.retry()} updates will be tried again at the bot's next start`);
    inbox.close();
    return;
  }
  for (const [eventId, body, reason] of inbox.aside()) {
    const { type, update_id: updateId } = JSON.parse(body);
    console.log(`${eventId}  ${type} ${updateId}  ${reason}`);
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main(...process.argv.slice(2));
