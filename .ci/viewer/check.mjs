// Opens docs/viewer in headless Chromium with a set, with sets made here, and with folders that are no set.
//
//     node check.mjs PAGE_FOLDER SET_FOLDER [PICTURES_FOLDER]
//
// Prints a line for each finding; exit status 1 if there is one.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createRequire } from 'node:module';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { chromium } from 'playwright-core';
import { compressors } from 'hyparquet-compressors';

const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const [pageFolder, setFolder, pictures] = process.argv.slice(2);
let findings = 0;
const find = (text) => {
  findings++;
  console.log(String(text).slice(0, 400));
};
const expect = (condition, text) => { if (!condition) find(text); };

// Sets made here: made[path] is the content.
const made = {};
const hostile = ['<img src=x onerror="document.title=\'pwned\'">', '</script><script>alert(1)</script>', '"\'><svg/onload=alert(1)>',
  '\u202eabc \u05e9\u05dc\u05d5\u05dd', 'javascript:alert(1)', '&lt;b&gt;', 'x'.repeat(500), '{{7*7}}'];
const long = (f, n) => Array.from({ length: n }, (_, i) => BigInt(f(i)));
const texts = (f, n) => Array.from({ length: n }, (_, i) => f(i));
const random = (() => { let s = 1; return () => (s = (s * 48271) % 2147483647); })();

function catalogue(n, { path: at = (i) => `traces/workload=w/trace=t${i}/t${i}.parquet`, bytes = () => 1, version = '1.2', ops = (i) => i * 1000 + 1 } = {}) {
  const title = (i) => hostile[i % hostile.length];
  return Buffer.from(parquetWriteBuffer({ codec: 'UNCOMPRESSED', columnData: [
    { name: 'trace', data: texts((i) => `t${i}`, n), type: 'STRING' }, { name: 'path', data: texts(at, n), type: 'STRING' },
    { name: 'bytes', data: long(bytes, n), type: 'INT64' }, { name: 'store_version', data: texts(() => version, n), type: 'STRING' },
    { name: 'title', data: texts(title, n), type: 'STRING' }, { name: 'workload', data: texts((i) => ['llm', 'horovod', title(i)][i % 3], n), type: 'STRING' },
    { name: 'source_format', data: texts((i) => (i % 2 ? 'goal' : title(i)), n), type: 'STRING' },
    { name: 'ranks', data: long((i) => 1 + i % 64, n), type: 'INT64' }, { name: 'ops', data: long(ops, n), type: 'INT64' },
    { name: 'messages', data: long((i) => i, n), type: 'INT64' }, { name: 'bytes_sent', data: texts((i) => (i % 5 ? BigInt(i) << 20n : null), n), type: 'INT64' },
    { name: 'critical_path_ps', data: long((i) => i * 1e9, n), type: 'INT64' }, { name: 'license', data: texts(title, n), type: 'STRING' },
    { name: 'command', data: texts(title, n), type: 'STRING' }] }));
}

const storeRows = 120_000;
const store = Buffer.from(parquetWriteBuffer({ codec: 'UNCOMPRESSED', rowGroupSize: 50_000, columnData: [
  { name: 'rank', data: Int32Array.from({ length: storeRows }, (_, i) => Math.floor(i / 1000)), type: 'INT32' },
  { name: 'kind', data: texts((i) => (i % 2 ? 'send' : hostile[0]), storeRows), type: 'STRING' },
  { name: 'bytes', data: long(() => random(), storeRows), type: 'INT64' },
  { name: 'name', data: texts((i) => hostile[i % hostile.length], storeRows), type: 'STRING' }],
kvMetadata: [{ key: 'tracedag.version', value: '1.2' }, { key: 'tracedag.title', value: hostile[0] }, { key: hostile[1], value: hostile[2] },
  { key: 'tracedag.comms', value: JSON.stringify([{ name: hostile[0], ranges: [[0, 1, 120]] }, null, { ranges: 'x' }]) },
  { key: 'tracedag.provenance', value: JSON.stringify([{ program: hostile[0], command: hostile, inputs: [{ name: hostile[2], sha256: hostile[1] }] }, 7, { command: 3 }]) }] }));
