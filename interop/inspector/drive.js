// Inspects the server with the MCP Inspector, as a user at a terminal does, and fails on the first difference.
//
// Usage: drive.js PROGRAM URL    the same server over its standard streams and over HTTP

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const inspector = fileURLToPath(
    new URL('node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url)
);

let checks = 0;

function check(actual, expected, what) {
    checks += 1;
    assert.deepEqual(actual, expected, what);
}

/** What it says about one method of the server, or why it failed. The inspector keeps notes in the home folder. */
function inspect(home, target, method, ...options) {
    const line = [inspector, '--cli', target, '--method', method, '--format', 'json', '--quiet', ...options];
    return new Promise(resolve => {
        execFile(process.execPath, line, { env: { ...process.env, HOME: home }, timeout: 60_000 }, (failure, out, err) => {
            resolve(failure ? { failure: `${err}${out}` } : JSON.parse(out));
        });
    });
}

async function looksAt(home, target) {
    const ask = async (method, ...options) => {
        const { result, failure } = await inspect(home, target, method, ...options);
        assert.equal(failure, undefined, `${method} of ${target}`);
        return result;
    };
    const call = (name, ...options) => ask('tools/call', '--tool-name', name, ...options);

    const opened = await ask('initialize');
    check(opened.protocolVersion, '2025-11-25', 'the revision');
    check(opened.serverInfo.name, 'interop', "the server's name");
    check(opened.instructions, 'One of everything.', 'the instructions');

    check((await ask('tools/list', '--strict')).tools.length, 11, 'the number of tools');
    const echo = await call('echo', '--tool-arg', 'text=Grüße \u{1f980}');
    check(echo.content[0].text, 'Grüße \u{1f980}', 'an echo');
    check((await call('progress')).content[0].text, 'done', 'a call that tells on its way');
    const { failure } = await inspect(home, target, 'tools/call', '--tool-name', 'unknown');
    check(failure?.includes('unknown'), true, 'an unknown tool is refused');

    check((await ask('resources/list')).resources[0].uri, 'demo://text', 'resources');
    check((await ask('resources/templates/list')).resourceTemplates.length, 1, 'templates');
    check((await ask('resources/read', '--uri', 'demo://text')).contents[0].text, 'hello', 'a resource');

    check((await ask('prompts/list')).prompts[0].name, 'greeting', 'prompts');
    const prompt = await ask('prompts/get', '--prompt-name', 'greeting', '--prompt-args', 'name=Ada');
    check(prompt.messages[0].content.text, 'Greet Ada.', 'a prompt');
    await ask('logging/setLevel', '--log-level', 'debug');

    const { protocolVersion } = await ask('initialize', '--protocol-era', 'modern');
    check(protocolVersion, '2026-07-28', 'the revision of the other era');
}

const home = await mkdtemp(join(tmpdir(), 'inspector-'));
try {
    await Promise.all(process.argv.slice(2, 4).map(target => looksAt(home, target)));
} finally {
    await rm(home, { recursive: true });
}
console.log(`MCP Inspector over stdio and HTTP: ${checks} checks passed`);
