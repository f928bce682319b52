// A server that requires a login: the page shows where, and goes on when the person is back.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Sheet } from './browser.js';
import { start } from './servers.js';

export async function login(browser, given) {
    const home = await mkdtemp(join(tmpdir(), 'duplexer-login-'));
    const server = await start(given.program, ['demo', '--port', '0', '--auth', 'dev'], { HOME: home, XDG_DATA_HOME: home });
    const sheet = await Sheet.open(browser, server.url);
    await sheet.see('dialog', 'Log in');
    await sheet.check('the dialog of a login');
    const opened = new Promise(resolve => browser.once('targetcreated', resolve));
    await sheet.press('Open the login page', 'dialog');
    const page = await (await opened).page();
    await page.waitForSelector('button, input[type=submit]');
    await page.click('button, input[type=submit]');
    await sheet.page.bringToFront();
    await sheet.ready();
    assert.match(await sheet.call('add', { a: '1', b: '2' }), /3/);
    await sheet.message('"add"');
    await sheet.see('#dock .w-detail', '(not shown)');
    assert.ok(!(await sheet.text('#dock .w-detail')).includes('Bearer'), 'no token is shown');
    sheet.expected.push(/401/);
    await sheet.close('a login');
    await page.close();
    await server.end();
    await rm(home, { recursive: true });
}
