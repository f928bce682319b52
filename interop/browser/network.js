// What a browser has sent, from the log of its own network stack: requests of every kind, WebSockets, connections and names
// that were resolved. A request that a policy refuses never reaches the stack, so it is not in the log. Nor is WebRTC, which
// has a stack of its own and which no policy of Chromium refuses.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { launch } from './browser.js';

/** A site that does not exist: a request for it must be in the log, or the log proves nothing. */
const CONTROL = 'control.invalid';

/** Address to which Chromium connects a UDP socket, without sending anything, to find out whether it has IPv6. */
const IPV6_PROBE = '[2001:4860:4860::8888]:443';

const LOOPBACK = /^(\[::1\]|127\.0\.0\.1|localhost|::1)$/;

/** Runs `use` in a browser of its own. Then fails on each request that is not for one of the origins that `use` returns. */
export async function watched(what, use) {
    const folder = await mkdtemp(join(tmpdir(), 'duplexer-network-'));
    const file = join(folder, 'log.json');
    const browser = await launch([`--log-net-log=${file}`]);
    let allowed;
    try {
        const page = await browser.newPage();
        await page.goto(`http://${CONTROL}/`).catch(() => {});
        await page.close();
        allowed = new Set(await use(browser));
    } finally {
        // The log is complete once the browser has ended.
        await browser.close();
    }
    const { urls, hosts, addresses } = read(JSON.parse(await readFile(file, 'utf8')));
    await rm(folder, { recursive: true });
    assert.ok(urls.delete(`http://${CONTROL}/`) && hosts.delete(CONTROL), 'the log shows what is sent');
    assert.ok([...allowed].every(origin => [...urls].some(url => url.startsWith(`${origin}/`))), 'each origin was used');
    assert.deepEqual([...urls].filter(url => !allowed.has(new URL(url).origin.replace(/^ws/, 'http'))), [], `${what}: requests to other origins`);
    assert.deepEqual([...hosts].filter(host => !LOOPBACK.test(host)), [], `${what}: names that were resolved`);
    assert.deepEqual([...addresses].filter(address => address !== IPV6_PROBE && !LOOPBACK.test(address.replace(/:\d+$/, ''))), [], `${what}: connections`);
}

/** Returns the URLs, the names of hosts and the addresses of a log. */
function read({ constants, events }) {
    const names = new Map(Object.entries(constants.logEventTypes).map(([name, number]) => [number, name]));
    const [urls, hosts, addresses] = [new Set(), new Set(), new Set()];
    for (const { type, params = {} } of events) {
        const name = names.get(type) ?? '';
        if (name.startsWith('URL_REQUEST') && /^(https?|wss?):/.test(params.url ?? '')) urls.add(params.url);
        if (name.startsWith('HOST_RESOLVER') && params.host) hosts.add(params.host.replace(/^\w+:\/\//, '').replace(/:\d+$/, ''));
        if (/^(TCP_CONNECT|UDP_CONNECT|UDP_BYTES_SENT)/.test(name)) for (const address of [params.address, params.remote_address]) if (address) addresses.add(address);
    }
    return { urls, hosts, addresses };
}
