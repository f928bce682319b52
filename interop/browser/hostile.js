// A server that means harm: nothing of it leaves its box.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

import { Sheet } from './browser.js';
import { watched } from './network.js';
import { start } from './servers.js';
import { frameOf } from './views.js';

const script = fileURLToPath(new URL('hostile_server.js', import.meta.url));

async function unharmed(sheet, what) {
    assert.equal(await sheet.page.evaluate(() => globalThis.pwned), undefined, `${what}: a script of the server ran`);
    assert.equal(await sheet.page.$$eval('#main :is(script, img[src="x"], iframe[srcdoc])', all => all.length), 0, what);
}

/** Nothing reaches any place but the two origins of the page, and the one that the view declares. */
export async function hostile(_, given) {
    await watched('a hostile server', browser => attacked(browser, given));
}

async function attacked(browser, given) {
    const reached = [];
    const site = createServer((request, response) => {
        reached.push(request.url);
        response.writeHead(200, { 'access-control-allow-origin': '*' }).end('here');
    });
    await new Promise(resolve => site.listen(0, '127.0.0.1', resolve));
    const port = site.address().port;
    const server = await start(given.program, ['inspect', '--', process.execPath, script, String(port)]);
    const sheet = await Sheet.open(browser, server.url);
    await sheet.ready();
    await unharmed(sheet, 'names and texts in lists');
    await texts(sheet);
    await schemas(sheet);
    await results(sheet);
    const sandbox = await view(sheet, server, reached);
    await sheet.close('a hostile server');
    await server.end();
    site.close();
    return [server.origin, sandbox, `http://127.0.0.1:${port}`];
}

async function texts(sheet) {
    await sheet.see('#detail', '<script>globalThis.pwned=1</script>');
    await sheet.click('#browse .row');
    await sheet.see('#detail h2', '<img src=x onerror');
    assert.ok(!(await sheet.text('#detail')).includes('\u202e'), 'no character reorders what is around it');
    await sheet.press('Call', '#detail form');
    assert.match(await sheet.outcome(), /<script>globalThis\.pwned=2<\/script>/);
    await unharmed(sheet, 'names and texts');
    await sheet.check('names and texts');
    await sheet.choose('tools', 'ask');
    await sheet.press('Call', '#detail form');
    await sheet.see('dialog', 'not a web address');
    assert.equal(await sheet.page.$('dialog a'), null, 'a script is no link');
    await sheet.press('Cancel', 'dialog');
    await sheet.outcome();
    await unharmed(sheet, 'a question');
}

async function schemas(sheet) {
    await sheet.choose('tools', 'cyclic');
    await sheet.page.waitForSelector('#detail [data-field="required"]');
    assert.ok((await sheet.page.$$('#detail .field')).length <= 200, 'a schema without end has an end');
    await sheet.check('a cyclic schema');
    await sheet.choose('tools', 'wide');
    assert.ok((await sheet.page.$$('#detail .field')).length <= 200);
    await sheet.see('#detail', 'more fields: edit them as JSON');
    await sheet.choose('tools', 'prototype');
    await sheet.fill('__proto__', 'polluted');
    await sheet.fill('constructor', 'built');
    await sheet.fill('pattern', `${'a'.repeat(40)}!`);
    assert.match(await sheet.send(), /__proto__[^]*polluted/);
    assert.equal(await sheet.page.evaluate(() => ({}).polluted), undefined);
}

async function results(sheet) {
    const text = await sheet.call('huge');
    assert.ok(text.length < 100_000, `${text.length} characters are shown at once`);
    await sheet.see('#detail .result', 'of 3.5 MB shown');
    await sheet.press('Show more', '#detail .result');
    await sheet.call('deep');
    await sheet.click('#detail .result [data-tab="structured"]');
    assert.ok((await sheet.page.$$('#detail .node')).length < 20, 'branches are made when they are opened');
    await sheet.call('media');
    assert.deepEqual(await sheet.page.$$eval('#detail .result img', images => images.map(image => image.src.slice(0, 18))), ['data:image/svg+xml']);
    await unharmed(sheet, 'media');
    await sheet.check('results');
}

async function view(sheet, server, reached) {
    sheet.expected.push(/Content Security Policy|ERR_BLOCKED_BY_CSP|sandbox|Blocked|blocked|Failed to load|Unsafe attempt|Ignored call/i);
    const address = sheet.page.url();
    await sheet.call('attack');
    const frame = await frameOf(sheet);
    await frame.waitForFunction(() => document.body?.dataset.done === 'true', { timeout: 30_000 });
    const found = JSON.parse(await frame.$eval('#report', element => element.textContent));
    assert.deepEqual(found, {
        parent: 'refused', cookies: 'refused', storage: 'refused', fetch: 'refused', undeclared: 'refused', declared: 'here', image: 'refused',
        popup: 'refused', socket: 'refused', events: 'refused', worker: 'refused', model: 'the view cannot call this tool', unknown: 'the view cannot call this tool', link: 'only http and https links are opened',
        secret: 'the inspector does not have this method',
    });
    assert.deepEqual(reached.filter(url => url !== '/declared'), [], 'nothing else was reached');
    for (const why of ['connect-src', 'img-src', 'the tool is for the model only', 'only web addresses', 'the policy leaves it out']) {
        await sheet.see('#detail .blocked', why);
    }
    // It navigates its own frame, and the page around it.
    await frame.evaluate(() => { globalThis.leave(); });
    await sheet.see('#detail .blocked', 'frame-src');
    assert.equal(sheet.page.url(), address, 'the page was not navigated');
    assert.ok(sheet.page.frames().every(one => !one.url().includes('evil.example')), 'no frame was navigated');
    // The driver lists what was refused too; what was sent is in the log of the network.
    sheet.requests = sheet.requests.filter(url => !url.includes('evil.example'));
    await unharmed(sheet, 'a view');
    await sheet.check('a hostile view');
    return sheet.page.evaluate(async () => (await import('/inspector/state.js')).state.info.sandbox);
}

/** Many tools, and more messages than are kept. */
export async function many(browser, given) {
    const server = await start(given.program, ['inspect', '--', process.execPath, script, '0', 'many']);
    const sheet = await Sheet.open(browser, server.url);
    await sheet.ready();
    assert.match((await sheet.texts('#browse .tab'))[0], /1000/);
    const rows = async () => (await sheet.page.$$('#browse [role="option"]')).length;
    assert.ok(await rows() <= 200, `${await rows()} rows`);
    await sheet.page.$eval('#browse .vlist', list => { list.scrollTop = list.scrollHeight; });
    await sheet.see('#browse .r-name', 'tool_999');
    assert.ok(await rows() <= 200, `${await rows()} rows`);
    await sheet.page.focus('#browse .vlist');
    await sheet.page.keyboard.press('End');
    await sheet.see('#detail h2', 'flood');
    await sheet.check('1000 tools');
    await sheet.call('flood', { messages: '12000' });
    await sheet.page.waitForFunction(async () => {
        const { state } = await import('/inspector/state.js');
        return state.dropped > 1900 && state.wire.length === 10000;
    }, { timeout: 120_000 });
    assert.ok((await sheet.page.$$('#dock [role="option"]')).length <= 200);
    const session = await sheet.page.createCDPSession();
    await session.send('HeapProfiler.collectGarbage');
    const { JSHeapUsedSize: used } = await sheet.page.metrics();
    assert.ok(used < 100e6, `the page uses ${used} bytes`);
    console.log(`  10 000 messages: ${(used / 1e6).toFixed(1)} MB of heap`);
    await sheet.check('10 000 messages');
    await sheet.close('many');
    await server.end();
}
