// Calls a server whose tools run as tasks with the official TypeScript package for tasks: the experiment of 2025-11-25 and
// the extension of 2026-07-28, at once. Fails on the first difference.
//
// Usage: tasks.js URL

import assert from 'node:assert/strict';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
    createTaskSessionFromClient,
    resultFromTaskOutcome,
    toolDeclarationFromMcpTool
} from '@modelcontextprotocol/ext-tasks/client';

const ENVELOPE = '2026-07-28';
const PATIENCE = 10_000;
const INFO = { name: 'interop', version: '1.0.0' };
const CAPABILITIES = { elicitation: {} };

const url = new URL(process.argv[2]);
let checks = 0;

function check(actual, expected, what) {
    checks += 1;
    assert.deepEqual(actual, expected, what);
}

const text = result => result.content[0].text;

/** Fails instead of waiting for ever. */
function within(promise, what) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`in vain: ${what}`)), PATIENCE);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Sends a request of the envelope era: the package frames it, and leaves the transport to its host. */
async function dispatch({ method, params }, options) {
    const name = params.name ?? params.taskId;
    const response = await fetch(url, {
        method: 'POST',
        headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            'mcp-protocol-version': ENVELOPE,
            'mcp-method': method,
            'mcp-name': name
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: (dispatch.last = (dispatch.last ?? 0) + 1), method, params }),
        signal: options?.signal
    });
    const body = await response.text();
    const isStream = response.headers.get('content-type').startsWith('text/event-stream');
    const messages = isStream
        ? [...body.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data))
        : [JSON.parse(body)];
    const { error, result } = messages.find(message => 'id' in message);
    return error ? { kind: 'error', error } : { kind: 'result', result };
}

/** A session that answers every question with yes. */
async function session(mode, raw) {
    const client = new Client(INFO, { capabilities: CAPABILITIES, versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(url));
    const { tools } = await client.listTools();
    const declared = new Map(tools.map(tool => [tool.name, toolDeclarationFromMcpTool(tool)]));
    const asked = [];
    const tasks = createTaskSessionFromClient(client, {
        endpointId: 'interop',
        tools: { currentTool: name => declared.get(name) },
        onInputRequest: async ({ kind, params }, { scope }) => {
            asked.push(`${scope} ${kind}: ${params.message}`);
            return { action: 'accept', content: { sure: true } };
        },
        ...raw
    });
    return { client, tasks, asked };
}

async function settled(execution, what) {
    return resultFromTaskOutcome((await within(execution.settle(), what)).outcome);
}

/** What both generations of tasks show. `prefer` asks for a task where the client decides. */
async function story({ tasks, asked }, prefer, another) {
    const call = (name, args) => within(tasks.callTool(name, args, prefer), name);
    const greeted = await within(tasks.callTool('greet', { name: 'Ada' }), 'greet');
    check(greeted.kind, 'immediate', 'a plain tool');
    check(text(await settled(greeted, 'greet')), 'Hello, Ada!', 'its result');

    const rendered = await call('render', {});
    check(rendered.kind, 'task', 'a tool that waits');
    const messages = [];
    const onEvent = event => void (event.type === 'task' && messages.push(event.task.statusMessage));
    const { outcome } = await within(rendered.settle({ onEvent }), 'render');
    check(text(resultFromTaskOutcome(outcome)), 'rendered', 'its result');
    check(messages.includes('drawing'), true, 'its status text');
    check(text(await settled(await call('migrate', {}), 'migrate')), 'migrated', 'a tool that requires tasks');

    check(text(await settled(await call('publish', {}), 'publish')), 'published: true', 'a task that asks');
    check(asked, ['task elicitation: Publish it?'], 'its question');

    const broken = await call('fail', {});
    const { outcome: failed } = await within(broken.settle(), 'fail');
    check([failed.status, failed.error.message], ['failed', 'The press is broken'], 'a protocol error');

    // Left alone, and taken up again by its reference, in another session.
    const started = await call('render', {});
    const reference = started.serializeReference();
    const other = await another();
    const resumed = await within(other.tasks.resumeTask(reference), 'resume');
    check(text(await settled(resumed, 'render')), 'rendered', 'a task that another session has started');
    await other.tasks.close();
    await other.client.close();

    const waiting = await call('wait', {});
    await within(waiting.cancel(), 'the cancellation');
    const { outcome: cancelled } = await within(waiting.settle(), 'wait');
    check(cancelled.status, 'cancelled', 'a cancelled task');
    await assert.rejects(within(tasks.task('never').snapshot(), 'never'), 'an unknown task');
    checks += 1;
}

async function extension() {
    const framing = { protocolVersion: ENVELOPE, clientInfo: INFO, clientCapabilities: CAPABILITIES };
    const open = () => session({ pin: ENVELOPE }, { rawDispatch: dispatch, v2RequestFraming: framing });
    const opened = await open();
    await story(opened, {}, open);
    const refused = await settled(await opened.tasks.callTool('refuse', {}), 'refuse');
    check([refused.isError, text(refused)], [true, 'There is no paper.'], 'a tool error is a result');
    await opened.tasks.close();
    await opened.client.close();
}

async function experiment() {
    const prefer = { task: { preference: 'prefer' } };
    const open = () => session('legacy', {});
    const opened = await open();
    check(opened.client.getNegotiatedProtocolVersion(), '2025-11-25', 'the revision');
    await story(opened, prefer, open);
    const refused = await opened.tasks.callTool('refuse', {}, prefer);
    const { outcome } = await within(refused.settle(), 'refuse');
    check(outcome.status, 'failed', 'a tool error fails the task');
    await opened.tasks.close();
    await opened.client.close();
}

await Promise.all([extension(), experiment()]);
console.log(`TypeScript package for tasks over HTTP: ${checks} checks passed`);
