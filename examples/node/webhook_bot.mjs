#!/usr/bin/env node
// A webhook receiver: it checks the signature, stores the update, answers, and works afterwards.
//
// The answer decides what becomes of an update, so each has one meaning here:
//   200  stored and synced, or stored before, or of a type that this bot doesn't know
//   400  signed by SMeet, but no update: it can never be handled (SMeet moves it to FAILED)
//   401  the signature doesn't match (SMeet pauses, nothing is lost)
//   413  longer than any update
//   422  an update that bot_logic's check() refuses for good (SMeet moves it to FAILED, the owner can retry it)
//   503  the store failed (SMeet sends it again)
import { readFileSync, realpathSync } from 'node:fs';
import { createServer as createPlainServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { fileURLToPath } from 'node:url';
import { check, work } from './bot_logic.mjs';
import { Inbox } from './inbox.mjs';
import { Client, log } from './smeet.mjs';
import { Worker } from './worker.mjs';

// snippet: verify
import { createHmac, timingSafeEqual } from 'node:crypto';

const TOLERANCE_SECONDS = 300;

/**
 * Tells whether X-SMeet-Signature (t=<unix seconds>,v1=<hex>) was made for this very body.
 * @param {string} secret the webhook secret as it was shown: never decode it
 * @param {string | undefined} header the header's value
 * @param {Buffer} body what came over the wire, before any JSON parsing
 * @param {number} now Date.now() / 1000
 */
export function verifySignature(secret, header, body, now) {
  const times = [];
  const signatures = [];
  for (const item of (header ?? '').split(',')) {
    const [name, ...value] = item.trim().split('=');
    if (name === 't') times.push(value.join('='));
    if (name === 'v1') signatures.push(value.join('='));
  }
  if (times.length !== 1 || !/^[0-9]{1,12}$/.test(times[0])) return false;
  if (Math.abs(now - Number(times[0])) > TOLERANCE_SECONDS) return false; // an old request, sent again?
  const expected = Buffer.from(createHmac('sha256', secret).update(`${times[0]}.`).update(body).digest('hex'));
  // There may be more than one v1, and any of them may match. timingSafeEqual takes the same time
  // wherever the first difference is.
  return signatures.map((value) => Buffer.from(value))
    .filter((given) => given.length === expected.length && timingSafeEqual(given, expected)).length > 0;
}
// snippet end

const MAX_BODY = 512 * 1024; // the largest update is about half of that
const DRAINED = 8 * 1024 * 1024; // of a longer body, so that its sender gets to read the answer
const TYPES = new Set(['message', 'message_edited', 'message_deleted', 'callback_query', 'chat_access_changed',
  'file_status_changed']);

/** The status for one request. */
function take(secret, header, body, store, problemOf) {
  if (!verifySignature(secret, header, body, Date.now() / 1000)) {
    log('a request with a wrong signature was refused');
    return 401;
  }
  let text, update;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    update = JSON.parse(text);
  } catch {
    update = null;
  }
  const { event_id: eventId, update_id: updateId, type } = update ?? {};
  if (![eventId, updateId, type].every((value) => typeof value === 'string' && /^[!-~]{1,255}$/.test(value))) {
    log('a signed request that is no update was refused for good');
    return 400;
  }
  if (!TYPES.has(type)) {
    log(`update ${updateId} has the type ${type}: ignored`);
    return 200;
  }
  const problem = problemOf(update);
  if (problem !== undefined) {
    log(`update ${updateId} was refused for good: ${problem}`);
    return 422;
  }
  let isNew;
  try {
    // One write that waits for the disk: SMeet sends a bot's updates one at a time, so nobody is held up.
    isNew = store(eventId, text);
  } catch (fault) {
    log(`update ${updateId} can't be stored: ${fault.code}`);
    return 503;
  }
  log(`update ${updateId} ${isNew ? 'stored' : 'came again'}`);
  return 200;
}

/**
 * A server that takes SMeet's requests at one path. store(eventId, body) puts an update where it
 * lasts, tells whether it is new, and throws if it can't. problemOf(update) tells why one can never be
 * handled. tls is {cert, key}; without it plain HTTP.
 */
