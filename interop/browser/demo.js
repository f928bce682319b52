// Everything that the page shows, on the demo.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { Sheet } from './browser.js';
import { start } from './servers.js';

export async function demo(browser, given) {
    const server = await start(given.program, ['demo', '--port', '0']);
    const sheet = await Sheet.open(browser, server.url);
    await sheet.ready();
    await opening(sheet, server);
    await forms(sheet);
    await contents(sheet, given);
    await progress(sheet);
    await questions(sheet, given);
    await resources(sheet);
    await prompts(sheet);
    await tasks(sheet);
    await tasksOnRequest(sheet);
    await roots(sheet);
    await logs(sheet);
    await wire(sheet, given);
    await exported(sheet, browser, given);
    await latency(sheet);
    await eras(sheet, given);
    await copies(sheet, server);
    await keyboard(sheet);
    await sheet.close('the demo');
    await tokens(browser, server);
    await server.end();
}

async function opening(sheet, server) {
    await sheet.see('#session', 'Duplexer demo');
    assert.match(await sheet.text('#session .badge'), /^envelope \d{4}-\d\d-\d\d$/);
    assert.equal(new URL(sheet.page.url()).hash, '', 'the token does not stay in the address');
    assert.ok(!sheet.requests.some(url => url.split('#')[0].includes('token')), 'the token is in no URL');
    await sheet.see('#detail', 'A little of everything');
    const [tools] = await sheet.texts('#browse .tab');
    assert.match(tools, /^Tools\s*\d+$/);
    await sheet.type('#search', 'divide');
    await sheet.see('#browse .found', '1 of');
    assert.deepEqual(await sheet.texts('#browse .r-name'), ['divide']);
    await sheet.check('the opened page');
    const policy = (await fetch(server.origin)).headers.get('content-security-policy');
    assert.match(policy, /default-src 'none'; script-src 'self'/);
    assert.match(policy, /frame-ancestors 'none'/);
}

/** Enumerations, nested objects, lists, defaults, and messages about what is wrong. */
async function forms(sheet) {
    await sheet.choose('tools', 'order');
    assert.equal(await sheet.page.$eval('#detail [data-field="tip"] input', input => input.value), '10', 'a default');
    await sheet.fill('tip', '70');
    await sheet.press('Call', '#detail form');
    await sheet.see('#detail [data-field="pizzas"] .fault', 'At least 1');
    await sheet.see('#detail [data-field="tip"] .fault', 'At most 50');
    assert.equal(await sheet.page.$eval('#detail [data-field="tip"] input', input => input.getAttribute('aria-invalid')), 'true');
    await sheet.fill('tip', 'much');
    await sheet.press('Call', '#detail form');
    await sheet.see('#detail [data-field="tip"] .fault', 'not a number');
    await sheet.fill('tip', '15');
    await sheet.press('+ Add', '#detail [data-field="pizzas"]');
    assert.deepEqual(await sheet.texts('#detail [data-field="size"] option'), ['choose…', 'small', 'medium', 'large']);
    await sheet.fill('size', 'large');
    await sheet.press('+ Add', '#detail [data-field="toppings"]');
    await sheet.type('#detail [data-field="toppings"] textarea', 'olives');
    await sheet.fill('street', 'Main Street 1');
    await sheet.fill('floor', '3');
    await sheet.check('a form');
    await sheet.press('Edit as JSON', '#detail form');
    const text = await sheet.page.$eval('#detail textarea.code', area => area.value);
    const expected = { pizzas: [{ size: 'large', toppings: ['olives'] }], address: { street: 'Main Street 1', floor: 3 }, tip: 15 };
    assert.deepEqual(JSON.parse(text), expected);
    await sheet.press('Edit as form', '#detail form');
    const outcome = await sheet.send();
    assert.match(outcome, /ok/);
    await sheet.click('#detail .result [data-tab="structured"]');
    await sheet.see('#detail .result', 'minutes: 25');
    await sheet.click('#detail .result [data-tab="json"]');
    await sheet.see('#detail .result pre.json', '"structuredContent"');
}