made['/hostile/catalogue.parquet'] = catalogue(1, { path: () => 'traces/t.parquet', bytes: () => store.length, ops: () => storeRows });
made['/hostile/traces/t.parquet'] = store;
made['/many/catalogue.parquet'] = catalogue(10_000, { ops: (i) => (i * 7919) % 10_007 });
made['/outside/catalogue.parquet'] = catalogue(3, { path: (i) => ['https://example.org/x', '../x', '//example.org/x'][i] });
made['/newer/catalogue.parquet'] = catalogue(1, { version: '2.0' });
const newer = Buffer.from(store);
newer[newer.indexOf('tracedag.version') + 'tracedag.version'.length + 2] = 0x39;
made['/newerstore/catalogue.parquet'] = catalogue(1, { path: () => 't.parquet', bytes: () => newer.length });
made['/newerstore/t.parquet'] = newer;
made['/changed/catalogue.parquet'] = catalogue(1, { path: () => 't.parquet', bytes: () => 1000 });
made['/changed/t.parquet'] = store;
const bad = Buffer.from(store);
for (let i = 100; i < 60_000; i++) bad[i] = random();
made['/damaged/catalogue.parquet'] = catalogue(1, { path: () => 't.parquet', bytes: () => bad.length });
made['/damaged/t.parquet'] = bad;
made['/notparquet/catalogue.parquet'] = Buffer.from('<!doctype html><title>Sign in</title>');
made['/store/catalogue.parquet'] = store;
const many = Buffer.from(parquetWriteBuffer({ codec: 'UNCOMPRESSED', columnData: [
  { name: 'rank', data: new Int32Array(20_000), type: 'INT32' }, { name: 'kind', data: texts((i) => `kind ${i}`, 20_000), type: 'STRING' },
  { name: 'name', data: texts(() => 'x'.repeat(5000), 20_000), type: 'STRING' }],
kvMetadata: [{ key: 'tracedag.provenance', value: JSON.stringify(texts((i) => ({ program: `p${i}`, command: ['y'.repeat(5000)] }), 5000)) }] }));
made['/kinds/catalogue.parquet'] = catalogue(1, { path: () => 't.parquet', bytes: () => many.length, ops: () => 20_000 });
made['/kinds/t.parquet'] = many;
made['/none/catalogue.parquet'] = catalogue(0);

// The servers: that of the page, and two of other sites, of which the first allows requests of pages of others but hides
// Content-Range. /plain/... is /... without range requests.
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };
const log = [];
const serve = (cors) => http.createServer((request, response) => {
  let name = decodeURIComponent(new URL(request.url, 'http://x').pathname);
  const plain = name.startsWith('/plain/');
  if (plain) name = name.slice('/plain'.length);
  const content = read(name);
  const range = plain ? null : /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
  if (!content) {
    response.writeHead(name.startsWith('/broken/') ? 500 : 404).end();
    return;
  }
  const [from, to] = range ? [Number(range[1]), Math.min(Number(range[2]) + 1, content.length)] : [0, content.length];
  const headers = { 'Content-Type': types[path.extname(name.endsWith('/') ? 'index.html' : name)] ?? 'application/octet-stream', 'Content-Length': to - from };
  if (cors) headers['Access-Control-Allow-Origin'] = '*';
  if (range) headers['Content-Range'] = `bytes ${from}-${to - 1}/${content.length}`;
  log.push({ name, status: range ? 206 : 200, bytes: to - from });
  response.writeHead(range ? 206 : 200, headers).end(request.method === 'HEAD' ? '' : content.subarray(from, to));
});

