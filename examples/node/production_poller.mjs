#!/usr/bin/env node
// A long poller that survives crashes: it stores each batch with its place before it confirms it.
//
//   getUpdates -> one synced line: the updates, next_offset, epoch -> the next getUpdates confirms
//                                       |
//                                 a worker answers from the store, in order, with Idempotency-Keys
//
// A crash at any point loses nothing and does nothing twice: what wasn't stored wasn't confirmed and
// comes again; what was stored is known by its event_id; what was done is known by its key.
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { work } from './bot_logic.mjs';
import { Inbox, Worker } from './inbox.mjs';
import { ApiError, Client, LongPoll, Stopped, adviceFor, consumerName, log, markOf } from './smeet.mjs';

/** Offset and epoch as the inbox keeps them. */
export class Place {
  constructor(inbox, bot) {
    Object.assign(this, { inbox, bot }, inbox.place(bot));
  }

  save(offset, epoch) { this.take([], offset, epoch); }

  take(updates, offset, epoch) {
    const fresh = this.inbox.take(this.bot, updates, offset, epoch);
    Object.assign(this, { offset, epoch });
    return fresh;
  }
}

/** A LongPoll that stores. stored() is called after a batch with new updates. */
export function poller(client, place, consumerId, stored) {
  return new LongPoll(client, place, consumerId, (batch) => {
    const { updates, next_offset: next, confirmed_offset: confirmed, lease } = batch;
    if (updates.length === 0 && next === place.offset && lease.epoch === place.epoch) return false; // nothing to write down
    const fresh = place.take(updates, next, lease.epoch);
    if (updates.length > 0) log(`${updates.length} updates, ${fresh} of them new`);
    if (fresh > 0) stored();
    return next !== confirmed;
  });
}

async function main(env) {
  const url = env.SMEET_URL || 'http://127.0.0.1:8080';
  const token = (env.SMEET_TOKEN ?? '').trim();
  const path = env.SMEET_STORE || './production_poller.jsonl';
  const consumerId = consumerName(env.SMEET_CONSUMER_ID, 'production-poller');
  let bot, worker;
  const clients = [];
  const stop = () => {
    bot?.stop();
    for (const client of clients) client.stop();
    worker?.end();
  };
  process.once('SIGTERM', stop).once('SIGINT', stop);
  try {
    clients.push(new Client(url, token), new Client(url, token));
    const [client, answers] = clients; // the worker has a client of its own, for its pauses
    // Whose store it is: the bot's id, which stays when the token changes.
    const me = await client.getMe();
    const inbox = new Inbox(path);
    const place = new Place(inbox, markOf(url, me.id));
    worker = new Worker(inbox, work(answers));
    bot = poller(client, place, consumerId, () => worker.run());
    worker.run();
    const tidying = setInterval(() => inbox.tidy(), 24 * 3600 * 1000);
    log(`receiving as ${consumerId} from offset ${place.offset ?? "(the server's position)"}`);
    try {
      await bot.run();
    } finally {
      clearInterval(tidying);
      stop();
      await worker.end();
      log(`stopped at offset ${place.offset}`);
    }
  } catch (error) {
    if (error instanceof Stopped) return;
    if (error instanceof TypeError && !token) log('Set SMEET_TOKEN to the token that My bots showed.');
    else log(error instanceof ApiError ? adviceFor(error) : `Can't go on with the store ${path}: ${error.message}`);
    process.exitCode = 1;
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main(process.env);