async function contents(sheet, given) {
    const text = await sheet.call('gallery');
    assert.match(text, /One of each kind/);
    assert.match(text, /send and receive at once/);
    const width = await sheet.page.waitForFunction(() => document.querySelector('#detail .picture')?.naturalWidth);
    assert.equal(await width.jsonValue(), 240, 'the picture is shown');
    const length = await sheet.page.waitForFunction(() => document.querySelector('#detail audio')?.duration);
    assert.equal(await length.jsonValue(), 0.5, 'the sound can be played');
    await sheet.check('contents of every kind');
    await given.shot(sheet, 'overview');
    await sheet.press('readme', '#detail .result');
    await sheet.see('#detail h2', 'readme');
    await sheet.press('Read', '#detail');
    assert.match(await sheet.outcome(), /One server, every revision/);
    const failed = await sheet.call('divide', { a: '1', b: '0' });
    assert.match(failed, /tool error[^]*Nothing can be divided by zero/);
}

async function progress(sheet) {
    await sheet.choose('tools', 'count');
    await sheet.fill('to', '1000');
    await sheet.fill('pause', '20');
    await sheet.press('Call', '#detail form');
    await sheet.see('#detail .progress-note', 'of 1000 · counting');
    assert.ok(await sheet.page.$eval('#detail progress', bar => bar.value > 0 && bar.max === 1000));
    await sheet.press('Cancel', '#detail form');
    assert.match(await sheet.outcome(), /cancelled/);
    assert.match(await sheet.call('count', { to: '3', pause: '1' }), /Counted to 3/);
}

/** Questions of the server: a form, a page to open, an answer of a model. */
async function questions(sheet, given) {
    await sheet.choose('tools', 'book');
    await sheet.fill('day', 'Friday');
    await sheet.press('Call', '#detail form');
    await sheet.see('dialog h2', 'A table for Friday');
    await sheet.press('Accept', 'dialog');
    await sheet.see('dialog [data-field="guests"] .fault', 'Fill in');
    await sheet.fill('guests', '13', 'dialog');
    await sheet.press('Accept', 'dialog');
    await sheet.see('dialog [data-field="guests"] .fault', 'At most 12');
    await sheet.fill('guests', '4', 'dialog');
    await sheet.fill('place', 'garden', 'dialog');
    await sheet.check('a question');
    await given.shot(sheet, 'question');
    await sheet.press('Accept', 'dialog');
    await sheet.gone('dialog');
    assert.match(await sheet.outcome(), /A table for 4 in the garden, Friday/);

    await sheet.choose('tools', 'tour');
    await sheet.press('Call', '#detail form');
    await sheet.see('dialog', 'modelcontextprotocol.io');
    await sheet.check('a question with a page');
    await sheet.press('Decline', 'dialog');
    assert.match(await sheet.outcome(), /The user knows already/);

    await sheet.choose('tools', 'consult');
    await sheet.fill('question', 'What is a duplexer?');
    await sheet.press('Call', '#detail form');
    await sheet.see('dialog', 'What is a duplexer?');
    await sheet.type('#sampling-text', 'It sends and receives.');
    await sheet.check('a question to a model');
    await sheet.press('Answer', 'dialog');
    assert.match(await sheet.outcome(), /It sends and receives\./);

    await sheet.choose('tools', 'tour');
    await sheet.press('Call', '#detail form');
    await sheet.see('dialog', 'modelcontextprotocol.io');
    await sheet.page.keyboard.press('Escape');
    await sheet.gone('dialog');
    assert.match(await sheet.outcome(), /The user knows already/);
}