export function createReceiver({ secret, path, store, tls, problemOf = () => undefined }) {
  if (!secret) throw new Error('without the webhook secret anybody could send updates');
  const onRequest = (request, response) => {
    const answer = (status, headers) => response.writeHead(status, { 'Content-Length': 0, ...headers }).end();
    const close = { Connection: 'close' };
    const address = request.url.split('?')[0];
    if (request.method === 'GET' && address === '/healthz') return answer(200, close);
    if (address !== path) return answer(404, close);
    if (request.method !== 'POST') return answer(405, close);
    const parts = [];
    let length = 0;
    request.on('data', (part) => {
      length += part.length;
      if (length <= MAX_BODY) parts.push(part);
      else if (length > DRAINED && !response.headersSent) answer(413, close);
    });
    request.on('end', () => {
      if (response.headersSent) return;
      if (length > MAX_BODY) answer(413, close);
      else answer(take(secret, request.headers['x-smeet-signature'], Buffer.concat(parts), store, problemOf));
    });
    request.on('error', () => log('a connection broke'));
  };
  const server = tls ? createSecureServer(tls, onRequest) : createPlainServer(onRequest);
  server.requestTimeout = 30_000;
  server.keepAliveTimeout = 75_000; // SMeet keeps a connection for 60 seconds
  return server;
}

function main(env, proxied) {
  const secret = (env.SMEET_WEBHOOK_SECRET ?? '').trim();
  const { SMEET_WEBHOOK_CERT: cert, SMEET_WEBHOOK_KEY: key } = env;
  const host = env.SMEET_WEBHOOK_HOST || (proxied ? '127.0.0.1' : undefined);
  const port = env.SMEET_WEBHOOK_PORT || '8443';
  const path = env.SMEET_WEBHOOK_PATH || '/smeet';
  const refuse = (why) => { log(why); process.exitCode = 1; };
  if (!secret) return refuse('Set SMEET_WEBHOOK_SECRET to the secret that the Connection screen showed.');
  if (!proxied && !(cert && key)) {
    return refuse('Set SMEET_WEBHOOK_CERT and SMEET_WEBHOOK_KEY to the files of the certificate and its key, '
      + 'or start with --behind-proxy where a proxy does HTTPS.');
  }
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) > 65535 || !path.startsWith('/')) {
    return refuse('SMEET_WEBHOOK_PORT is a number, SMEET_WEBHOOK_PATH begins with a slash.');
  }
  let inbox, worker, server, client;
  const store = (eventId, body) => {
    try {
      const isNew = inbox.store(eventId, body);
      if (isNew) setImmediate(() => worker.run()); // after the answer
      return isNew;
    } catch (fault) {
      if (fault.code === 'TAKEN_OVER') stop(fault); // better no answer than 503s, which use up an update's tries
      throw fault;
    }
  };
  let tidying;
  const stop = (fault) => {
    if (fault instanceof Error) refuse(`The store fails: ${fault.message}`);
    clearInterval(tidying);
    client?.stop();
    worker.end();
    server.close();
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), 1000).unref(); // what is being answered now goes out
  };
  const giveUp = (fault) => { refuse(`Can't start: ${fault.message}`); server?.close(); };
  try {
    const token = (env.SMEET_TOKEN ?? '').trim();
    client = token ? new Client(env.SMEET_URL || 'http://127.0.0.1:8080', token) : undefined;
    // Without a client updates are only logged, whatever is in them.
    server = createReceiver({ secret, path, store, problemOf: client && check,
      tls: proxied ? undefined : { cert: readFileSync(cert), key: readFileSync(key) } });
  } catch (fault) {
    return giveUp(fault);
  }
  server.once('error', giveUp);
  // The port first: a second copy, started by mistake, ends here and leaves the first one's file alone.
  server.listen(Number(port), host, () => {
    try {
      inbox = new Inbox(env.SMEET_WEBHOOK_STORE || './webhook_bot.jsonl');
    } catch (fault) {
      return giveUp(fault);
    }
    worker = new Worker(inbox, work(client));
    worker.run();
    tidying = inbox.tidyDaily();
    process.once('SIGTERM', stop).once('SIGINT', stop);
    log(`receiving at ${proxied ? 'http' : 'https'}://${host ?? '0.0.0.0'}:${server.address().port}${path}`);
  });
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  main(process.env, process.argv.includes('--behind-proxy'));
}
