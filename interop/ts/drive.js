// Calls the server with the official TypeScript client, in both eras at once, and fails on the first difference.
//
// Usage: drive.js URL [resumable]

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const PATIENCE = 10_000;

let checks = 0;

function check(actual, expected, what) {
    checks += 1;
    assert.deepEqual(actual, expected, what);
}

const text = result => result.content[0].text;

const [url, resumable] = [new URL(process.argv[2]), process.argv[3] === 'resumable'];

/** Several clients drive one server: what is theirs alone has a name of its own. */
const ownResource = () => `demo://item/${randomUUID()}`;

/** Settles when the condition holds, and fails if it never does. */
async function until(condition, what) {
    const end = Date.now() + PATIENCE;
    while (!(await condition())) {
        assert.ok(Date.now() < end, `in vain: ${what}`);
        await new Promise(resolve => setTimeout(resolve, 10));
    }
    checks += 1;
}

/** A client that answers whatever it is asked. */
function answering(mode) {
    const client = new Client(
        { name: 'interop', version: '1.0.0' },
        { capabilities: { elicitation: {}, sampling: {}, roots: {} }, versionNegotiation: { mode } }
    );
    client.setRequestHandler('elicitation/create', ({ params }) => {
        check(params.message, 'What is your name?', 'the question');
        return { action: 'accept', content: { name: 'Ada' } };
    });
    client.setRequestHandler('sampling/createMessage', ({ params }) => {
        check(params.maxTokens, 16, 'the limit of tokens');
        return { role: 'assistant', content: { type: 'text', text: 'hello' }, model: 'm' };
    });
    client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///home' }] }));
    return client;
}

async function connects(client) {
    check(client.getServerVersion().name, 'interop', "the server's name");
    check(client.getInstructions(), 'One of everything.', 'the instructions');
}

async function calls(client) {
    check((await client.listTools()).tools.length, 11, 'the number of tools');
    const crab = 'Grüße \u{1f980}';
    check(text(await client.callTool({ name: 'echo', arguments: { text: crab } })), crab, 'an echo');
    const failed = await client.callTool({ name: 'echo', arguments: { text: 5 } });
    check(failed.isError, true, 'bad arguments are reported in-band');
    await assert.rejects(client.callTool({ name: 'unknown' }), { code: -32602 }, 'an unknown tool is refused');
    const many = Array.from({ length: 50 }, (_, n) => client.callTool({ name: 'echo', arguments: { text: `${n}` } }));
    check((await Promise.all(many)).map(text).join(), [...many.keys()].join(), 'fifty calls at once');
}

async function reports(client) {
    const seen = [];
    await client.callTool({ name: 'progress' }, { onprogress: report => seen.push(report) });
    const reports = [1, 2, 3].map(progress => ({ progress, total: 3, message: 'working' }));
    check(seen, reports, 'progress');
}

/** In the envelope era each request says what it wants to hear. */
async function logsByRequest(client) {
    const logs = [];
    client.setNotificationHandler('notifications/message', ({ params }) => logs.push(params.data));
    await client.callTool({ name: 'log' });
    check(logs, [], 'no messages unless asked for');
    await client.callTool({ name: 'log', _meta: { [LOG_LEVEL]: 'info' } });
    check(logs, ['loud'], 'messages of the level asked for');
}

/** In the handshake era a session does. */
async function logsBySession(client) {
    const logs = [];
    client.setNotificationHandler('notifications/message', ({ params }) => logs.push(params.data));
    await client.setLoggingLevel('debug');
    await client.callTool({ name: 'log' });
    check(logs.splice(0), ['quiet', 'loud'], 'messages of every level');
    await client.setLoggingLevel('error');
    await client.callTool({ name: 'log' });
    check(logs, [], 'no messages below the level');
}

async function offers(client) {
    check((await client.listResources()).resources.length, 1, 'resources');
    check((await client.listResourceTemplates()).resourceTemplates.length, 1, 'templates');
    check((await client.readResource({ uri: 'demo://text' })).contents[0].text, 'hello', 'a text resource');
    check((await client.readResource({ uri: 'demo://item/QUJD' })).contents[0].blob, 'QUJD', 'a binary resource');
    await assert.rejects(client.readResource({ uri: 'demo://unknown' }), { code: -32602 }, 'an unknown resource');

    check((await client.listPrompts()).prompts.length, 1, 'prompts');
    const prompt = await client.getPrompt({ name: 'greeting', arguments: { name: 'Ada' } });
    check(prompt.messages[0].content.text, 'Greet Ada.', 'a prompt');
    const { completion } = await client.complete({
        ref: { type: 'ref/prompt', name: 'greeting' },
        argument: { name: 'name', value: 'A' }
    });
    check(completion.values, ['Ada', 'Alan'], 'a completion');
}