/** Reading, watching, and completions of templates. */
async function resources(sheet) {
    await sheet.choose('resources', 'clock');
    await sheet.press('Watch', '#detail');
    await sheet.see('#detail .actions', 'Stop watching');
    await sheet.see('#detail .actions', 'changed');
    const before = await sheet.outcome();
    await sheet.page.waitForFunction(
        shown => { const now = document.querySelector('#detail .result pre')?.innerText; return now && !shown.includes(now); },
        { timeout: 30_000 }, before);
    await sheet.press('Stop watching', '#detail');
    await sheet.click('#dock [data-tab="changes"]');
    await sheet.see('#dock .log', 'demo://clock');
    await sheet.check('changes');
    await sheet.choose('resources', 'dot');
    await sheet.press('Read', '#detail');
    await sheet.page.waitForSelector('#detail .result .picture');
    await sheet.choose('templates', 'capital');
    await sheet.type('#detail [data-field="country"] input', 'F');
    await sheet.page.waitForFunction(() => [...document.querySelectorAll('#detail .chip')].map(chip => chip.innerText).join() === 'France,Finland');
    await sheet.check('suggestions');
    await sheet.press('Finland', '#detail .chips');
    await sheet.see('#detail .uri', 'world://Finland/capital');
    assert.match(await sheet.send('Read'), /Helsinki/);
}

async function prompts(sheet) {
    await sheet.choose('prompts', 'greet');
    await sheet.press('Get prompt', '#detail form');
    await sheet.see('#detail [data-field="name"] .fault', 'Fill this in');
    await sheet.fill('name', 'Ada');
    await sheet.type('#detail [data-field="greeting"] input', 'good');
    await sheet.see('#detail .chips', 'good morning');
    await sheet.press('good evening', '#detail .chips');
    assert.match(await sheet.send('Get prompt'), /Say good evening to Ada/);
    // A resource that a tool adds appears in the list by itself.
    await sheet.call('remember', { text: 'buy milk' });
    await sheet.choose('resources', 'note 1');
}

/** A call that becomes a task: its state, its question, its end; and one that is cancelled. */
async function tasks(sheet) {
    await sheet.choose('tools', 'report');
    await sheet.fill('about', 'whales');
    await sheet.fill('seconds', '1');
    await sheet.press('Call', '#detail form');
    await sheet.click('#dock [data-tab="tasks"]');
    await sheet.see('#dock .task .badge', 'working');
    await sheet.see('dialog', 'How long shall it be?');
    await sheet.fill('chapters', '3', 'dialog');
    await sheet.press('Accept', 'dialog');
    assert.match(await sheet.outcome(), /A report about whales in 3 chapters/);
    await sheet.see('#dock .task .badge', 'completed');
    await sheet.press('Get state', '#dock .task');
    await sheet.see('#dock .task .result', 'ok');
    await sheet.check('tasks');
    await sheet.choose('tools', 'report');
    await sheet.fill('about', 'whales');
    await sheet.fill('seconds', '600');
    await sheet.press('Call', '#detail form');
    await sheet.page.waitForFunction(() => document.querySelectorAll('#dock .task').length === 2);
    await sheet.press('Cancel task', '#dock .task');
    assert.match(await sheet.outcome(), /cancelled/);
}

/** The way of the handshake era: the client asks for a task, for a tool that leaves the choice to it. */
async function tasksOnRequest(sheet) {
    await sheet.page.select('#era', 'handshake');
    await sheet.see('#session .badge', 'handshake 2025-11-25');
    await sheet.choose('tools', 'add');
    assert.ok(!(await sheet.text('#detail form')).includes('as a task'), 'a tool without tasks does not offer one');
    const begin = async (seconds, asTask) => {
        await sheet.choose('tools', 'report');
        await sheet.fill('about', 'squids');
        await sheet.fill('seconds', seconds);
        if (asTask) await sheet.click('#detail form label.check input');
        const before = (await sheet.page.$$('#dock .task')).length;
        await sheet.press('Call', '#detail form');
        return before;
    };
    await sheet.click('#dock [data-tab="tasks"]');
    const before = await begin('1', true);
    await sheet.page.waitForFunction(count => document.querySelectorAll('#dock .task').length === count + 1, {}, before);
    await sheet.see('#dock .task:first-child', 'handshake');
    await sheet.see('dialog', 'How long shall it be?');
    await sheet.see('#dock .task:first-child .badge', 'input_required');
    await sheet.fill('chapters', '2', 'dialog');
    await sheet.check('a task of the handshake era');
    await sheet.press('Accept', 'dialog');
    assert.match(await sheet.outcome(), /A report about squids in 2 chapters/);
    await sheet.see('#dock .task:first-child .badge', 'completed');
    await sheet.message('"squids"');
    await sheet.see('#dock .w-detail', 'tools/call');
    await sheet.see('#dock .w-detail', 'task:');

    await sheet.click('#dock [data-tab="tasks"]');
    await begin('600', true);
    await sheet.see('#dock .task:first-child .badge', 'working');
    await sheet.press('Cancel', '#detail form');
    assert.match(await sheet.outcome(), /the task was cancelled/);
    await sheet.see('#dock .task:first-child .badge', 'cancelled');

    // Without the mark it is an ordinary call.
    const tasks = await begin('0', false);
    await sheet.see('dialog', 'How long shall it be?');
    await sheet.fill('chapters', '1', 'dialog');
    await sheet.press('Accept', 'dialog');
    assert.match(await sheet.outcome(), /A report about squids in 1 chapters/);
    assert.equal((await sheet.page.$$('#dock .task')).length, tasks, 'no further task');
    await sheet.page.select('#era', 'auto');
    await sheet.see('#session .badge', 'envelope');
}