function read(name) {
  if (made[name]) return made[name];
  const m = /^\/(viewer|set|flat)\/(.*)$/.exec(name);
  if (!m || m[2].split('/').includes('..')) return null;
  for (const folder of { viewer: [pageFolder], set: [setFolder], flat: [pageFolder, setFolder] }[m[1]]) {
    const file = path.join(folder, m[2] || 'index.html');
    if (fs.existsSync(file) && fs.statSync(file).isFile()) return fs.readFileSync(file);
  }
  return null;
}

const servers = [serve(), serve(true), serve()];
for (const server of servers) await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const [origin, open, closed] = servers.map((server) => `http://127.0.0.1:${server.address().port}`);
const executablePath = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((f) => fs.existsSync(f));
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run', '--disable-component-update'] });

/** visit opens an address in a new context, runs f with its page, and reports errors of the console and foreign requests. */
async function visit(name, address, options, f) {
  const { missing, site = origin, ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...rest });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.on('request', (r) => { if (!r.url().startsWith(origin) && !r.url().startsWith(site) && !r.url().startsWith('data:')) find(`${name}: requests ${r.url()}`); });
  page.on('console', (m) => {
    if (['error', 'warning'].includes(m.type()) && !(missing && /Failed to load resource|blocked by CORS/.test(m.text()))) find(`${name}: console: ${m.text()}`);
  });
  page.on('pageerror', (e) => find(`${name}: exception: ${e.message}`));
  page.on('dialog', (d) => { find(`${name}: dialog ${d.message()}`); d.dismiss(); });
  try {
    await page.goto(origin + address);
    await f(page);
    expect(!/pwned/.test(await page.title()), `${name}: a text of the set ran as a script`);
    expect(await page.locator('main img, main svg, main script').count() === 0, `${name}: a text of the set became an element`);
  } catch (error) {
    find(`${name}: ${error.message}`);
  }
  await context.close();
}

async function look(name, page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  for (const v of violations) find(`${name}: axe: ${v.id} (${v.impact}): ${v.help}: ${v.nodes[0]?.html}`);
  const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
  expect(wide <= 0, `${name}: ${wide} px wider than the screen`);
  if (pictures) {
    fs.mkdirSync(pictures, { recursive: true });
    await page.screenshot({ path: path.join(pictures, `${name.replaceAll(' ', '-')}.png`), fullPage: true });
  }
}

const summary = async (page) => {
  await page.waitForFunction(() => [...document.querySelectorAll('h2')].some((h) => h.textContent === 'First ops')
    && !/Counting|Reading/.test(document.getElementById('view').textContent) || document.querySelector('.box'));
  return page.locator('#view').innerText();
};
const digits = (text) => Number(text.replace(/\D/g, ''));
const rows = (await parquetReadObjects({ file: await asyncBufferFromFile(path.join(setFolder, 'catalogue.parquet')), compressors }));

const schemes = { desktop: {}, dark: { colorScheme: 'dark' }, phone: { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true } };
for (const [scheme, options] of Object.entries(schemes)) {
  await visit(scheme, '/viewer/?set=../set/', options, async (page) => {
    await page.waitForSelector('tbody a');
    expect(await page.locator('tbody tr').count() === Math.min(rows.length, 100), `${scheme}: expected ${rows.length} traces`);
    for (const row of rows.slice(0, 100)) expect(await page.getByRole('link', { name: row.trace, exact: true }).count() === 1, `${scheme}: ${row.trace} is not listed`);
    await look(`${scheme} list`, page);
    await page.getByRole('link', { name: rows[0].trace, exact: true }).click();
    const text = await summary(page);
    for (const part of ['Catalogue entry', 'Ops by kind', 'Ops and bytes per rank', 'First ops', 'Provenance', 'Communicators', 'Metadata',
      `simulate ${rows[0].path}`, rows[0].sha256]) expect(text.includes(part), `${scheme}: the summary has no ${part}`);
    await look(`${scheme} trace`, page);
    await page.goBack();
    await page.waitForSelector('tbody a');
  });
}

