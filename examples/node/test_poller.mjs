import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Unreadable, answer, check, work } from './bot_logic.mjs';
import { State, echoBot } from './echo_bot.mjs';
import { CODES, FakeSMeet, TOKEN, fail, text } from './fake_smeet.mjs';
import { Inbox } from './inbox.mjs';
import { Place, poller } from './production_poller.mjs';
import { ApiError, Client, actionKey } from './smeet.mjs';
import { NotNow, SetAside } from './worker.mjs';

// What getUpdates does after each code, as the README's table says; the others end the program.
const RECEIVING = { RATE_LIMITED: '43', MAINTENANCE: '43', UNAVAILABLE: '43', CONSUMER_CONFLICT: '43', DELIVERY_MODE_CONFLICT: '43',
  BOT_PAUSED: '43', INTERNAL: '43', CURSOR_BEHIND: '40', OFFSET_NOT_ISSUED: undefined }; // the offset of the next call
// What becomes of a message whose answer got it; all others: not now.
const ANSWERING = { RATE_LIMITED: 'repeats', MAINTENANCE: 'repeats', UNAVAILABLE: 'repeats', CHAT_NOT_FOUND: 'done', UPDATE_NOT_FOUND: 'done',
  IDEMPOTENCY_KEY_REUSED: 'done', INVALID_REQUEST: 'set aside', REQUEST_TOO_LARGE: 'set aside', INTERNAL: 'set aside' };
const INTERNAL_TRIES = 6;

function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'poller-'));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

const client = (fake, pauses = []) => new Client(fake.url, TOKEN, async (seconds) => { pauses.push(seconds); }); // without real pauses

/** Runs a bot until done(), then stops it. */
async function until(fake, bot, done) {
  const running = bot.run();
  await Promise.race([fake.until(done), running]);
  bot.stop();
  await running;
}

const asked = (fake, name = 'getUpdates') => fake.asked.filter(([method]) => method === name).map(([, params, key]) => ({ ...params, key }));
const places = (fake) => asked(fake).map(({ epoch, offset }) => `${epoch} ${offset}`);

function store(t, path = join(folder(t), 'store.jsonl')) {
  const inbox = new Inbox(path);
  t.after(() => inbox.close());
  return { path, inbox, place: new Place(inbox, 'b', 's') };
}

/** A place in memory. */
const at43 = () => ({ epoch: '7', offset: '43', save(offset, epoch) { Object.assign(this, { offset, epoch }); }, take() { return 0; } });

test('the poller stores updates and place together, then confirms', async (t) => {
  const { path, inbox, place } = store(t);
  const fake = await new FakeSMeet(4).start(t);
  const seen = [];
  fake.at = (point) => { if (point === 'asked getUpdates') seen.push(readFileSync(path, 'utf8')); };
  await until(fake, poller(client(fake), place, 'me', () => {}), () => fake.position === 5);
  assert.deepEqual(places(fake).slice(0, 3), ['undefined undefined', '1 4', '1 5']);
  assert.match(seen[1], /event-3.*"offset":"4","epoch":"1"/s);
  inbox.close();
  const after = new Inbox(path);
  assert.deepEqual(after.place('b', 's'), { offset: '5', epoch: '1' });
  assert.equal(after.next()[0], 'event-1');
  after.close();
});

test("what comes again, after a lost place, an owner's Retry or a switch from the webhook, is stored once", async (t) => {
  const { inbox, place } = store(t);
  inbox.store('event-2', '{}'); // by webhook
  const fake = await new FakeSMeet(3).start(t);
  let fresh = 0;
  const take = inbox.take.bind(inbox);
  inbox.take = (...rest) => { const n = take(...rest); fresh += n; return n; };
  await until(fake, poller(client(fake), place, 'me', () => {}), () => fake.position === 4);
  fake.writeEvent({ ...text(1), replay_of_update_id: '1' });
  await until(fake, poller(client(fake), place, 'me', () => {}), () => fake.position === 5);
  assert.equal(fresh, 2);
  assert.equal(inbox.store('event-3', '{}'), false, 'and the other way round');
});

