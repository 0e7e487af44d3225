import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { text } from './fake_smeet.mjs';
import { Inbox } from './inbox.mjs';
import { NotNow, Worker } from './worker.mjs';

const program = fileURLToPath(new URL('inbox.mjs', import.meta.url));

/** A path in a folder of its own, which goes with the test. */
function storePath(t) {
  const folder = mkdtempSync(join(tmpdir(), 'inbox-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'store.jsonl');
}

function open(t, path = storePath(t)) {
  const inbox = new Inbox(path);
  t.after(() => inbox.close());
  return inbox;
}

const ofChat = (eventId, chat) => JSON.stringify({ update_id: '1', event_id: eventId, type: 'message', message: { chat: { id: chat } } });
const lines = (path) => readFileSync(path, 'utf8').split('\n').length - 1;

test('what a crash cut is left out, what is spoiled stops the start', (t) => {
  const path = storePath(t);
  const inbox = new Inbox(path);
  inbox.store('a', '{}');
  inbox.close();
  appendFileSync(path, '{"event_id":"b","taken":1,"state":"wai');
  const again = new Inbox(path);
  assert.equal(again.store('a', '{}'), false);
  assert.equal(again.store('b', '{}'), true);
  again.close();
  assert.equal(lines(path), 2);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  appendFileSync(path, '\0\0\0\0\n'); // a power cut: its length got to the disk, its content didn't
  new Inbox(path).close();
  assert.equal(lines(path), 2);
  appendFileSync(path, 'spoiled\n{}\n');
  assert.throws(() => new Inbox(path), /line 3 of .* isn't what this program writes/);
});

test('a batch that a crash cut is left out with its place', (t) => {
  const path = storePath(t);
  const inbox = new Inbox(path);
  inbox.take('b', 's', [text(1)], '2', '1');
  inbox.take('b', 's', [text(2), text(3)], '4', '1');
  inbox.close();
  const whole = readFileSync(path);
  const end = whole.lastIndexOf(10, whole.length - 2) + 1; // of the first batch
  for (const size of [end, end + 1, end + 40, whole.length - 30, whole.length - 1]) {
    rmSync(path);
    appendFileSync(path, whole.subarray(0, size));
    const again = new Inbox(path);
    assert.deepEqual(again.place('b', 's'), { offset: '2', epoch: '1' });
    assert.equal(again.store('event-1', '{}'), false);
    assert.equal(again.take('b', 's', [text(2), text(3)], '4', '1'), 2);
    again.close();
  }
});

test('whose store it is', (t) => {
  const inbox = open(t);
  assert.deepEqual(inbox.place('b', 's'), { offset: undefined, epoch: undefined });
  inbox.take('b', 's', [], '2', '1');
  assert.throws(() => inbox.place('c', 's'), /store of b/);
  assert.deepEqual(inbox.place('b', 'another'), {}, "another server's place confirms nothing here");
});

test('it forgets what is handled and too old', (t) => {
  const path = storePath(t);
  const inbox = new Inbox(path);
  for (const eventId of ['old', 'waits', 'aside']) inbox.store(eventId, `"${eventId}"`, 0);
  inbox.settle('old', 'handled');
  inbox.settle('aside', 'set aside', 'why');
  inbox.tidy(8 * 24 * 3600 + 1);
  inbox.close();
  const again = open(t, path);
  assert.deepEqual(['old', 'waits', 'aside'].map((eventId) => again.store(eventId, '{}')), [true, false, false]);
  assert.deepEqual(again.next(), ['waits', '"waits"', 0]);
  assert.deepEqual(again.aside(), [['aside', '"aside"', 'why']]);
});

test('the first of each chat is next, also after a restart', (t) => {
  const path = storePath(t);
  const first = new Inbox(path);
  for (const [eventId, chat] of [['a1', 'a'], ['a2', 'a'], ['b1', 'b']]) first.store(eventId, ofChat(eventId, chat));
  assert.equal(first.next(0)[0], 'a1');
  first.later('a1', 1, 100);
  first.close();
  const inbox = open(t, path);
  assert.equal(inbox.next(99)[0], 'b1', "a1 isn't due, and a2 is behind it");
  inbox.settle('b1', 'handled');
  assert.deepEqual([inbox.next(99), inbox.due()], [undefined, 100]);
  assert.deepEqual(inbox.next(100), ['a1', ofChat('a1', 'a'), 1]);
  inbox.settle('a1', 'set aside', 'why');
  assert.equal(inbox.next(0)[0], 'a2');
  assert.equal(inbox.retry(), 1);
  assert.deepEqual(inbox.next(0), ['a1', ofChat('a1', 'a'), 0], 'in its old place');
});

test('a second program takes the store over with all that the first has stored', (t) => {
  const path = storePath(t);
  const first = open(t, path);
  first.store('a', '{}');
  const real = first.store.bind(first);
  const second = open(t, path);
  assert.throws(() => real('b', '{}'), { code: 'TAKEN_OVER' });
  assert.throws(() => first.tidy(), { code: 'TAKEN_OVER' });
  assert.deepEqual(['a', 'b'].map((eventId) => second.store(eventId, '{}')), [false, true], 'b was refused, so it comes again');
  second.store('c', '{}');
  unlinkSync(path);
  assert.throws(() => second.store('d', '{}'), { code: 'TAKEN_OVER' }, 'a file without a name keeps nothing');
});

test('what the first stores while the second takes over is not lost', (t) => {
  const path = storePath(t);
  const first = open(t, path);
  first.store('a', '{}');
  class Slow extends Inbox { // between its look at the file and its own
    tidy(now) {
      first.store('b', '{}');
      super.tidy(now);
    }
  }
  const second = new Slow(path);
  t.after(() => second.close());
  assert.throws(() => first.store('c', '{}'), { code: 'TAKEN_OVER' });
  assert.deepEqual(['a', 'b', 'c'].map((eventId) => second.store(eventId, '{}')), [false, false, true]);
  second.close();
  assert.equal(open(t, path).store('b', '{}'), false);
});

test('a person lists what was set aside and lets it be tried again', (t) => {
  const path = storePath(t);
  const inbox = open(t, path);
  inbox.take('b', 's', [text(1, 'private'), text(2)], '3', '7');
  inbox.settle('event-1', 'set aside', 'TypeError, 5 times');
  assert.equal(execFileSync(process.execPath, [program, path], { encoding: 'utf8' }), 'event-1  message 1  TypeError, 5 times\n');
  inbox.store('c', '{}'); // a look takes nothing over
  execFileSync(process.execPath, [program, path, '--retry']);
  assert.deepEqual([open(t, path).next()[0], new Inbox(path).aside()], ['event-1', []]);
  for (const wrong of [[], [path, '--all'], [`${path}x`]]) {
    assert.throws(() => execFileSync(process.execPath, [program, ...wrong], { stdio: 'ignore' }), { status: 2 });
  }
});

/** A handler that keeps what it is called with, and fails on some. */
function failing(calls, ...which) {
  return async ({ event_id: eventId }) => {
    calls.push(eventId);
    if (which.includes(eventId)) throw new Error('private');
  };
}

test('the worker handles in order, and sets aside what always fails', async (t) => {
  const inbox = open(t);
  for (const eventId of ['a', 'b', 'c']) inbox.store(eventId, ofChat(eventId, 'one'));
  const calls = [];
  await new Worker(inbox, failing(calls, 'b'), 0.001).run();
  assert.deepEqual(calls, ['a', 'b', 'b', 'b', 'b', 'b', 'c']);
  assert.deepEqual(inbox.aside().map(([eventId, , reason]) => [eventId, reason]), [['b', 'Error, 5 times']]);
  assert.equal(inbox.next(), undefined);
});

test('while one chat waits the others go on', { timeout: 30_000 }, async (t) => {
  const inbox = open(t);
  for (const [eventId, chat] of [['a1', 'a'], ['a2', 'a'], ['b1', 'b']]) inbox.store(eventId, ofChat(eventId, chat));
  const calls = [];
  let handled = () => {};
  const handler = failing(calls, 'a1');
  const worker = new Worker(inbox, async (update) => { handled(update.event_id); await handler(update); }, 1000);
  const running = worker.run();
  await new Promise((resolve) => { handled = (eventId) => { if (eventId === 'b1') setImmediate(resolve); }; });
  inbox.store('b2', ofChat('b2', 'b'));
  await new Promise((resolve) => { handled = (eventId) => { if (eventId === 'b2') setImmediate(resolve); }; worker.run(); });
  await worker.end();
  await running;
  assert.deepEqual(calls, ['a1', 'b1', 'b2']);
  assert.equal(inbox.next(Number.MAX_SAFE_INTEGER)[0], 'a1');
});

test('a restart goes on counting', async (t) => {
  const inbox = open(t);
  inbox.store('a', ofChat('a', 'a'));
  inbox.later('a', 4, 0);
  await new Worker(inbox, failing([], 'a'), 1000).run();
  assert.equal(inbox.aside().length, 1);
});

test('not now holds everything and sets nothing aside', async (t) => {
  const inbox = open(t);
  for (const eventId of ['a', 'b']) inbox.store(eventId, ofChat(eventId, eventId));
  const calls = [];
  await new Worker(inbox, async ({ event_id: eventId }) => {
    calls.push(eventId);
    if (calls.length < 8) throw new NotNow('the token is wrong');
  }, 0).run();
  assert.deepEqual(calls, [...Array(8).fill('a'), 'b']);
  assert.deepEqual(inbox.aside(), []);
});

test('a store that fails for a while', async (t) => {
  const inbox = open(t);
  inbox.store('a', ofChat('a', 'a'));
  const settle = inbox.settle.bind(inbox);
  let failures = 0;
  inbox.settle = (...rest) => {
    if ((failures += 1) < 3) throw new Error('disk full');
    settle(...rest);
  };
  const calls = [];
  await new Worker(inbox, failing(calls), 0).run();
  assert.deepEqual([calls, inbox.next()], [['a', 'a', 'a'], undefined]);
});

test('end() ends its pause too', async (t) => {
  const inbox = open(t);
  inbox.store('a', ofChat('a', 'a'));
  const worker = new Worker(inbox, async () => { setImmediate(() => worker.end()); throw new Error('text'); }, 1000);
  await worker.run();
  assert.equal(inbox.next(Number.MAX_SAFE_INTEGER)[0], 'a');
});