// Every trace of the set: the counts of the page are those of the catalogue.
await visit('set', '/viewer/?set=../set/', {}, async (page) => {
  for (const row of rows.slice(0, 100)) {
    await page.goto(`${origin}/viewer/?set=../set/#${new URLSearchParams({ trace: row.trace })}`);
    await page.waitForFunction((t) => document.querySelector('#trace')?.textContent === t, row.trace);
    const text = await summary(page);
    expect(!text.includes('Cannot be shown'), `${row.trace}: ${text.slice(0, 300)}`);
    const ops = (await page.locator('table:has(caption:text("Sums over all ranks")) tbody tr td:nth-child(2)').allInnerTexts()).map(digits);
    expect(ops.reduce((a, b) => a + b, 0) === Number(row.ops), `${row.trace}: ${ops} ops by kind, ${row.ops} in the catalogue`);
    const address = await page.getByRole('link', { name: 'Download the store' }).getAttribute('href');
    expect(address === `${origin}/set/${row.path}`, `${row.trace}: the download is ${address}`);
  }
});

for (const [name, address] of [['same folder', '/flat/'], ['no ranges', '/viewer/?set=../plain/hostile/'], ['file as set', '/viewer/?set=../set/catalogue.parquet']]) {
  await visit(name, address, {}, async (page) => {
    await page.locator('tbody a').first().click();
    const text = await summary(page);
    expect(text.includes('First ops') && !text.includes('Cannot be shown'), `${name}: ${text.slice(0, 200)}`);
  });
}

await visit('hostile', '/viewer/?set=../hostile/', {}, async (page) => {
  log.length = 0;
  await page.locator('tbody a').first().click();
  const text = await summary(page);
  for (const h of hostile.slice(0, 3)) expect(text.includes(h), `hostile: ${h} is not shown as it is`);
  await look('hostile trace', page);
  const got = log.filter((l) => l.name.endsWith('t.parquet'));
  expect(got.length > 2 && got.every((l) => l.status === 206), `hostile: expected range requests, found ${JSON.stringify(got)}`);
});

// The number of traces of the filter below.
const matching = texts((i) => i % 3 === 0 && i % 64 >= 32 && i % 5 !== 0 && i < 1024, 10_000).filter(Boolean).length;
await visit('10,000 traces', '/viewer/?set=../many/', {}, async (page) => {
  await page.waitForSelector('tbody a');
  const ms = async (what, f, limit) => {
    const t = Date.now();
    await f();
    if (Date.now() - t > limit) find(`10,000 traces: ${what} takes ${Date.now() - t} ms`);
  };
  const shown = (text) => page.getByText(text, { exact: true }).waitFor();
  expect(await page.locator('tbody tr').count() === 100, '10,000 traces: expected pages of 100');
  await ms('sort', async () => {
    await page.getByRole('button', { name: 'ops', exact: true }).click();
    await page.waitForSelector('th[aria-sort=descending]');
  }, 5000);
  const ops = (await page.locator('tbody td:nth-child(5)').allInnerTexts()).map(digits);
  expect(ops[0] === 10_006 && ops.every((n, i) => i === 0 || n <= ops[i - 1]), `10,000 traces: not sorted: ${ops.slice(0, 5)}`);
  await ms('filter', async () => {
    await page.getByLabel('Filter').fill('workload=llm ranks>=33 bytes_sent<1GiB');
    await shown(`${matching} of 10\u202f000 traces`);
  }, 5000);
  await page.getByLabel('Filter').fill('no such trace');
  await shown('No trace has all these terms.');
  await page.getByLabel('Filter').fill('');
  await page.getByRole('button', { name: 'Last' }).click();
  await shown('traces 9901–10000 of 10000');
  await look('many traces', page);
});

