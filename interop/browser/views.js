// Views of MCP Apps: the demo's own, from the inside of its frame.

import assert from 'node:assert/strict';

import { Sheet } from './browser.js';
import { start } from './servers.js';

/** Waits for the frame of the view, which has no origin. */
export async function frameOf(sheet) {
    return sheet.page.waitForFrame(frame => /\/view\/[0-9a-f]{64}$/.test(frame.url()), { timeout: 30_000 });
}

/** The messages of the view so far, such as `view ui/initialize`. */
function messages(sheet) {
    return sheet.page.$$eval('#detail .view-message', rows => rows.map(row => `${row.dataset.from} ${row.dataset.method}`.trim()));
}

export async function views(browser, given) {
    const server = await start(given.program, ['demo', '--port', '0']);
    const sheet = await Sheet.open(browser, server.url);
    await sheet.ready();
    assert.match(await sheet.call('weather', { city: 'Lima' }), /Lima/, 'a text for those who see no page');
    const frame = await frameOf(sheet);
    assert.notEqual(new URL(frame.url()).origin, server.origin, 'a second origin');
    await frame.waitForFunction(() => document.querySelector('#now')?.textContent.includes('°'));
    assert.equal(await frame.$eval('h1', element => element.textContent), 'Lima');
    assert.equal(await frame.evaluate(() => origin), 'null', 'the view has no origin');

    // Nothing before the view is initialized; the input once, then the result once.
    const order = (await messages(sheet)).filter(message => !message.includes('size-changed'));
    assert.deepEqual(order.slice(0, 5), ['view ui/initialize', 'host', 'view ui/notifications/initialized', 'host ui/notifications/tool-input', 'host ui/notifications/tool-result']);
    assert.equal(order.filter(message => message.includes('tool-')).length, 2);

    // The size that the view reports is the size of its frame.
    const height = await frame.evaluate(() => Math.ceil(document.documentElement.getBoundingClientRect().height));
    await sheet.page.waitForFunction(expected => document.querySelector('#detail iframe').style.height === `${expected}px`, {}, height);

    // A click in the view calls a tool that only views see.
    const before = await frame.$eval('#sky', element => element.textContent);
    await frame.evaluate(() => [...document.querySelectorAll('#days button')].find(button => button.textContent === 'sunday').click());
    await frame.waitForFunction(text => document.querySelector('#sky').textContent !== text, {}, before);
    assert.match(await frame.$eval('#sky', element => element.textContent), /^sunday/);
    await sheet.check('a view');
    await sheet.page.$eval('#detail .view', element => element.scrollIntoView());
    await given.shot(sheet, 'view');

    // The view learns of dark and light.
    await sheet.click('#theme');
    await frame.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
    await sheet.click('#theme');

    // What the policy blocks is shown, with the reason.
    sheet.expected.push(/Content Security Policy|ERR_BLOCKED_BY_CSP|Failed to load resource/);
    const refused = await frame.evaluate(() => fetch('https://example.com/').then(() => 'sent', () => 'refused'));
    assert.equal(refused, 'refused');
    await sheet.see('#detail .blocked', 'https://example.com');
    await sheet.see('#detail .blocked', 'connect-src');

    // Another item: the view gets its teardown, and is removed.
    await frame.evaluate(() => { globalThis.mcpApp.on('teardown', reason => globalThis.mcpApp.log(`bye ${reason}`)); });
    const gone = sheet.page.waitForFunction(() => !document.querySelector('iframe'));
    await sheet.choose('tools', 'echo');
    await gone;

    // A tool for views only is marked; it can be called as the view would.
    await sheet.choose('tools', 'weather_on');
    await sheet.see('#detail', 'hides it from the model');
    await sheet.close('views');
    await server.end();
}
