// The view of the demo in another host: the web client of the pinned official Inspector.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { start } from './servers.js';

const inspector = fileURLToPath(
    new URL('../inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url)
);

function freePort() {
    return new Promise(resolve => {
        const probe = createServer().listen(0, '127.0.0.1', () => {
            const { port } = probe.address();
            probe.close(() => resolve(String(port)));
        });
    });
}

/** Starts the official Inspector and waits for the address that it prints. */
async function launched(home, url) {
    const ports = { CLIENT_PORT: await freePort(), MCP_SANDBOX_PORT: await freePort(), MCP_APP_ORIGIN_PORT: await freePort() };
    const environment = { ...process.env, ...ports, HOME: home, MCP_AUTO_OPEN_ENABLED: 'false', MCP_INSPECTOR_SECRET_STORE: 'memory' };
    const child = spawn(process.execPath, [inspector, '--web', '--transport', 'http', '--server-url', url], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    const address = await new Promise((resolve, reject) => {
        child.stdout.on('data', piece => {
            output += piece;
            const found = /(http:\/\/\S+TOKEN=[0-9a-f]+)/.exec(output);
            if (found) resolve(found[1]);
        });
        child.on('exit', code => reject(new Error(`the Inspector ended with ${code}: ${output}`)));
    });
    return { address, end: () => new Promise(resolve => { child.removeAllListeners('exit').on('exit', resolve); child.kill('SIGKILL'); }) };
}

const press = (page, selector, text) => page.waitForFunction((at, expected) => {
    const found = [...document.querySelectorAll(at)].find(element => element.innerText.trim().startsWith(expected));
    found?.click();
    return Boolean(found);
}, { timeout: 30_000 }, selector, text);

export async function official(browser, given) {
    const home = await mkdtemp(join(tmpdir(), 'duplexer-official-'));
    const server = await start(given.program, ['demo', '--port', '0']);
    const other = await launched(home, `${server.origin}/mcp`);
    const page = await browser.newPage();
    await page.setViewport({ width: 1400, height: 900 });
    await page.goto(other.address);
    await page.waitForSelector('input[role=switch]');
    await page.$eval('input[role=switch]', element => element.click());
    await press(page, 'label', 'Apps');
    await press(page, 'button', 'weather');
    await page.locator('::-p-aria(city)').fill('Lima').catch(() => page.locator('input[placeholder*="city" i], textarea').fill('Lima'));
    await press(page, 'button', 'Open App');
    // The view draws the result of the tool; which frame it is in is the host's affair.
    let drawn = null;
    for (const begun = Date.now(); drawn === null && Date.now() - begun < 60_000;) {
        for (const frame of page.frames()) {
            const text = await frame.evaluate(() => document.querySelector('#now')?.textContent ?? '').catch(() => '');
            if (text.includes('°')) drawn = frame;
        }
        await page.evaluate(() => new Promise(resolve => requestAnimationFrame(resolve)));
    }
    assert.ok(drawn, 'the official Inspector shows the view of the demo');
    assert.equal(await drawn.$eval('h1', element => element.textContent), 'Lima');
    await page.close();
    await other.end();
    await server.end();
    await rm(home, { recursive: true, force: true });
}
