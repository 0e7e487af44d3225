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
import { check, work } from './bot_logic.mjs';
import { Inbox } from './inbox.mjs';
import { LongPoll, consumerName, markOf } from './long_poll.mjs';
import { ApiError, Client, Stopped, adviceFor, log } from './smeet.mjs';
import { Worker } from './worker.mjs';

/** Offset and epoch as the inbox keeps them. */
export class Place {
  constructor(inbox, bot, server) {
    Object.assign(this, { inbox, bot, server, offset: undefined, epoch: undefined }, inbox.place(bot, server));
  }

  save(offset, epoch) { this.take([], offset, epoch); }

  take(updates, offset, epoch) {
    if (updates.length === 0 && offset === this.offset && epoch === this.epoch) return 0; // nothing to write down
    const fresh = this.inbox.take(this.bot, this.server, updates, offset, epoch);
    Object.assign(this, { offset, epoch });
    return fresh;
  }
}

/** A LongPoll that stores. stored() is called after a batch with new updates. */
export function poller(client, place, consumerId, stored) {
  const bot = new LongPoll(client, place, consumerId, async (batch) => {
    const { updates, next_offset: next, confirmed_offset: confirmed, lease: { epoch } } = batch;
    const accepted = [];
    for (const update of updates) {
      const problem = check(update);
      if (problem === undefined) {
        accepted.push(update);
        continue;
      }
      place.save(confirmed, epoch); // so that the lease is still ours if the reject fails
      // Kept out of the store: the owner sees it under Failed updates, and can retry it after a fix.
      await bot.reject(update, `The bot can't read this update: ${problem}`, epoch);
    }
    const fresh = place.take(accepted, next, epoch);
    if (updates.length > 0) log(`${updates.length} updates, ${fresh} of them new`);
    if (fresh > 0) stored();
    return next !== confirmed;
  });
  return bot;
}

async function main(env) {
  const url = env.SMEET_URL || 'http://127.0.0.1:8080';
  const token = (env.SMEET_TOKEN ?? '').trim();
  const path = env.SMEET_STORE || './production_poller.jsonl';
  const consumerId = consumerName(env.SMEET_CONSUMER_ID, 'production-poller');
  let client, answers, bot, worker;
  try {
    [client, answers] = [new Client(url, token), new Client(url, token)]; // the worker's own, for its pauses
  } catch (fault) {
    log(`Set SMEET_TOKEN and SMEET_URL: ${fault.message}.`);
    process.exitCode = 1;
    return;
  }
  const stop = () => {
    for (const one of [bot, client, answers]) one?.stop();
    worker?.end();
  };
  process.once('SIGTERM', stop).once('SIGINT', stop);
  try {
    const me = await client.getMe(); // whose store it is: the token may change, the bot stays
    const inbox = new Inbox(path);
    const place = new Place(inbox, `${me.username} (${me.id})`, markOf(url));
    worker = new Worker(inbox, work(answers));
    bot = poller(client, place, consumerId, () => worker.run());
    worker.run();
    const tidying = inbox.tidyDaily();
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
    if (error instanceof ApiError) log(adviceFor(error));
    else log(`The store ${path} can't be used: ${error.message}. Nothing was confirmed that isn't in it.`);
    process.exitCode = 1;
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main(process.env);