/** Folders that the server may work on. */
async function roots(sheet) {
    assert.match(await sheet.call('folders'), /There are none/);
    await sheet.press('About', '#session');
    await sheet.see('#detail', 'A little of everything');
    await sheet.click('#detail ::-p-xpath(.//summary[normalize-space()="Roots"])');
    await sheet.see('#detail', 'The server gets no folders.');
    await sheet.type('#roots', 'https://example.com/');
    await sheet.press('Set roots', '#detail');
    await sheet.see('.toast', 'begin with file://');
    sheet.expected.push(/400 \(Bad Request\)/);
    await sheet.type('#roots', 'file:///work/whales\nfile:///work/squids');
    await sheet.press('Set roots', '#detail');
    await sheet.see('#detail', 'The server gets these 2 folders when it asks.');
    await sheet.check('roots');
    for (const era of ['handshake', 'auto']) {
        await sheet.page.select('#era', era);
        await sheet.see('#session .badge', era === 'auto' ? 'envelope' : era);
        assert.match(await sheet.call('folders'), /file:\/\/\/work\/whales\nfile:\/\/\/work\/squids/, era);
    }
    await sheet.press('About', '#session');
    await sheet.click('#detail ::-p-xpath(.//summary[normalize-space()="Roots"])');
    await sheet.see('#detail', 'these 2 folders');
}

async function logs(sheet) {
    await sheet.click('#dock [data-tab="logs"]');
    await sheet.see('#dock .log', 'note://1 was written');
    await sheet.page.select('#dock [aria-label="Show from this level on"]', 'warning');
    await sheet.see('#dock .log', 'No log messages');
    await sheet.page.select('#dock [aria-label="Level that the server sends"]', 'error');
    await sheet.page.select('#dock [aria-label="Show from this level on"]', 'debug');
    await sheet.check('logs');
    const before = (await sheet.texts('#dock .log .entry')).length;
    await sheet.call('remember', { text: 'buy bread' });
    assert.equal((await sheet.texts('#dock .log .entry')).length, before, 'the server sends less');
}

/** Every message with its era, headers, time and size; as a list, as JSON, as a diagram; and the export. */
async function wire(sheet, given) {
    await sheet.call('add', { a: '2', b: '3' });
    await sheet.message('"add"');
    await sheet.see('#dock .w-name', 'tools/call add');
    await sheet.page.waitForFunction(() => {
        const [row, list] = ['#dock .row[aria-selected="true"]', '#dock .vlist'].map(at => document.querySelector(at)?.getBoundingClientRect());
        return row && row.top >= list.top && row.bottom <= list.bottom + 1;
    }, { timeout: 10_000 });
    await sheet.see('#dock .w-detail', 'envelope');
    for (const shown of ['era', 'time', 'size', 'POST 200', 'mcp-protocol-version', 'mcp-name', 'tools/call']) await sheet.see('#dock .w-detail', shown);
    await sheet.check('the wire');
    await sheet.type('#dock [aria-label="Filter messages"]', '');
    await sheet.click('#dock [data-tab="sequence"]');
    await sheet.see('#dock .diagram', 'newest');
    assert.ok((await sheet.page.$$('#dock .msg')).length > 10);
    await sheet.check('the sequence diagram');
    await given.shot(sheet, 'sequence');
    await sheet.page.$$eval('#dock .msg', all => all.at(-1).focus());
    await sheet.page.keyboard.press('Enter');
    await sheet.see('#dock .w-detail', 'result');
}