await visit('keyboard', '/viewer/?set=../set/', {}, async (page) => {
  await page.waitForSelector('tbody a');
  const controls = await page.locator('a[href], button:enabled, input, [tabindex="0"]').evaluateAll((all) => all.map((e, i) => { e.dataset.number = i; }).length);
  const seen = new Set();
  for (let i = 0; i < controls; i++) {
    await page.keyboard.press('Tab');
    const e = await page.evaluate(() => {
      const s = getComputedStyle(document.activeElement);
      return { number: document.activeElement.dataset.number, html: document.activeElement.outerHTML.slice(0, 120), ring: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 };
    });
    seen.add(e.number);
    expect(e.ring, `keyboard: no visible focus on ${e.html}`);
  }
  expect(seen.size === controls, `keyboard: Tab reaches ${seen.size} of ${controls} controls`);
  await page.locator('th button').first().focus();
  await page.keyboard.press('Enter');
  expect(await page.evaluate(() => document.activeElement.dataset.column) === 'trace', 'keyboard: sorting loses the focus');
  await page.locator('tbody a').first().focus();
  await page.keyboard.press('Enter');
  await summary(page);
  expect(await page.evaluate(() => document.activeElement.id) === 'trace', 'keyboard: the summary does not get the focus');
});

const errors = { empty: 'has no catalogue.parquet', notparquet: 'is no Parquet file', store: 'is not the catalogue of a set', broken: 'the server answers 500' };
for (const [name, message] of Object.entries(errors)) {
  await visit(name, `/viewer/?set=../${name}/`, { missing: true }, async (page) => {
    await page.waitForSelector('.box');
    const text = await page.locator('.box').innerText();
    expect(text.includes(message), `${name}: expected ${message}, found ${text}`);
    await look(`error ${name}`, page);
  });
}
for (const [name, message] of Object.entries({ 'javascript:alert(1)': 'Expected a URL of http or https', 'http://[': 'is no URL' })) {
  await visit(name, `/viewer/?set=${encodeURIComponent(name)}`, {}, async (page) => {
    const text = await page.locator('.box').innerText();
    expect(text.includes(message), `${name}: expected ${message}, found ${text}`);
  });
}
const broken = { outside: 'outside of the set', newer: 'schema version 2.0', newerstore: 'schema version 9.2', changed: '1000 in the catalogue', damaged: 'is damaged', many: 'does not exist' };
for (const [name, message] of Object.entries(broken)) {
  await visit(name, `/viewer/?set=../${name}/#trace=t0`, { missing: true }, async (page) => {
    await page.waitForSelector('.box');
    const text = await page.locator('#view').innerText();
    expect(text.includes(message), `${name}: expected ${message}, found ${text}`);
  });
}
await visit('another site', `/viewer/?set=${open}/many/`, { site: open }, async (page) => {
  await page.waitForSelector('tbody a');
  const got = log.filter((l) => l.name.startsWith('/many/')).slice(-4);
  expect(got.some((l) => l.status === 206), `another site: expected range requests, found ${JSON.stringify(got)}`);
});
await visit('closed site', `/viewer/?set=${closed}/set/`, { site: closed, missing: true }, async (page) => {
  await page.waitForSelector('.box');
  expect((await page.locator('.box').innerText()).includes('Access-Control-Allow-Origin'), 'closed site: the error names no remedy');
});
await visit('20,000 kinds', '/viewer/?set=../kinds/#trace=t0', {}, async (page) => {
  expect((await summary(page)).includes('kinds 1–25 of 20000'), '20,000 kinds: expected pages of kinds');
  const n = await page.evaluate(() => document.getElementsByTagName('*').length);
  expect(n < 5000, `20,000 kinds: ${n} elements`);
});
await visit('no traces', '/viewer/?set=../none/', {}, async (page) => { await page.getByText('0 traces').waitFor(); });
await visit('unknown trace', '/viewer/?set=../set/#trace=nothing', {}, async (page) => { await page.getByText('The set has no trace nothing').waitFor(); });
await visit('phone, many', '/viewer/?set=../many/', schemes.phone, async (page) => {
  await page.waitForSelector('tbody a');
  await look('phone many', page);
});

await browser.close();
for (const server of servers) server.close();
console.log(`${rows.length} traces, ${findings} findings`);
process.exit(findings ? 1 : 0);
