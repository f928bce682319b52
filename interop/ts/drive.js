// Drives the server with the official TypeScript client, in the envelope era, and fails on the first surprise.
//
// Usage: drive.js URL

import assert from 'node:assert/strict';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const PATIENCE = 10_000;

let checks = 0;

function check(actual, expected, what) {
    checks += 1;
    assert.deepEqual(actual, expected, what);
}

const text = result => result.content[0].text;

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
function answering() {
    const client = new Client(
        { name: 'interop', version: '1.0.0' },
        {
            capabilities: { elicitation: {}, sampling: {}, roots: {} },
            versionNegotiation: { mode: { pin: '2026-07-28' } }
        }
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
    check(client.getNegotiatedProtocolVersion(), '2026-07-28', 'the revision');
    check(client.getServerVersion().name, 'interop', "the server's name");
    check(client.getInstructions(), 'One of everything.', 'the instructions');
}

async function calls(client) {
    check((await client.listTools()).tools.length, 10, 'the number of tools');
    const crab = 'Grüße \u{1f980}';
    check(text(await client.callTool({ name: 'echo', arguments: { text: crab } })), crab, 'an echo');
    const failed = await client.callTool({ name: 'echo', arguments: { text: 5 } });
    check(failed.isError, true, 'bad arguments are told in-band');
    await assert.rejects(client.callTool({ name: 'nobody' }), { code: -32602 }, 'an unknown tool is refused');
    const many = Array.from({ length: 50 }, (_, n) => client.callTool({ name: 'echo', arguments: { text: `${n}` } }));
    check((await Promise.all(many)).map(text).join(), [...many.keys()].join(), 'fifty calls at once');
}

async function tells(client) {
    const seen = [];
    await client.callTool({ name: 'progress' }, { onprogress: report => seen.push(report) });
    const reports = [1, 2, 3].map(progress => ({ progress, total: 3, message: 'working' }));
    check(seen, reports, 'progress');

    const logs = [];
    client.setNotificationHandler('notifications/message', ({ params }) => logs.push(params.data));
    await client.callTool({ name: 'log' });
    check(logs, [], 'no messages unless asked for');
    await client.callTool({ name: 'log', _meta: { [LOG_LEVEL]: 'info' } });
    check(logs, ['loud'], 'messages of the level asked for');
}

async function offers(client) {
    check((await client.listResources()).resources.length, 1, 'resources');
    check((await client.listResourceTemplates()).resourceTemplates.length, 1, 'templates');
    check((await client.readResource({ uri: 'demo://text' })).contents[0].text, 'hello', 'a text resource');
    check((await client.readResource({ uri: 'demo://item/QUJD' })).contents[0].blob, 'QUJD', 'a binary resource');
    await assert.rejects(client.readResource({ uri: 'demo://nobody' }), { code: -32602 }, 'an unknown resource');

    check((await client.listPrompts()).prompts.length, 1, 'prompts');
    const prompt = await client.getPrompt({ name: 'greeting', arguments: { name: 'Ada' } });
    check(prompt.messages[0].content.text, 'Greet Ada.', 'a prompt');
    const { completion } = await client.complete({
        ref: { type: 'ref/prompt', name: 'greeting' },
        argument: { name: 'name', value: 'A' }
    });
    check(completion.values, ['Ada', 'Alan'], 'a completion');
}

/** The rounds happen inside the call: the client answers and asks again. */
async function asks(client) {
    check(text(await client.callTool({ name: 'ask_user' })), 'accept Ada', 'elicitation');
    check(text(await client.callTool({ name: 'ask_model' })), 'hello', 'sampling');
    check(text(await client.callTool({ name: 'ask_roots' })), 'file:///home', 'roots');
    check(text(await client.callTool({ name: 'rounds' })), 'answers: 2', 'rounds with a sealed state');
}

async function listens(client) {
    const told = new Set();
    client.setNotificationHandler('notifications/tools/list_changed', () => void told.add('tools'));
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void told.add(params.uri));
    const filter = { toolsListChanged: true, resourceSubscriptions: ['demo://text'] };
    const subscription = await client.listen(filter);
    check(subscription.honoredFilter, filter, 'what the server agreed to report');
    await client.callTool({ name: 'change' });
    await until(() => told.size === 2, 'both changes arrive');
    await subscription.close();
    check(await subscription.closed, 'local', 'the end of the subscription');
    told.clear();
    await client.callTool({ name: 'change' });
    check(told.size, 0, 'nothing after the end');
}

/** A call that is given up is dropped at the server, and the others go on. */
async function cancels(client) {
    const stop = new AbortController();
    const options = { signal: stop.signal, onprogress: () => stop.abort() };
    const before = Number(text(await client.callTool({ name: 'cancelled' })));
    await assert.rejects(client.callTool({ name: 'wait' }, options), 'a call that was given up');
    const dropped = async () => Number(text(await client.callTool({ name: 'cancelled' }))) === before + 1;
    await until(dropped, 'a cancelled call is dropped');
}

const client = answering();
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
for (const story of [connects, calls, tells, offers, asks, listens, cancels]) {
    await story(client);
}
await client.close();
console.log(`TypeScript client over HTTP: ${checks} checks passed`);