/** The exported transcript takes the place of the server, on another page. */
async function exported(sheet, browser, given) {
    const folder = await mkdtemp(join(tmpdir(), 'duplexer-export-'));
    const file = await sheet.saved(folder, () => sheet.press('Export', '#dock'));
    assert.equal(basename(file), 'transcript.jsonl');
    const lines = (await readFile(file, 'utf8')).trim().split('\n').map(line => JSON.parse(line));
    assert.equal(lines[0].duplexer, 'transcript');
    assert.ok(lines.some(line => line.from === 'client' && line.message.params?.name === 'add'));
    assert.ok(lines.slice(2).every((line, index) => line.at_ms >= lines[index + 1].at_ms), 'time never decreases');
    const replayed = await start(given.program, ['inspect', '--', given.program, 'replay', file]);
    const other = await Sheet.open(browser, replayed.url);
    await other.ready();
    await other.see('#session', 'Duplexer demo');
    assert.match(await other.call('add', { a: '2', b: '3' }), /5/);
    assert.match(await other.call('add', { a: '2', b: '4' }), /only with other params/);
    await other.close('a replayed transcript');
    await replayed.end();
    await rm(folder, { recursive: true });
}

async function latency(sheet) {
    await sheet.call('add', { a: '1', b: '1' });
    await sheet.click('#dock [data-tab="latency"]');
    await sheet.page.select('#dock [aria-label="Requests"]', 'tools/call add');
    await sheet.press('Repeat the last call 20 times', '#dock');
    await sheet.page.waitForFunction(() => Number(document.querySelector('#dock .histogram + .facts dd')?.textContent) >= 21, { timeout: 60_000 });
    await sheet.see('#dock .facts', 'p95');
    assert.ok((await sheet.page.$$('#dock .histogram .bar')).length >= 1);
    await sheet.check('latencies');
    await sheet.click('#dock [data-tab="wire"]');
}

async function eras(sheet, given) {
    await sheet.choose('tools', 'add');
    await sheet.fill('a', '20');
    await sheet.fill('b', '22');
    await sheet.press('Compare both eras', '#detail');
    await sheet.see('#detail .verdict', 'Both eras give the same result');
    await sheet.see('#detail [data-era="handshake"]', '2025-11-25');
    await sheet.see('#detail [data-era="envelope"]', '2026-07-28');
    assert.equal((await sheet.texts('#detail .column .result')).filter(text => text.includes('42')).length, 2);
    await sheet.check('both eras');
    await given.shot(sheet, 'both-eras');
    await sheet.page.select('#era', 'handshake');
    await sheet.see('#session .badge', 'handshake 2025-11-25');
    assert.match(await sheet.call('add', { a: '1', b: '2' }), /3/);
    await sheet.page.select('#era', 'auto');
    await sheet.see('#session .badge', 'envelope');
    await sheet.press('Reconnect', '#session');
    await sheet.see('#session .badge', 'envelope');
}

async function copies(sheet, server) {
    await sheet.choose('tools', 'echo');
    await sheet.fill('text', "it's");
    await sheet.click('#detail .copy summary');
    const copied = async name => {
        await sheet.click(`#detail [data-copy="${name}"]`);
        return sheet.text('#detail .copy pre');
    };
    const url = `${server.origin}/mcp`;
    assert.equal(await copied('Command line'), `duplexer call ${url} echo 'text=it'\\''s'`);
    assert.match(await copied('curl'), new RegExp(`curl -s ${url}[^]*Mcp-Name: echo`));
    assert.match(await copied('Rust'), /client\.call_tool\("echo", json!\(\{"text":"it's"\}\)\)/);
    assert.equal(JSON.parse(await copied('Host configuration')).mcpServers['duplexer-demo'].url, url);
    await sheet.check('copies');
}

