// Visits the documentation site on a phone and on a desktop, in light and dark, and fails on what a reader would trip over.
//
// Usage: site.js SITE FOLDER    the folder of the built site, a folder for screenshots

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

import { launch, Sheet } from './browser.js';

const TYPES = {
    '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.png': 'image/png', '.svg': 'image/svg+xml', '.txt': 'text/plain', '.woff2': 'font/woff2',
};
const VIEWS = [
    { device: 'phone', width: 390, height: 844 },
    { device: 'desktop', width: 1440, height: 900 },
];
const THEMES = ['light', 'dark'];
/** Pages of which screenshots are taken and whose accessibility is checked: one of each kind. */
const SHOWN = [
    'index.html', 'guide/tools.html', 'guide/inspecting.html', 'guide/troubleshooting.html', 'docs/cli.html', 'docs/comparison.html', 'docs/performance.html',
    'docs/scale-out.html', 'docs/reliability.html', 'ARCHITECTURE.html',
];

/** Serves the files of a folder on a free port of this machine. */
async function serve(folder) {
    const server = createServer(async (request, response) => {
        const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
        try {
            const body = await readFile(join(folder, path));
            response.writeHead(200, { 'content-type': `${TYPES[extname(path)] ?? 'application/octet-stream'}; charset=utf-8` }).end(body);
        } catch {
            response.writeHead(404).end();
        }
    });
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    return { origin: `http://127.0.0.1:${server.address().port}`, end: () => server.close() };
}

/** Returns the pages of a site. The one for printing repeats all others. */
function pages(folder) {
    return readdirSync(folder, { recursive: true })
        .filter(file => file.endsWith('.html') && !['print.html', 'toc.html', '404.html'].includes(file))
        .sort();
}

/** Returns what is wider than the window, unless it or what it is in scrolls. The page as a whole must not: mdBook would cut it off. */
function overflowing() {
    const width = document.documentElement.clientWidth;
    const scrolls = element => element.localName !== 'main'
        && (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
    return [...document.querySelectorAll('main *')]
        .filter(element => element.getBoundingClientRect().right > width + 1 && !scrolls(element.parentElement))
        .map(element => `wider than the window: ${element.localName}: ${element.textContent.trim().slice(0, 60)}`);
}

/** Opens every page in one window, and returns the faults. */
async function visit(browser, origin, files, view, theme) {
    const sheet = await Sheet.open(browser, `${origin}/index.html`, { ...view, theme });
    const faults = [];
    for (const file of files) {
        const what = `${file}, ${view.device}, ${theme}`;
        await sheet.page.goto(`${origin}/${file}`, { waitUntil: 'load' });
        faults.push(...(await sheet.page.evaluate(overflowing)).map(fault => `${what}: ${fault}`));
        const broken = await sheet.page.$$eval('main img', images => images.filter(image => image.naturalWidth === 0).map(image => image.src));
        faults.push(...broken.map(source => `${what}: ${source} is not shown`));
        if (SHOWN.includes(file)) {
            await sheet.page.screenshot({ path: `${shots}/${file.replace('.html', '').replaceAll('/', '-')}-${view.device}-${theme}.png` });
            faults.push(...await failure(sheet.check(what, ['color-contrast', 'image-alt', 'link-name'])));
        }
        faults.push(...await failure(sheet.sound(what)));
        sheet.faults.length = 0;
    }
    await sheet.page.close();
    return faults;
}

/** Returns the message of a check that fails. */
async function failure(check) {
    try {
        await check;
        return [];
    } catch (error) {
        return [error.message];
    }
}

/** Searches as a reader does: a key, a word, the first result. */
async function search(browser, origin) {
    const sheet = await Sheet.open(browser, `${origin}/index.html`);
    await sheet.page.keyboard.press('s');
    await sheet.page.waitForSelector('#mdbook-searchbar, #searchbar', { visible: true });
    await sheet.page.type('#mdbook-searchbar, #searchbar', 'elicit');
    await sheet.page.waitForFunction(() => document.querySelector('#mdbook-searchresults a, #searchresults a'), { timeout: 30_000 });
    const found = await sheet.page.$$eval('#mdbook-searchresults a, #searchresults a', links => links.map(link => link.getAttribute('href')));
    assert.ok(found.some(link => link.includes('asking')), `a search for 'elicit' does not find the guide: ${found}`);
    await sheet.page.screenshot({ path: `${shots}/search.png` });
    await sheet.close('the search');
}

const [folder, shots] = process.argv.slice(2);
mkdirSync(shots, { recursive: true });
const files = pages(folder);
const site = await serve(folder);
const browser = await launch();
const faults = [];
try {
    await search(browser, site.origin);
    for (const view of VIEWS) {
        for (const theme of THEMES) {
            // The layout does not depend on the colours: in dark, only the pages that are shown are opened.
            const some = theme === 'light' ? files : files.filter(file => SHOWN.includes(file));
            faults.push(...await visit(browser, site.origin, some, view, theme));
        }
    }
} catch (error) {
    faults.push(error.message);
} finally {
    await browser.close();
    site.end();
}
for (const fault of faults) console.error(`error: ${fault}`);
console.log(`${files.length} pages at ${VIEWS.map(view => view.width).join(' and ')} px, light and dark: ${faults.length} faults; screenshots are in ${shots}`);
process.exit(faults.length === 0 ? 0 : 1);