/** In the envelope era the rounds happen inside the call: the client answers and asks again. */
async function asks(client) {
    check(text(await client.callTool({ name: 'ask_user' })), 'accept Ada', 'elicitation');
    check(text(await client.callTool({ name: 'ask_model' })), 'hello', 'sampling');
    check(text(await client.callTool({ name: 'ask_roots' })), 'file:///home', 'roots');
}

async function makesRounds(client) {
    check(text(await client.callTool({ name: 'rounds' })), 'answers: 2', 'rounds with a sealed state');
}

async function listens(client) {
    const received = new Set();
    client.setNotificationHandler('notifications/tools/list_changed', () => void received.add('tools'));
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void received.add(params.uri));
    const watched = ownResource();
    const change = () => client.callTool({ name: 'change', arguments: { text: watched } });
    const filter = { toolsListChanged: true, resourceSubscriptions: [watched] };
    const subscription = await client.listen(filter);
    check(subscription.honoredFilter, filter, 'what the server agreed to report');
    await change();
    await until(() => received.size === 2, 'both changes arrive');
    await subscription.close();
    check(await subscription.closed, 'local', 'the end of the subscription');
    received.clear();
    await change();
    check(received.size, 0, 'nothing after the end');
}

/** In the handshake era changes arrive on the session's own stream. */
async function subscribes(client) {
    const received = new Set();
    const [watched, other] = [ownResource(), ownResource()];
    const change = uri => client.callTool({ name: 'change', arguments: { text: uri } });
    client.setNotificationHandler('notifications/tools/list_changed', () => void received.add('tools'));
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void received.add(params.uri));
    await client.subscribeResource({ uri: watched });
    await client.subscribeResource({ uri: other });
    await change(watched);
    await until(() => received.has('tools') && received.has(watched), 'both changes arrive');
    await client.unsubscribeResource({ uri: watched });
    received.clear();
    await change(watched);
    await change(other);
    await until(() => received.has(other), 'another subscription goes on');
    check(received.has(watched), false, 'nothing after the end of a subscription');
}

/** A call that is given up is dropped at the server, and the others go on. */
async function cancels(client) {
    const stop = new AbortController();
    const options = { signal: stop.signal, onprogress: () => stop.abort() };
    const own = { text: randomUUID() };
    await assert.rejects(client.callTool({ name: 'wait', arguments: own }, options), 'a call that was given up');
    const dropped = async () => text(await client.callTool({ name: 'cancelled', arguments: own })) === '1';
    await until(dropped, 'a cancelled call is dropped');
}

async function envelope() {
    const client = answering({ pin: '2026-07-28' });
    await client.connect(new StreamableHTTPClientTransport(url));
    check(client.getNegotiatedProtocolVersion(), '2026-07-28', 'the revision');
    for (const story of [connects, calls, reports, logsByRequest, offers, asks, makesRounds, listens, cancels]) {
        await story(client);
    }
    await client.close();
}

/** Remembers what was exchanged with the server. */
function remembering(exchanges) {
    return async (input, init) => {
        const response = await fetch(input, init);
        const cameBack = new Headers(init?.headers).has('last-event-id');
        exchanges.add(`${init?.method ?? 'GET'} ${response.status}${cameBack ? ' again' : ''}`);
        return response;
    };
}

async function session() {
    const exchanges = new Set();
    const client = answering('legacy');
    const transport = new StreamableHTTPClientTransport(url, { fetch: remembering(exchanges) });
    await client.connect(transport);
    check(client.getNegotiatedProtocolVersion(), '2025-11-25', 'the revision');
    await until(() => exchanges.has('GET 200'), "the server's own stream");
    for (const story of [connects, calls, reports, logsBySession, offers, asks, subscribes, cancels]) {
        await story(client);
    }
    await client.ping();
    check(text(await client.callTool({ name: 'leave' })), resumable ? 'come back' : 'stay', 'a stream let go');
    check(exchanges.has('GET 200 again'), resumable, 'a stream is resumed');

    const { sessionId } = transport;
    await transport.terminateSession();
    check(exchanges.has('DELETE 200'), true, 'the client ends its session');
    await client.close();
    const headers = {
        'mcp-session-id': sessionId,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream'
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    check((await fetch(url, { method: 'POST', headers, body })).status, 404, 'a session that is over');
}

await Promise.all([session(), envelope()]);
console.log(`TypeScript client over HTTP: ${checks} checks passed`);
