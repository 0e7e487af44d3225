// Who works on the updates that an inbox holds.
import { setTimeout as wait } from 'node:timers/promises';
import { log } from './smeet.mjs';

const TRIES = 5; // at handling an update; then it is set aside
const NOT_NOW_SECONDS = 30;
const seconds = () => Date.now() / 1000;

/** Thrown by a handler: this update can never be handled. Its message is logged and kept: no personal data. */
export class SetAside extends Error {}

/** Thrown by a handler: nothing can be handled now; the same update is tried again later. */
export class NotNow extends Error {}

/**
 * Handles the stored updates one at a time, the ones left from before a restart too. One that fails is
 * tried again after a while. Until then the later ones of its chat wait; other chats go on.
 */
export class Worker {
  #busy = false;
  #over = Promise.resolve(); // the run at hand
  #news = new AbortController(); // ends a wait for the next try
  #ending = new AbortController();

  constructor(inbox, handler, pauseSeconds = 1) {
    Object.assign(this, { inbox, handler, pauseSeconds });
  }

  /** Works until nothing waits. While it works already, it only takes notice of what is new. */
  async run() {
    this.#news.abort();
    if (this.#busy) return;
    this.#busy = true;
    let over;
    this.#over = new Promise((resolve) => { over = resolve; });
    try {
      while (!this.#ending.signal.aborted && await this.#step());
    } finally {
      this.#busy = false;
      over();
    }
  }

  /** One update, or one pause. Gives false when nothing is left to do. */
  async #step() {
    try {
      this.#news = new AbortController(); // before looking: what is stored after the look ends the pause
      const row = this.inbox.next();
      if (row) {
        await this.#handle(...row);
        return true;
      }
      const due = this.inbox.due();
      if (due === undefined) return false;
      await this.#pause(due - seconds(), this.#news);
    } catch (fault) {
      if (fault instanceof NotNow) {
        log(`${fault.message}; trying again in ${NOT_NOW_SECONDS} s`);
        await this.#pause(NOT_NOW_SECONDS * this.pauseSeconds);
        return true;
      }
      log(`the store fails: ${fault.message}`);
      if (fault.code === 'TAKEN_OVER') return false;
      await this.#pause(5 * this.pauseSeconds);
    }
    return true;
  }

  async #pause(length, by = this.#ending) {
    // The one error it can have is that it was ended.
    await wait(Math.max(length, 0.001) * 1000, undefined, { signal: by.signal }).catch(() => {});
  }

  /** Handles one update and writes down what became of it. Throws NotNow, or the store's errors. */
  async #handle(eventId, body, tries) {
    let reason;
    try {
      await this.handler(JSON.parse(body));
    } catch (bug) {
      if (bug instanceof NotNow) throw bug;
      reason = bug instanceof SetAside ? bug.message : `${bug?.name}, ${tries + 1} times`;
      if (!(bug instanceof SetAside)) {
        // Its message may quote the update, so only its kind and place are told.
        const places = String(bug?.stack).split('\n').filter((line) => line.startsWith('    at '));
        log(`event ${eventId}: ${bug?.name}${places.slice(0, 5).join('')}`);
        if (tries + 1 < TRIES) return this.inbox.later(eventId, tries + 1, seconds() + this.pauseSeconds * 2 ** (tries + 1));
      }
    }
    if (reason === undefined) return this.inbox.settle(eventId, 'handled');
    log(`event ${eventId} is set aside: ${reason}`);
    return this.inbox.settle(eventId, 'set aside', reason);
  }

  /** Asks it to end after the update at hand; the promise holds when it has. */
  end() {
    this.#ending.abort();
    this.#news.abort();
    return this.#over;
  }
}
