// Programs that the tests start, and the address of the page that each prints.

import { spawn } from 'node:child_process';

const ADDRESS = /(http:\/\/\S+#token=\S+)/;

/** Starts a program and waits until it prints the address of the page. */
export function start(program, args, environment = {}) {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...environment } });
    let output = '';
    return new Promise((resolve, reject) => {
        child.stderr.on('data', piece => {
            output += piece;
            const found = ADDRESS.exec(output);
            if (found) resolve({ url: found[1], origin: new URL(found[1]).origin, end: () => end(child) });
        });
        child.on('error', reject);
        child.on('exit', code => reject(new Error(`${program} ended with ${code}: ${output}`)));
    });
}

function end(child) {
    return new Promise(resolve => {
        child.on('exit', resolve);
        child.kill('SIGTERM');
    });
}
