#!/usr/bin/env node
// An echo bot: it receives by long polling and answers every text message with the same text.
//
// It handles a batch before it confirms it, so a batch can come twice. That is safe here because all
// it does is call the Bot API with Idempotency-Keys. production_poller.mjs stores first.
import { closeSync, fsyncSync, openSync, readFileSync, realpathSync, renameSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { POINTLESS, REFUSED, Unreadable, answer } from './bot_logic.mjs';
import { LongPoll, consumerName, markOf } from './long_poll.mjs';
import { ApiError, Client, Stopped, adviceFor, log } from './smeet.mjs';

/** Offset and epoch in one small file. Both always come from the same moment. bot marks whose they are. */
export class State {
  constructor(path, bot) {
    Object.assign(this, { path, bot });
    let saved;
    try {
      saved = JSON.parse(readFileSync(path, 'utf8'));
    } catch (fault) {
      if (fault.code === 'ENOENT') return;
      if (fault.code) throw fault;
    }
    const good = (value) => value === undefined || /^[0-9]+$/.test(value);
    if (saved?.bot === bot && good(saved.offset) && good(saved.epoch)) Object.assign(this, { offset: saved.offset, epoch: saved.epoch });
    else log(`${path} holds no position of this bot; going on from the server's`);
  }

  /** Writes both at once: a crash at any point leaves the old file or the new one, never a mix. */
  save(offset, epoch) {
    if (offset === this.offset && epoch === this.epoch) return;
    const file = openSync(`${this.path}.new`, 'w', 0o600);
    try {
      writeSync(file, JSON.stringify({ bot: this.bot, offset, epoch }));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(`${this.path}.new`, this.path);
    Object.assign(this, { offset, epoch });
  }
}

/** A LongPoll that handles a batch and saves its end; the next getUpdates confirms it. */
export function echoBot(client, state, consumerId) {
  const bot = new LongPoll(client, state, consumerId, async (batch) => {
    const { updates, lease: { epoch }, confirmed_offset: confirmed, next_offset: next } = batch;
    let reached = confirmed;
    state.save(reached, epoch); // an epoch may be new: keep it, with the position that goes with it
    try {
      for (const [index, update] of updates.entries()) {
        if (bot.stopping) return reached !== confirmed;
        await handle(bot, update, epoch);
        // offset means "the next update I want": inside a batch the next one's id, at its end next_offset.
        reached = updates[index + 1]?.update_id ?? next;
      }
      reached = next;
    } finally {
      state.save(reached, epoch);
      bot.unconfirmed = reached !== confirmed;
    }
    return bot.unconfirmed;
  });
  return bot;
}

/** Answers one update. Returns when it is done with, one way or another. */
async function handle(bot, update, epoch) {
  const id = update.update_id;
  let reason;
  try {
    return await answer(bot.client, update);
  } catch (error) {
    if (error instanceof Stopped) throw error;
    if (error instanceof Unreadable) {
      reason = `The bot can't read this update: ${error.message}`;
    } else if (error instanceof ApiError) {
      if (POINTLESS[error.code]) return log(`update ${id} needs no answer: ${POINTLESS[error.code]}`);
      if (!REFUSED.has(error.code)) throw error;
      reason = `The bot's answer was refused: ${error.code}`;
    } else { // a bug's message may quote the update, so only its kind is told
      reason = `The bot failed on this update: ${error?.name}`;
    }
  }
  return bot.reject(update, reason, epoch);
}

async function main(env) {
  const url = env.SMEET_URL || 'http://127.0.0.1:8080';
  const token = (env.SMEET_TOKEN ?? '').trim();
  const consumerId = consumerName(env.SMEET_CONSUMER_ID, 'echo-bot');
  try {
    const client = new Client(url, token);
    const state = new State(env.SMEET_STATE || './echo_bot.state.json', markOf(url, token));
    const bot = echoBot(client, state, consumerId);
    process.once('SIGTERM', () => bot.stop()).once('SIGINT', () => bot.stop());
    log(`receiving as ${consumerId} from offset ${state.offset ?? "(the server's position)"}`);
    await bot.run();
    log(`stopped at offset ${state.offset}`);
  } catch (error) {
    if (error instanceof TypeError && !token) log('Set SMEET_TOKEN to the token that My bots showed.');
    else log(error instanceof ApiError ? adviceFor(error) : `Can't go on: ${error.message}`);
    process.exitCode = 1;
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main(process.env);
