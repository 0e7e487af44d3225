import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Unreadable, answer, work } from './bot_logic.mjs';
import { State, echoBot } from './echo_bot.mjs';
import { FakeSMeet, TOKEN, fail, text } from './fake_smeet.mjs';
import { Inbox, NotNow, SetAside } from './inbox.mjs';
import { Place, poller } from './production_poller.mjs';
import { ApiError, Client, actionKey } from './smeet.mjs';

function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'poller-'));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

const client = (fake) => new Client(fake.url, TOKEN, async () => {}); // without real pauses

/** Runs a bot until done(), then stops it. */
async function until(fake, bot, done) {
  const running = bot.run();
  await Promise.race([fake.until(done), running]);
  bot.stop();
  await running;
}

const asked = (fake, name = 'getUpdates') => fake.asked.filter(([method]) => method === name).map(([, params, key]) => ({ ...params, key }));

test('the poller stores updates and place together, then confirms', async (t) => {
  const path = join(folder(t), 'store.jsonl');
  const fake = await new FakeSMeet(4).start(t);
  const inbox = new Inbox(path);
  t.after(() => inbox.close());
  const seen = [];
  fake.at = (point) => { if (point === 'asked getUpdates') seen.push(readFileSync(path, 'utf8')); };
  await until(fake, poller(client(fake), new Place(inbox, 'b'), 'me', () => {}), () => fake.position === 5);
  assert.deepEqual(asked(fake).slice(0, 3).map(({ epoch, offset }) => [epoch, offset]), [[undefined, undefined], ['1', '4'], ['1', '5']]);
  assert.match(seen[1], /event-3.*"offset":"4","epoch":"1"/s);
  const after = new Inbox(path);
  assert.deepEqual(after.place('b'), { offset: '5', epoch: '1' });
  assert.equal(after.first()[0], 'event-1');
  after.close();
});

test('a line that a crash cut is left out with its place', (t) => {
  const path = join(folder(t), 'store.jsonl');
  const inbox = new Inbox(path);
  inbox.take('b', [text(1)], '2', '1');
  inbox.close();
  appendFileSync(path, '{"batch":[{"event_id":"event-2","taken":1,"state":"waiting","body":"{}"}],"place":{"bot":"b","offs');
  const again = new Inbox(path);
  assert.deepEqual(again.place('b'), { offset: '2', epoch: '1' });
  assert.equal(again.take('b', [text(1), text(2), text(2)], '3', '1'), 1, 'what came again is stored once');
  assert.throws(() => again.place('c'), /another bot/);
  again.close();
});

test('every error that getUpdates can give', async (t) => {
  const fake = await new FakeSMeet(0).start(t);
  const place = { epoch: '7', offset: '43', save(offset, epoch) { Object.assign(this, { offset, epoch }); } };
  fake.script('getUpdates', undefined, [502, '<html>'], fail(503, 'MAINTENANCE', { retry_after: 1 }), fail(503, 'UNAVAILABLE'),
    fail(429, 'RATE_LIMITED', { retry_after: 1 }), fail(409, 'CONSUMER_CONFLICT', { retry_after: 2 }), fail(409, 'DELIVERY_MODE_CONFLICT'),
    fail(409, 'BOT_PAUSED'), fail(409, 'CURSOR_BEHIND', { confirmed_offset: '40' }), fail(400, 'OFFSET_NOT_ISSUED'));
  await until(fake, poller(client(fake), { ...place, take: () => 0 }, 'me', () => {}), () => fake.asked.length > 11);
  const calls = asked(fake).map(({ epoch, offset }) => `${epoch} ${offset}`);
  assert.deepEqual(new Set(calls.slice(0, 9)), new Set(['7 43']), 'the very same call again');
  assert.deepEqual(calls.slice(9, 11), ['7 40', '7 undefined']);
});

for (const [status, code] of [[401, 'UNAUTHORIZED'], [403, 'BOT_DISABLED'], [400, 'INVALID_REQUEST'], [404, 'METHOD_NOT_FOUND']]) {
  test(`${code} is for a person to mend`, async (t) => {
    const fake = await new FakeSMeet(1).start(t);
    fake.script('getUpdates', fail(status, code));
    await assert.rejects(poller(client(fake), {}, 'me', () => {}).run(), (error) => error instanceof ApiError && error.code === code);
  });
}

