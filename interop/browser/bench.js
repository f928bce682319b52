// What the page costs: first paint, the longest frame, and memory, with 1000 tools and 10 000 messages.
//
// Usage: bench.js DUPLEXER

import { fileURLToPath } from 'node:url';

import { launch, Sheet } from './browser.js';
import { start } from './servers.js';

const [program] = process.argv.slice(2);
const script = fileURLToPath(new URL('hostile_server.js', import.meta.url));
const browser = await launch();
const server = await start(program, ['inspect', '--', process.execPath, script, '0', 'many']);

/** The longest time between two frames while `work` runs, in milliseconds. */
async function longestFrame(sheet, work) {
    await sheet.page.evaluate(() => {
        globalThis.longest = 0;
        let before = performance.now();
        const tick = now => {
            globalThis.longest = Math.max(globalThis.longest, now - before);
            before = now;
            globalThis.ticking = requestAnimationFrame(tick);
        };
        globalThis.ticking = requestAnimationFrame(now => { before = now; tick(now); });
    });
    await work();
    return sheet.page.evaluate(() => {
        cancelAnimationFrame(globalThis.ticking);
        return globalThis.longest;
    });
}

const paints = [];
for (let run = 0; run < 5; run++) {
    const sheet = await Sheet.open(browser, server.url);
    await sheet.ready();
    paints.push(await sheet.page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime));
    await sheet.page.close();
}
paints.sort((a, b) => a - b);
const sheet = await Sheet.open(browser, server.url);
await sheet.ready();
const scrolling = await longestFrame(sheet, () => sheet.page.evaluate(async () => {
    const list = document.querySelector('#browse .vlist');
    for (let top = 0; top < list.scrollHeight; top += 400) {
        list.scrollTop = top;
        await new Promise(resolve => requestAnimationFrame(resolve));
    }
}));
const flood = await longestFrame(sheet, async () => {
    await sheet.call('flood', { messages: '12000' });
    await sheet.page.waitForFunction(async () => (await import('/inspector/state.js')).state.wire.length === 10000, { timeout: 120_000 });
});
const session = await sheet.page.createCDPSession();
await session.send('HeapProfiler.collectGarbage');
const { JSHeapUsedSize: used, Nodes: nodes } = await sheet.page.metrics();
console.log(`first paint              ${paints[2].toFixed(0)} ms (median of 5, ${paints[0].toFixed(0)} to ${paints[4].toFixed(0)})`);
console.log(`longest frame, scrolling ${scrolling.toFixed(1)} ms (1000 tools)`);
console.log(`longest frame, messages  ${flood.toFixed(1)} ms (12 000 messages at once)`);
console.log(`heap                     ${(used / 1e6).toFixed(1)} MB, ${nodes} nodes (10 000 messages)`);
await browser.close();
await server.end();
