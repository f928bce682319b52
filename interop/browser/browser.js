// Chromium, and a page that records everything which must not happen in it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import puppeteer from 'puppeteer-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Returns a browser that is not the pinned one. One on `PATH` can be of any version, and some send requests of their own. */
function installed() {
    if (process.env.CHROMIUM) return process.env.CHROMIUM;
    if (process.platform === 'linux' && process.arch === 'x64') return null;
    for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
        try {
            return execFileSync('which', [name], { encoding: 'utf8' }).trim();
        } catch {
            // The next name.
        }
    }
    return null;
}

/** Starts a browser, with further options of its command line. */
export async function launch(more = []) {
    const own = installed();
    if (own) return puppeteer.launch({ executablePath: own, headless: true, args: ['--no-sandbox', ...more] });
    const { default: chromium } = await import('@sparticuz/chromium');
    // Each frame of another origin gets a process of its own, as in a browser of a person.
    const args = chromium.args.filter(arg => !/single-process|no-zygote|disable-web-security|site-isolation|disable-features/.test(arg));
    return puppeteer.launch({ executablePath: await chromium.executablePath(), headless: 'shell', args: [...args, '--site-per-process', ...more] });
}

/** A page of the inspector, with what a person does on it. */
export class Sheet {
    constructor(page) {
        this.page = page;
        this.faults = [];
        this.expected = [];
        this.requests = [];
    }

    static async open(browser, url, { width = 1440, height = 900, theme = 'light' } = {}) {
        const page = await browser.newPage();
        const sheet = new Sheet(page);
        await page.setViewport({ width, height });
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
        page.on('console', message => {
            if (message.type() === 'error' || message.type() === 'warn') sheet.faults.push(`console: ${message.text()}`);
        });
        page.on('pageerror', error => sheet.faults.push(`error: ${error.message}`));
        page.on('request', request => sheet.requests.push(request.url()));
        await page.evaluateOnNewDocument(() => {
            globalThis.violations = [];
            addEventListener('securitypolicyviolation', event => globalThis.violations.push(`${event.effectiveDirective} ${event.blockedURI}`));
        });
        await page.goto(url);
        return sheet;
    }

    /** Waits until the lists are there. */
    async ready() {
        await this.page.waitForSelector('body[data-ready]');
    }

    /** Fails if something happened that must not: errors, violations of the policy, requests to other hosts. */
    async sound(what) {
        const unexpected = this.faults.filter(fault => !this.expected.some(pattern => pattern.test(fault)));
        assert.deepEqual(unexpected, [], `${what}: errors of the page`);
        assert.deepEqual(await this.page.evaluate(() => globalThis.violations), [], `${what}: violations of the policy`);
        const outside = this.requests.filter(url => !/^(http:\/\/(127\.0\.0\.1|localhost)[:/]|data:|blob:|about:)/.test(url));
        assert.deepEqual(outside, [], `${what}: requests to other hosts`);
    }

    /** Fails on faults of accessibility, errors of the page and requests to other hosts. */
    async check(what, rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']) {
        await this.page.evaluate(axe);
        const found = await this.page.evaluate(async runOnly => {
            const result = await globalThis.axe.run(document, { iframes: false, runOnly });
            return result.violations.map(one => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`);
        }, rules);
        assert.deepEqual(found, [], `${what}: accessibility`);
        await this.sound(what);
    }

    async close(what) {
        await this.sound(what);
        await this.page.close();
    }

    text(selector) {
        return this.page.$eval(selector, element => element.innerText);
    }

    texts(selector) {
        return this.page.$$eval(selector, elements => elements.map(element => element.innerText));
    }

    /** Waits for an element whose text contains `text`. */
    async see(selector, text, timeout = 30_000) {
        try {
            await this.page.waitForFunction(
                (at, expected) => [...document.querySelectorAll(at)].some(element => element.innerText?.includes(expected)),
                { timeout }, selector, text);
        } catch {
            const shown = (await this.texts(selector)).join('\n').slice(0, 2000);
            assert.fail(`'${text}' does not appear in ${selector}, which shows: ${shown}`);
        }
    }

    gone(selector) {
        return this.page.waitForSelector(selector, { hidden: true, timeout: 30_000 });
    }

    async click(selector) {
        await this.page.locator(selector).click();
    }

    /** Clicks the button of this name within an element. */
    async press(name, within = 'body') {
        await this.page.locator(`${within} ::-p-xpath(.//button[normalize-space()="${name}"] | .//a[normalize-space()="${name}"])`).click();
    }

    async type(selector, text) {
        await this.page.locator(selector).fill(text);
    }

    /** Clicks a row with the mouse. `pick` returns its id. */
    async clickRow(selector, pick, ...args) {
        await this.page.locator(`#${await this.page.$$eval(selector, pick, ...args)}`).click();
    }

    /** Saves files into a folder, and returns the next one, as a person finds it. `start` begins the download. */
    async saved(folder, start) {
        const session = await this.page.browser().target().createCDPSession();
        await session.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: folder, eventsEnabled: true });
        const name = new Promise(resolve => {
            let suggested = null;
            session.on('Browser.downloadWillBegin', event => { suggested = event.suggestedFilename; });
            session.on('Browser.downloadProgress', event => { if (event.state === 'completed') resolve(suggested); });
        });
        await start();
        const path = join(folder, await name);
        await session.detach();
        return path;
    }

    /** Opens an item of a list as a person does: tab, search, first row. */
    async choose(kind, name) {
        await this.click(`#browse [data-tab="${kind}"]`);
        await this.type('#search', name);
        await this.page.waitForFunction(
            expected => [...document.querySelectorAll('#browse .r-name')].some(row => row.firstChild?.textContent === expected),
            { timeout: 30_000 }, name);
        await this.clickRow('#browse .row', (rows, expected) => rows.find(row => row.querySelector('.r-name').firstChild.textContent === expected).id, name);
        await this.see('#detail h2', name);
    }

    /** Selects the newest message of the wire that contains a text. */
    async message(text) {
        await this.click('#dock [data-tab="wire"]');
        await this.type('#dock [aria-label="Filter messages"]', text);
        await this.page.waitForFunction(() => document.querySelectorAll('#dock .row').length > 0, { timeout: 30_000 });
        await this.clickRow('#dock .row', rows => rows.toSorted((a, b) => Number(a.getAttribute('aria-posinset')) - Number(b.getAttribute('aria-posinset'))).at(-1).id);
    }

    /** Fills a field of a form, of any kind. */
    async fill(field, value, within = '#detail') {
        const at = `${within} [data-field="${field}"]`;
        const kind = await this.page.$eval(`${at} input, ${at} textarea, ${at} select`, element => element.localName);
        if (kind === 'select') {
            const chosen = await this.page.$$eval(`${at} select option`, (options, label) => options.find(option => option.textContent === label)?.value, value);
            assert.notEqual(chosen, undefined, `a choice ${value}`);
            await this.page.select(`${at} select`, chosen);
        } else await this.type(`${at} :is(input, textarea)`, String(value));
    }

    /** Sends the form, and returns the text of the outcome. */
    async send(name = 'Call') {
        await this.page.$$eval('#detail .outcome-place > *', elements => elements.forEach(element => element.remove()));
        await this.press(name, '#detail form');
        return this.outcome();
    }

    async outcome() {
        await this.page.waitForSelector('#detail .outcome-place .result', { timeout: 60_000 });
        return this.text('#detail .outcome-place .result');
    }

    async call(tool, values = {}) {
        await this.choose('tools', tool);
        for (const [field, value] of Object.entries(values)) await this.fill(field, value);
        return this.send();
    }
}