test("what can never be handled goes to the owner's list", async (t) => {
  const { inbox, place } = store(t);
  const fake = await new FakeSMeet(3).start(t);
  fake.updates[1] = text(2, { private: 'words' });
  fake.script('rejectUpdate', undefined, fail('CONSUMER_CONFLICT'));
  await until(fake, poller(client(fake), place, 'me', () => {}), () => fake.position === 4);
  assert.deepEqual([...fake.failed], ['2']);
  assert.deepEqual(asked(fake, 'rejectUpdate').map(({ key, epoch }) => [key, epoch]), Array(3).fill(['event-2:reject:2', '1']));
  assert.equal(asked(fake, 'rejectUpdate')[0].reason, "The bot can't read this update: message.text is no string");
  assert.deepEqual(places(fake).slice(0, 3), ['undefined undefined', '1 1', '1 4'], 'after the conflict the lease is still ours');
  assert.deepEqual([inbox.store('event-2', '{}'), inbox.store('event-3', '{}')], [true, false]);
});

for (const code of Object.keys(CODES)) {
  test(`getUpdates gets ${code}`, async (t) => {
    const fake = await new FakeSMeet(0).start(t);
    const times = code === 'INTERNAL' ? INTERNAL_TRIES : 1;
    fake.script('getUpdates', ...Array(times).fill(fail(code)));
    const bot = poller(client(fake), at43(), 'me', () => {});
    if (!(code in RECEIVING)) {
      await assert.rejects(bot.run(), (error) => error instanceof ApiError && error.code === code);
      assert.deepEqual(places(fake), ['7 43'], 'nothing is asked, and nothing confirmed, after that');
      return;
    }
    await until(fake, bot, () => fake.asked.length > times);
    assert.deepEqual(places(fake).slice(0, times + 1), [...Array(times).fill('7 43'), `7 ${RECEIVING[code]}`]);
  });
  test(`an answer gets ${code}`, async (t) => {
    const fake = await new FakeSMeet(0).start(t);
    fake.script('sendMessage', ...Array(code === 'INTERNAL' ? INTERNAL_TRIES : 1).fill(fail(code)));
    const got = await work(client(fake))(text(43)).then(() => (fake.asked.length > 1 ? 'repeats' : 'done'), (error) => {
      if (error instanceof SetAside) return 'set aside';
      assert.ok(error instanceof NotNow, error);
      return 'not now';
    });
    assert.equal(got, ANSWERING[code] ?? 'not now');
    assert.deepEqual(new Set(asked(fake, 'sendMessage').map(({ key }) => key)), new Set(['event-43:reply']));
  });
}

test('lost answers, pages of proxies, and how long it waits', async (t) => {
  const fake = await new FakeSMeet(0).start(t);
  const pauses = [];
  fake.script('getUpdates', undefined, [502, '<html>'], [200, '<html>'], fail('CONSUMER_CONFLICT', { retry_after: 25 }),
    fail('DELIVERY_MODE_CONFLICT'), fail('RATE_LIMITED', { retry_after: 3 }));
  await until(fake, poller(client(fake, pauses), at43(), 'me', () => {}), () => fake.asked.length > 6);
  assert.deepEqual(new Set(places(fake).slice(0, 6)), new Set(['7 43']), 'the very same call again');
  assert.deepEqual(pauses.slice(3, 5), [25, 30]);
  assert.ok(pauses[5] >= 3 && pauses[5] <= 4, String(pauses));
});

test('the README has every code', () => {
  const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8');
  const table = readme.split('## What each error means for it')[1].split('\n# ')[0];
  const named = [...table.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name).filter((name) => !name.startsWith('SMEET_'));
  assert.deepEqual(new Set(named), new Set(Object.keys(CODES)));
});

