// The durable poller as its own process, killed with SIGKILL at every step, and started again.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FakeSMeet, TOKEN, fail, text } from './fake_smeet.mjs';
import { Inbox } from './inbox.mjs';

const program = fileURLToPath(new URL('production_poller.mjs', import.meta.url));
const UPDATES = 7;
const everything = Array.from({ length: UPDATES }, (_, i) => [`event-${i + 1}:reply`, `Hello ${i + 1}`]);

function storePath(t) {
  const path = mkdtempSync(join(tmpdir(), 'crash-'));
  t.after(() => rmSync(path, { recursive: true }));
  return join(path, 'store.jsonl');
}

function start(t, fake, store) {
  const env = { ...process.env, SMEET_URL: fake.url, SMEET_TOKEN: TOKEN, SMEET_STORE: store, SMEET_CONSUMER_ID: 'me' };
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  child.log = '';
  child.stderr.on('data', (part) => { child.log += part; });
  child.gone = once(child, 'close');
  t.after(() => { if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL'); });
  return child;
}

const isDone = (fake) => fake.isConfirmed() && fake.sent.length >= UPDATES;

/** Starts it once more and waits until all is confirmed and answered, in order and once. */
async function everythingOnce(t, fake, store) {
  const before = fake.asked.length;
  const again = start(t, fake, store);
  await fake.until(() => isDone(fake) && fake.asked.length > before); // it runs, so it knows what SIGTERM means
  again.kill('SIGTERM');
  assert.deepEqual(await again.gone, [0, null], again.log);
  assert.ok(!again.log.includes(TOKEN));
  assert.deepEqual(fake.sent, everything);
  const inbox = new Inbox(store, undefined, true);
  assert.deepEqual([everything.filter(([key]) => inbox.store(key.split(':')[0], '{}')), inbox.aside()], [[], []], 'all are known');
}

for (const point of ['asked getUpdates', 'confirmed', 'given', 'asked sendMessage', 'sent', 'answered']) {
  for (const timeOf of [1, 2, 3]) {
    test(`killed at ${point} number ${timeOf}: every event is handled and none twice`, { timeout: 60_000 }, async (t) => {
      const store = storePath(t);
      let seen = 0;
      let isKilled = false;
      const fake = await new FakeSMeet(UPDATES, { at: async (where) => {
        if (where !== point || isKilled) return false;
        seen += 1;
        if (seen < timeOf) return false;
        isKilled = true;
        child.kill('SIGKILL');
        await child.gone;
        return true;
      } }).start(t);
      const child = start(t, fake, store);
      await fake.until(() => isKilled);
      await child.gone;
      await everythingOnce(t, fake, store);
    });
  }
}

test('killed again and again, at whatever call it is', { timeout: 60_000 }, async (t) => {
  const store = storePath(t);
  let calls = 0;
  let child;
  let kills = 0;
  const fake = await new FakeSMeet(UPDATES, { limit: 2, at: async (where) => {
    if (!where.startsWith('asked') || kills === 8) return false;
    calls += 1;
    if (calls % 3 > 0) return false;
    kills += 1;
    child.kill('SIGKILL');
    await child.gone;
    return true;
  } }).start(t);
  while (kills < 8 && !isDone(fake)) {
    child = start(t, fake, store);
    await Promise.race([child.gone, fake.until(() => isDone(fake))]);
  }
  assert.ok(kills > 2, `it was killed ${kills} times`);
  child.kill('SIGKILL');
  await child.gone;
  await everythingOnce(t, fake, store);
});

test("what it cannot read is the owner's, and the owner's Retry is answered", { timeout: 60_000 }, async (t) => {
  const fake = await new FakeSMeet(2).start(t);
  fake.updates[0] = text(1, 5);
  const child = start(t, fake, storePath(t));
  await fake.until(() => fake.isConfirmed() && fake.sent.length === 1);
  assert.deepEqual([...fake.failed], ['1']);
  fake.writeEvent({ ...text(1), replay_of_update_id: '1' }); // after a fix
  await fake.until(() => fake.sent.length === 2);
  fake.writeEvent(text(2)); // one that was answered: nothing more
  await fake.until(() => fake.isConfirmed());
  child.kill('SIGTERM');
  assert.deepEqual(await child.gone, [0, null], child.log);
  assert.deepEqual(fake.sent, [everything[1], everything[0]]);
});

test('a second copy takes the store over, and the first stores and confirms nothing more', { timeout: 60_000 }, async (t) => {
  const store = storePath(t);
  const fake = await new FakeSMeet(1).start(t);
  const first = start(t, fake, store);
  await fake.until(() => fake.isConfirmed() && fake.sent.length === 1);
  const elsewhere = await new FakeSMeet(0).start(t); // so that the two don't share a lease
  const second = start(t, elsewhere, store);
  await elsewhere.until(() => elsewhere.asked.some(([method]) => method === 'getUpdates'));
  fake.writeEvent(text(2));
  assert.deepEqual(await first.gone, [1, null], first.log);
  assert.match(first.log, /another program has taken it over/);
  assert.equal(fake.position, 2, 'it is not confirmed');
  second.kill('SIGTERM');
  assert.deepEqual(await second.gone, [0, null], second.log);
});

test('what a person has to mend is told in words, without the token', { timeout: 60_000 }, async (t) => {
  const fake = await new FakeSMeet(1).start(t);
  fake.script('getUpdates', fail('UNAUTHORIZED'));
  const child = start(t, fake, storePath(t));
  assert.deepEqual(await child.gone, [1, null]);
  assert.match(child.log, /take the current one from My bots/);
  assert.ok(!child.log.includes(TOKEN));
  const wrong = start(t, { url: 'host' }, storePath(t));
  assert.deepEqual(await wrong.gone, [1, null]);
  assert.match(wrong.log, /Set SMEET_TOKEN and SMEET_URL/);
});
