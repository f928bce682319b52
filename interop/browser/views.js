// Views of MCP Apps: the demo's own, from the inside of its frame.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

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

/** Clicks a button of a view with the mouse. */
async function press(frame, name) {
    const button = await frame.waitForSelector(`::-p-xpath(//button[normalize-space()="${name}"])`, { visible: true });
    await button.click();
}

/** Asks the host from within the view: the result, or the code and text of the error. */
function ask(frame, method, params) {
    return frame.evaluate((name, given) => new Promise(resolve => {
        const id = `test-${Math.random()}`;
        addEventListener('message', ({ data }) => { if (data.id === id) resolve(data.result ?? `${data.error.code} ${data.error.message}`); });
        parent.postMessage({ jsonrpc: '2.0', id, method: name, params: given }, '*');
    }), method, params);
}

/** A view saves files through its host, if the person agrees. */
async function files(sheet, frame) {
    const folder = await mkdtemp(join(tmpdir(), 'duplexer-files-'));
    await press(frame, 'Save as CSV');
    await sheet.see('dialog', 'Save this file?');
    await sheet.see('dialog', 'Lima sunday.csv');
    await sheet.see('dialog', 'text/csv');
    await sheet.check('the question about a file');
    await sheet.press('Refuse', 'dialog');
    await sheet.gone('dialog');
    await frame.waitForFunction(() => document.querySelector('#note').textContent === 'The file was not saved.');
    await press(frame, 'Save as CSV');
    await sheet.see('dialog', 'Save this file?');
    const file = await sheet.saved(folder, () => sheet.press('Save', 'dialog'));
    assert.equal(basename(file), 'Lima sunday.csv');
    assert.match(await readFile(file, 'utf8'), /^hour,degrees,rain\n0,[^]*\n23,/);
    await frame.waitForFunction(() => document.querySelector('#note').textContent === 'The file was saved.');

    // A link is read from the server; a name cannot leave the folder; binary contents stay what they are.
    const linked = ask(frame, 'ui/download-file', { contents: [{ type: 'resource_link', uri: 'demo://readme', name: '../../readme.md' }] });
    await sheet.see('dialog', 'demo://readme');
    const readme = await sheet.saved(folder, () => sheet.press('Save', 'dialog'));
    assert.deepEqual(await linked, {});
    assert.equal(basename(readme), 'readme.md');
    assert.match(await readFile(readme, 'utf8'), /One server, every revision/);
    const binary = ask(frame, 'ui/download-file', { contents: [{ type: 'resource', resource: { uri: 'a:/b/%2e%2e%2fx:y.bin?q', blob: 'AAH/' } }] });
    await sheet.see('dialog', '3 B');
    const bytes = await sheet.saved(folder, () => sheet.press('Save', 'dialog'));
    assert.deepEqual(await binary, {});
    assert.deepEqual([...await readFile(bytes)], [0, 1, 255]);
    assert.ok(!/[/\\:]|^\./.test(basename(bytes)), basename(bytes));
    for (const contents of [undefined, [], [{ type: 'text', text: 'x' }], [{ type: 'resource', resource: { uri: 'a:b', blob: '*' } }]]) {
        assert.match(await ask(frame, 'ui/download-file', { contents }), /^-32602 contents are 1 to 20/);
    }
    // What the server does not have is not saved, and the person sees why.
    const absent = ask(frame, 'ui/download-file', { contents: [{ type: 'resource_link', uri: 'https://evil.example/x', name: 'x' }] });
    await sheet.see('dialog', 'https://evil.example/x');
    await sheet.press('Save', 'dialog');
    assert.deepEqual(await absent, { isError: true });
    await sheet.see('#detail .blocked', 'download of a file');
    await rm(folder, { recursive: true });
}

/** A view asks the model of its host: the person. */
async function models(sheet, frame) {
    const params = { messages: [{ role: 'user', content: { type: 'text', text: 'What is rain?' } }], maxTokens: 50, systemPrompt: 'Be brief.' };
    const answered = ask(frame, 'sampling/createMessage', params);
    await sheet.see('dialog', 'A view asks your model');
    await sheet.see('dialog', 'What is rain?');
    await sheet.see('dialog', 'Be brief.');
    assert.match(await ask(frame, 'sampling/createMessage', params), /another question of this view is open/);
    await sheet.type('#sampling-text', 'Water from above.');
    await sheet.check('a question of a view to a model');
    await sheet.press('Answer', 'dialog');
    await sheet.gone('dialog');
    assert.deepEqual(await answered, { role: 'assistant', model: 'a-person', stopReason: 'endTurn', content: { type: 'text', text: 'Water from above.' } });
    const refused = ask(frame, 'sampling/createMessage', params);
    await sheet.see('dialog', 'What is rain?');
    await sheet.press('Refuse', 'dialog');
    assert.equal(await refused, '-1 the user refused the request');
    assert.match(await ask(frame, 'sampling/createMessage', {}), /^-32602 messages/);
    assert.match(await ask(frame, 'sampling/createMessage', { ...params, tools: [] }), /^-32602 .* with tools/);
}

export async function views(browser, given) {
    const server = await start(given.program, ['demo', '--port', '0']);
    const sheet = await Sheet.open(browser, server.url);
    await sheet.ready();
    assert.match(await sheet.call('weather', { city: 'Lima' }), /Lima/, 'a text for those who see no page');
    let frame = await frameOf(sheet);
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
    await press(frame, 'sunday');
    await frame.waitForFunction(text => document.querySelector('#sky').textContent !== text, {}, before);
    assert.match(await frame.$eval('#sky', element => element.textContent), /^sunday/);
    await sheet.check('a view');
    await sheet.page.$eval('#detail .view', element => element.scrollIntoView());
    await given.shot(sheet, 'view');

    await files(sheet, frame);
    await models(sheet, frame);

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

    // A link is opened only if the person agrees.
    const link = ask(frame, 'ui/open-link', { url: 'https://evil.example/' });
    await sheet.see('dialog', 'https://evil.example/');
    await sheet.page.keyboard.press('Escape');
    assert.match(await link, /the user refused/);

    // A view that ends takes its question with it.
    ask(frame, 'sampling/createMessage', { messages: [{ role: 'user', content: { type: 'text', text: 'Anyone?' } }] }).catch(() => {});
    await sheet.see('dialog', 'Anyone?');
    await frame.evaluate(() => parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/request-teardown' }, '*'));
    await sheet.gone('dialog');
    await sheet.gone('#detail iframe');
    await sheet.call('weather', { city: 'Oslo' });
    frame = await frameOf(sheet);
    await frame.waitForFunction(() => document.querySelector('h1')?.textContent === 'Oslo');

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
