import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Inbox } from './inbox.mjs';
import { createReceiver, verifySignature } from './webhook_bot.mjs';

const vectors = JSON.parse(readFileSync(new URL('../testdata/signature.json', import.meta.url), 'utf8'));
const seconds = () => Math.floor(Date.now() / 1000);

function sign(body, t = seconds(), secret = vectors.secret) {
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex')}`;
}

function update(eventId, type = 'message', fields = {}) {
  return JSON.stringify({ update_id: '1', event_id: eventId, type, ...fields });
}

/** A path in a folder of its own, which goes with the test. */
function storePath(t) {
  const folder = mkdtempSync(join(tmpdir(), 'webhook-bot-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'store.jsonl');
}

/** A receiver on loopback: post() gives the status, stored the new events. */
async function start(t, path = storePath(t)) {
  const rig = { path, stored: [], inbox: new Inbox(path) };
  const server = createReceiver({ secret: vectors.secret, path: '/hook', store: (eventId, body) => {
    const isNew = rig.inbox.store(eventId, body);
    if (isNew) rig.stored.push([eventId, body]);
    return isNew;
  }, problemOf: (update) => (update.event_id === 'bad' ? 'it is bad' : undefined) });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  rig.post = (body, signature = sign(body), { path: address = '/hook', method = 'POST' } = {}) => new Promise((
    resolve, reject) => {
    const headers = { 'X-SMeet-Signature': signature, 'Content-Length': Buffer.byteLength(body) };
    request({ port: server.address().port, path: address, method, headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    }).on('error', reject).end(body);
  });
  rig.stop = () => new Promise((resolve) => {
    rig.inbox.close();
    server.closeAllConnections();
    server.close(resolve);
  });
  t.after(rig.stop);
  return rig;
}

test('the vector', () => {
  assert.equal(sign(vectors.body, vectors.t), vectors.header);
  assert.equal(verifySignature(vectors.secret, vectors.header, Buffer.from(vectors.body), vectors.t), true);
});

test('signatures', async (t) => {
  for (const { name, secret, header, body, now, valid } of vectors.cases) {
    await t.test(name, () => assert.equal(verifySignature(secret, header, Buffer.from(body), now), valid));
  }
  await t.test('no header', () => assert.equal(verifySignature(vectors.secret, undefined, Buffer.from(''), 0), false));
});

test('a good request is stored before the answer', async (t) => {
  const rig = await start(t);
  assert.equal(await rig.post(vectors.body), 200);
  assert.deepEqual(rig.stored, [[JSON.parse(vectors.body).event_id, vectors.body]]);
  assert.deepEqual(new Inbox(rig.path, undefined, true).next(), [...rig.stored[0], 0]);
});

test('a wrong signature', async (t) => {
  const rig = await start(t);
  for (const signature of ['', sign(vectors.body, seconds(), 'another'), sign(`${vectors.body}\n`),
    sign(vectors.body, seconds() - 400)]) {
    assert.equal(await rig.post(vectors.body, signature), 401);
  }
  assert.equal(await rig.post('{', 't=1,v1=0'), 401);
  assert.deepEqual(rig.stored, []);
});

test('a duplicate, and a restart', async (t) => {
  const rig = await start(t);
  assert.deepEqual([await rig.post(vectors.body), await rig.post(vectors.body)], [200, 200]);
  assert.equal(rig.stored.length, 1);
  rig.inbox.settle(rig.stored[0][0], 'handled');
  await rig.stop();
  const next = await start(t, rig.path);
  assert.equal(await next.post(vectors.body), 200);
  assert.deepEqual([next.stored, next.inbox.next()], [[], undefined]);
});

test('unknown types are ignored', async (t) => {
  const rig = await start(t);
  assert.deepEqual([await rig.post(update('a', 'of_a_later_version')), await rig.post(update('b', 'test'))], [200, 200]);
  assert.deepEqual(rig.stored, []);
});

test('what can never be handled', async (t) => {
  const rig = await start(t);
  for (const body of ['', '{', '[]', 'null', '"x"', '{}', Buffer.from([0xff]), update(''), update('a\n'),
    '['.repeat(100_000), '{"update_id":1,"event_id":"a","type":"message"}', '\ufeff{}']) {
    assert.equal(await rig.post(body), 400, String(body).slice(0, 60));
  }
});

test('what the bot can never handle', async (t) => {
  const rig = await start(t);
  assert.deepEqual([await rig.post(update('bad')), await rig.post(update('good')), await rig.post(update('bad', 'of_a_later_version'))], [422, 200, 200]);
  assert.deepEqual(rig.stored.map(([eventId]) => eventId), ['good']);
});

test('sizes and addresses', async (t) => {
  const rig = await start(t);
  assert.equal(await rig.post(update('a', 'message', { text: 'x'.repeat(512 * 1024) })), 413);
  assert.equal(await rig.post(update('b', 'message', { text: 'x'.repeat(512 * 1024 - 200) })), 200);
  assert.equal(await rig.post(vectors.body, undefined, { path: '/' }), 404);
  assert.equal(await rig.post('', '', { method: 'GET' }), 405);
  assert.equal(await rig.post('', '', { method: 'GET', path: '/healthz' }), 200);
  assert.deepEqual(rig.stored.map(([eventId]) => eventId), ['b']);
});

test('a store that fails', async (t) => {
  const rig = await start(t);
  rig.inbox.close();
  assert.equal(await rig.post(vectors.body), 503);
  rig.inbox = new Inbox(rig.path);
  assert.equal(await rig.post(vectors.body), 200);
});

test('without a secret nothing starts', async (t) => {
  assert.throws(() => createReceiver({ secret: '', path: '/', store: () => true }));
  const program = fileURLToPath(new URL('webhook_bot.mjs', import.meta.url));
  const secret = vectors.secret;
  for (const [word, flags, env] of [
    ['SMEET_WEBHOOK_SECRET', ['--behind-proxy'], {}],
    ['SMEET_WEBHOOK_SECRET', ['--behind-proxy'], { SMEET_WEBHOOK_SECRET: ' \n' }],
    ['SMEET_WEBHOOK_CERT', [], { SMEET_WEBHOOK_SECRET: secret }],
    ['SMEET_WEBHOOK_PATH', ['--behind-proxy'], { SMEET_WEBHOOK_SECRET: secret, SMEET_WEBHOOK_PATH: 'x' }],
    ["Can't start", [], { SMEET_WEBHOOK_SECRET: secret, SMEET_WEBHOOK_CERT: '/none', SMEET_WEBHOOK_KEY: '/none' }],
  ]) {
    const run = promisify(execFile)(process.execPath, [program, ...flags], { timeout: 20_000,
      env: { PATH: process.env.PATH, SMEET_WEBHOOK_STORE: storePath(t), ...env } });
    await assert.rejects(run, (ended) => {
      assert.equal(ended.code, 1);
      assert.deepEqual([ended.stderr.includes(word), ended.stderr.includes(secret)], [true, false], ended.stderr);
      return true;
    });
  }
});
