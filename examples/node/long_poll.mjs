// Receiving by long polling: what echo_bot.mjs and production_poller.mjs have in common.
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { ApiError, Stopped, actionKey, log } from './smeet.mjs';

const LOOK_AGAIN_SECONDS = 30;
// getUpdates has nothing to give now; the owner or the server has to change something first.
const LOOK_AGAIN = {
  DELIVERY_MODE_CONFLICT: 'the bot receives by webhook', BOT_PAUSED: 'the bot is paused', INTERNAL: 'the server has a fault',
};

/**
 * Asks for batches until stop(), and reacts to the errors of normal operation. place has offset and
 * epoch, always from the same moment, and save(offset, epoch), which keeps both at once. take(batch)
 * does with a batch what it does, saves, and says whether the next call confirms something.
 */
export class LongPoll {
  stopping = false;

  constructor(client, place, consumerId, take) {
    // unconfirmed: whether something was saved that no answered call has confirmed
    Object.assign(this, { client, place, consumerId, take, unconfirmed: false });
  }

  /** Asks run() to end after the update at hand. */
  stop() {
    this.stopping = true;
    this.client.stop();
  }

  /** Receives until stop(). Throws the ApiErrors that a person has to mend. */
  async run() {
    try {
      while (!this.stopping) {
        try {
          await this.receive();
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          await this.react(error);
        }
      }
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
    }
    if (this.unconfirmed) await this.confirm();
  }

  // snippet: receive
  /** One batch. Its offset confirms the batch before it, which was saved. */
  async receive() {
    const batch = await this.client.getUpdates(this.consumerId, this.place.epoch, this.place.offset);
    for (const gap of batch.skipped ?? []) { // new reasons may appear: none is a cause to refuse a batch
      log(`updates ${gap.from_update_id} to ${gap.to_update_id} were skipped: ${gap.reason}`);
    }
    this.unconfirmed = await this.take(batch); // saves next_offset and lease.epoch
  }
  // snippet end

  // snippet: confirm
  /** At the end: tells the server at once what was saved. If it fails, the next start does it. */
  async confirm() {
    try {
      const batch = await this.client.getUpdates(this.consumerId, this.place.epoch, this.place.offset, 0, 1);
      this.place.save(batch.confirmed_offset, batch.lease.epoch);
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof Stopped)) throw error;
      // A CONSUMER_CONFLICT may be the poll that was just cut short: it has the same offset.
      log(`offset ${this.place.offset} may not be confirmed yet; the next start does it (${error.code ?? 'stopped'})`);
    }
  }
  // snippet end

  // snippet: errors
  /** The errors of normal operation; all others are thrown again. */
  async react(error) {
    const { place } = this;
    if (error.code === 'CONSUMER_CONFLICT') {
      // Another consumer has the lease, or a poll still waits: our own, right after a crash.
      // Epoch and offset stay; the server decides whether they still count.
      const seconds = error.retryAfter ?? 5;
      log(`another getUpdates holds this bot; next try in ${seconds} s`);
      await this.client.sleep(seconds);
    } else if (error.code === 'CURSOR_BEHIND') {
      log(`offset ${place.offset} is behind; going on from ${error.details.confirmed_offset}`);
      place.save(error.details.confirmed_offset, place.epoch);
    } else if (error.code === 'OFFSET_NOT_ISSUED') {
      log(`offset ${place.offset} is unknown to this lease; asking the server for its position`);
      place.save(undefined, place.epoch);
    } else if (LOOK_AGAIN[error.code]) {
      log(`${LOOK_AGAIN[error.code]} (${error.message}); looking again in ${LOOK_AGAIN_SECONDS} s`);
      await this.client.sleep(LOOK_AGAIN_SECONDS);
    } else {
      throw error;
    }
  }
  // snippet end

  /** Moves an update of the batch at hand to the owner's FAILED list, from where it can be replayed. */
  async reject(update, reason, epoch) {
    const id = update.update_id;
    if (typeof id !== 'string') {
      log(`an update without update_id was passed over: ${reason}`);
      return;
    }
    try {
      // With update_id: a replay is the same event in another place, and may be rejected again.
      await this.client.rejectUpdate(id, reason, this.consumerId, epoch, actionKey(String(update.event_id), 'reject', id));
      log(`update ${id} moved aside: ${reason}`);
    } catch (error) {
      // It waits no longer, or a call before a crash has moved it, with another reason or epoch.
      if (!['UPDATE_NOT_FOUND', 'IDEMPOTENCY_KEY_REUSED'].includes(error.code)) throw error;
      log(`update ${id} waits no longer, nothing to move aside`);
    }
  }
}

/** The consumer_id of this process: the chosen one, else the host's name in allowed letters. */
export function consumerName(chosen, otherwise) {
  return chosen || hostname().replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 64) || otherwise;
}

/** Whose position a file holds. It can't be turned back into the token. */
export const markOf = (...whose) => createHash('sha256').update(whose.join(' ')).digest('hex').slice(0, 16);
