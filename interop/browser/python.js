// A server of the official Python package, in each era.

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';

import { Sheet } from './browser.js';
import { start } from './servers.js';

const script = fileURLToPath(new URL('../python/one_era.py', import.meta.url));

export async function python(browser, given) {
    for (const era of ['handshake', 'envelope']) {
        const server = await start(given.program, ['inspect', '--', given.python, script, era]);
        const sheet = await Sheet.open(browser, server.url);
        await sheet.ready();
        await sheet.see('#session .badge', era);
        assert.match(await sheet.call('echo', { text: 'Grüße \u{1f980}' }), /Grüße \u{1f980}/u);
        assert.match(await sheet.call('progress'), /done/);
        await sheet.choose('tools', 'ask_user');
        await sheet.press('Call', '#detail form');
        await sheet.see('dialog', 'What is your name?');
        await sheet.fill('name', 'Ada', 'dialog');
        await sheet.press('Accept', 'dialog');
        assert.match(await sheet.outcome(), /Ada/);
        await sheet.choose('tools', 'ask_model');
        await sheet.press('Call', '#detail form');
        await sheet.see('dialog', 'hi');
        await sheet.type('#sampling-text', 'hello yourself');
        await sheet.press('Answer', 'dialog');
        assert.match(await sheet.outcome(), /hello yourself/);
        await sheet.choose('resources', 'text');
        await sheet.press('Read', '#detail');
        assert.match(await sheet.outcome(), /hello/);
        await sheet.choose('prompts', 'greeting');
        await sheet.fill('name', 'Ada');
        assert.match(await sheet.send('Get prompt'), /Greet Ada/);
        await sheet.choose('tools', 'echo');
        await sheet.fill('text', 'x');
        await sheet.press('Compare both eras', '#detail');
        await sheet.see('#detail .verdict', 'does not speak both eras');
        await sheet.check(`a Python server of the ${era} era`);
        await sheet.close('a Python server');
        await server.end();
    }
}