for (const [status, code, want] of [[404, 'CHAT_NOT_FOUND'], [404, 'UPDATE_NOT_FOUND'], [409, 'IDEMPOTENCY_KEY_REUSED'],
  [400, 'INVALID_REQUEST', SetAside], [413, 'REQUEST_TOO_LARGE', SetAside], [401, 'UNAUTHORIZED', NotNow], [403, 'BOT_DISABLED', NotNow]]) {
  test(`an answer that gets ${code}`, async (t) => {
    const fake = await new FakeSMeet(0).start(t);
    fake.script('sendMessage', fail(status, code));
    const doing = work(client(fake))(text(43));
    if (want) await assert.rejects(doing, want);
    else await doing;
  });
}

test('a lost answer is asked for again with the same key', async (t) => {
  const fake = await new FakeSMeet(0).start(t);
  fake.script('sendMessage', undefined, fail(503, 'UNAVAILABLE', { retry_after: 1 }), fail(429, 'RATE_LIMITED', { retry_after: 1 }));
  await work(client(fake))(text(43));
  assert.deepEqual(asked(fake, 'sendMessage').map(({ key }) => key), Array(4).fill('event-43:reply'));
  await assert.rejects(client(fake).call('sendMessage', { chat_id: '1', text: 'x' }).then(() => {
    fake.script('sendMessage', undefined);
    return client(fake).call('sendMessage', { chat_id: '1', text: 'x' });
  }), { code: 'NO_ANSWER' }, 'without a key nobody knows whether it was done');
});

test('what cannot be read, and types that it does not know', async () => {
  const nobody = new Client('http://127.0.0.1:1', TOKEN);
  await assert.rejects(answer(nobody, text(1, { private: 'words' })), (error) => error instanceof Unreadable && !error.message.includes('private'));
  await answer(nobody, { update_id: '1', event_id: 'e', type: 'of_next_year' });
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
  fake.script('rejectUpdate', [200, { ok: true, result: {} }]);
  await until(fake, echoBot(client(fake), new State(path, 'b'), 'me'), () => fake.position === 4);
  assert.deepEqual([...fake.sent.keys()], ['event-1:reply', 'event-3:reply']);
  const [rejected] = asked(fake, 'rejectUpdate');
  assert.equal(rejected.key, 'event-2:reject:2');
  assert.equal(rejected.reason, "The bot can't read this update: message.text is no string");
  assert.deepEqual({ ...new State(path, 'b') }, { path, bot: 'b', offset: '4', epoch: '1' });
  assert.equal(new State(path, 'another').offset, undefined);
});

// The program as its own process, killed with SIGKILL at every step, and started again.
const program = fileURLToPath(new URL('production_poller.mjs', import.meta.url));

function start(t, fake, store) {
  const env = { ...process.env, SMEET_URL: fake.url, SMEET_TOKEN: TOKEN, SMEET_STORE: store, SMEET_CONSUMER_ID: 'me' };
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  child.log = '';
  child.stderr.on('data', (part) => { child.log += part; });
  child.gone = once(child, 'exit');
  t.after(() => { if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL'); });
  return child;
}

for (const point of ['asked getUpdates', 'confirmed', 'given', 'asked sendMessage', 'sent', 'answered']) {
  for (const timeOf of [1, 2, 3]) {
    test(`killed at ${point} number ${timeOf}: every event is handled and none twice`, { timeout: 30_000 }, async (t) => {
      const store = join(folder(t), 'store.jsonl');
      let seen = 0;
      let killed = false;
      const fake = await new FakeSMeet(7, { at: async (where) => {
        if (where !== point || killed) return false;
        seen += 1;
        if (seen < timeOf) return false;
        killed = true;
        child.kill('SIGKILL');
        await child.gone;
        return true;
      } }).start(t);
      const child = start(t, fake, store);
      await fake.until(() => killed);
      await child.gone;
      const again = start(t, fake, store);
      await fake.until(() => fake.finished());
      again.kill('SIGTERM');
      assert.deepEqual(await again.gone, [0, null], again.log);
      assert.deepEqual([...fake.sent].sort(), Array.from({ length: 7 }, (_, i) => [`event-${i + 1}:reply`, [`Hello ${i + 1}`]]));
    });
  }
}

test('a wrong token is told in words, without it', async (t) => {
  const fake = await new FakeSMeet(1).start(t);
  fake.script('getUpdates', fail(401, 'UNAUTHORIZED'));
  const child = start(t, fake, join(folder(t), 'store.jsonl'));
  assert.deepEqual(await child.gone, [1, null]);
  assert.match(child.log, /take the current one from My bots/);
  assert.ok(!child.log.includes(TOKEN));
});