/** A call without the mouse. */
async function keyboard(sheet) {
    const { keyboard } = sheet.page;
    await sheet.click('#browse [data-tab="prompts"]');
    await sheet.page.focus('#browse [data-tab="prompts"]');
    await keyboard.press('ArrowRight');
    assert.equal(await sheet.page.evaluate(() => document.activeElement.dataset.tab), 'tools', 'arrows go round');
    await sheet.page.evaluate(() => document.activeElement.blur());
    await keyboard.press('/');
    await keyboard.type('echo');
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter');
    await sheet.see('#detail h2', 'echo');
    // In the whole list: the first, the last, and a page at a time.
    await keyboard.press('/');
    await keyboard.down('Control');
    await keyboard.press('a');
    await keyboard.up('Control');
    await keyboard.press('Backspace');
    await keyboard.press('ArrowDown');
    const names = await sheet.page.evaluate(async () => (await import('/inspector/state.js')).state.lists.tools.map(tool => tool.name));
    for (const [key, index] of [['Home', 0], ['End', names.length - 1], ['ArrowUp', names.length - 2], ['Home', 0], ['ArrowDown', 1]]) {
        await keyboard.press(key);
        await sheet.see('#detail h2', names[index]);
        await sheet.page.waitForFunction(expected => {
            const list = document.activeElement;
            return document.getElementById(list.getAttribute('aria-activedescendant'))?.getAttribute('aria-posinset') === String(expected);
        }, {}, index + 1);
    }
    await keyboard.press('PageDown');
    const far = await sheet.page.evaluate(() => Number(document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).getAttribute('aria-posinset')));
    assert.ok(far > 3, 'a page further');
    await keyboard.press('/');
    await keyboard.type('echo');
    await keyboard.press('Enter');
    await sheet.see('#detail h2', 'echo');
    await sheet.page.focus('#detail textarea');
    await keyboard.type('by keys');
    await keyboard.down('Control');
    await keyboard.press('Enter');
    await keyboard.up('Control');
    assert.match(await sheet.outcome(), /by keys/);
}

/** Without the token of this start there is nothing to see. */
async function tokens(browser, server) {
    const context = await browser.createBrowserContext();
    const sheet = await Sheet.open(context, server.origin);
    await sheet.see('#main', 'Address or token');
    await sheet.check('the question for the token');
    for (const [headers, status] of [[{}, 401], [{ authorization: 'Bearer wrong' }, 401]]) {
        assert.equal((await fetch(`${server.origin}/inspector/api/info`, { headers })).status, status);
    }
    await sheet.type('#token', server.url);
    await Promise.all([sheet.page.waitForNavigation(), sheet.press('Open')]);
    await sheet.ready();
    await sheet.close('the token');
    await context.close();
}

/** The page on a telephone, and in the dark. */
export async function narrow(browser, given) {
    const server = await start(given.program, ['demo', '--port', '0']);
    const phone = await Sheet.open(browser, server.url, { width: 375, height: 740 });
    await phone.ready();
    const fits = async what => {
        const width = await phone.page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(width <= 375, `${what} is ${width} pixels wide`);
        const badge = await phone.page.$eval('#session .badge', element => element.getBoundingClientRect().right);
        assert.ok(badge <= 375, `${what}: the era is not cut off at ${badge}`);
        await phone.check(what);
    };
    await fits('the list on a telephone');
    await phone.choose('tools', 'add');
    await phone.see('#detail h2', 'add');
    await phone.fill('a', '1');
    await phone.fill('b', '2');
    assert.match(await phone.send(), /3/);
    await fits('an item on a telephone');
    await given.shot(phone, 'telephone');
    await phone.click('#places [data-place="dock"]');
    await phone.see('#dock .w-name', 'tools/call add');
    await fits('the wire on a telephone');
    await phone.close('a telephone');
    const dark = await Sheet.open(browser, server.url, { theme: 'dark' });
    await dark.ready();
    await dark.call('gallery');
    await dark.check('the dark page');
    await given.shot(dark, 'dark');
    await dark.click('#theme');
    assert.equal(await dark.page.evaluate(() => document.documentElement.dataset.theme), 'light');
    await dark.check('the light page');
    await dark.close('dark');
    await server.end();
}