test('a stop confirms what was stored', async (t) => {
  for (const [name, answers, last] of [['before the next poll', [], 1], ['after a poll that was refused', [fail('MAINTENANCE')], 2]]) {
    const fake = await new FakeSMeet(1).start(t);
    const { place } = store(t);
    const bot = poller(client(fake), place, 'me', () => { if (answers.length === 0) bot.stopping = true; });
    fake.at = (point) => {
      if (point !== 'asked getUpdates' || fake.asked.length !== 2 || answers.length === 0) return;
      fake.script('getUpdates', ...answers);
      bot.stop();
    };
    await bot.run();
    assert.deepEqual([asked(fake)[last].offset, asked(fake)[last].timeout, fake.position], ['2', 0, 2], name);
  }
});

test('a lost answer is asked for again with the same key', async (t) => {
  const fake = await new FakeSMeet(0).start(t);
  fake.script('sendMessage', undefined, [502, '<html>']);
  await work(client(fake))(text(43));
  assert.deepEqual(asked(fake, 'sendMessage').map(({ key }) => key), Array(3).fill('event-43:reply'));
  fake.script('sendMessage', undefined);
  await assert.rejects(client(fake).call('sendMessage', { chat_id: '1', text: 'x' }), { code: 'NO_ANSWER' },
    'without a key nobody knows whether it was done');
});

test('what cannot be read, and types that it does not know', async () => {
  const nobody = new Client('http://127.0.0.1:1', TOKEN);
  await assert.rejects(answer(nobody, text(1, { private: 'words' })), (error) => error instanceof Unreadable && !error.message.includes('private'));
  await answer(nobody, { update_id: '1', event_id: 'e', type: 'of_next_year' });
  for (const good of [text(1), { ...text(1), type: 'of_next_year' }, { ...text(1), type: 'constructor' }]) assert.equal(check(good), undefined);
  for (const bad of [text(1, 5), { ...text(1), message: undefined }, { ...text(1), event_id: null }, { ...text(1), type: 5 },
    { ...text(1), type: 'callback_query', callback_query: { data: 'x' } }]) assert.match(check(bad), /^[a-z_.]+ is no (string|object)$/);
});

test('addresses and tokens that cannot be right, and keys', () => {
  for (const [url, token] of [['ftp://x', 't'], ['x', 't'], ['http://u:p@x', 't'], ['http://x', ''], ['http://x', 'a b']]) {
    assert.throws(() => new Client(url, token), TypeError);
  }
  assert.equal(actionKey('e', 'reply'), 'e:reply');
  assert.match(actionKey('ё', 'reply'), /^sha256:[0-9a-f]{64}$/);
});

test('the echo bot answers, saves, then confirms, and moves aside what it cannot read', async (t) => {
  const path = join(folder(t), 'state.json');
  const fake = await new FakeSMeet(3).start(t);
  fake.updates[1] = text(2, 5);
  await until(fake, echoBot(client(fake), new State(path, 'b'), 'me'), () => fake.position === 4);
  assert.deepEqual(fake.sent, [['event-1:reply', 'Hello 1'], ['event-3:reply', 'Hello 3']]);
  assert.deepEqual(asked(fake, 'rejectUpdate').map(({ key, reason }) => [key, reason]),
    [['event-2:reject:2', "The bot can't read this update: message.text is no string"]]);
  assert.deepEqual({ ...new State(path, 'b') }, { path, bot: 'b', offset: '4', epoch: '1' });
  assert.equal(new State(path, 'another').offset, undefined);
});

test('rejectUpdate for what waits no longer, or was moved before a crash', async (t) => {
  for (const code of ['UPDATE_NOT_FOUND', 'IDEMPOTENCY_KEY_REUSED']) {
    const fake = await new FakeSMeet(2).start(t);
    fake.updates[0] = text(1, 5);
    fake.script('rejectUpdate', fail(code));
    await until(fake, poller(client(fake), store(t).place, 'me', () => {}), () => fake.position === 3);
    assert.equal(asked(fake, 'rejectUpdate').length, 1);
  }
});
