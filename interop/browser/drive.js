// Uses the inspector page in a real browser as a person does, and fails on the first difference.
//
// Usage: drive.js DUPLEXER PYTHON FOLDER    the program, a Python with the official package, a folder for screenshots

import { mkdirSync } from 'node:fs';

import { launch } from './browser.js';
import { demo, narrow } from './demo.js';
import { hostile, many } from './hostile.js';
import { login } from './login.js';
import { official } from './official.js';
import { python } from './python.js';
import { views } from './views.js';

const [program, pythonProgram, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const given = { program, python: pythonProgram, shot: (sheet, name) => sheet.page.screenshot({ path: `${folder}/${name}.png` }) };

const browser = await launch();
let failed = false;
try {
    for (const [name, suite] of Object.entries({ demo, narrow, views, official, python, login, hostile, many })) {
        await suite(browser, given);
        console.log(`${name}: ok`);
    }
} catch (error) {
    failed = true;
    console.error(error);
    for (const page of await browser.pages()) await page.screenshot({ path: `${folder}/failed.png` }).catch(() => {});
    console.error(`a screenshot of the failure is in ${folder}/failed.png`);
} finally {
    await browser.close();
}
process.exit(failed ? 1 : 0);
