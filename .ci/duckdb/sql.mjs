// Runs the blocks of sql of a page with DuckDB and compares the outputs that the page shows.
//
//     node sql.mjs [-update] PAGE.md SET_FOLDER
//
// The blocks run in order on one connection, in an empty folder in which "set" leads to the set. The block of text that
// follows a block of sql is the output of its last statement, in plain columns. With -update, the outputs are rewritten.

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';

const args = process.argv.slice(2);
const update = args[0] === '-update' && Boolean(args.shift());
const [page, set] = args.map((a) => resolve(a));

/** columns returns rows as text in columns: numbers to the right, NULL empty. */
function columns(names, rows) {
  const cells = rows.map((row) => row.map((v) => (v === null ? '' : Array.isArray(v) ? `[${v.join(', ')}]` : String(v))));
  const right = names.map((_, i) => rows.some((r) => r[i] !== null) && cells.every((r) => /^-?[\d.]*$/.test(r[i])));
  const widths = names.map((n, i) => Math.max([...n].length, ...cells.map((r) => [...r[i]].length)));
  const pad = (text, i) => {
    const space = ' '.repeat(widths[i] - [...text].length);
    return right[i] ? space + text : text + space;
  };
  return [names, ...cells].map((row) => row.map(pad).join('  ').trimEnd());
}

async function run(connection, sql) {
  const result = await connection.runAndReadAll(sql);
  const names = result.columnNames();
  const rows = result.getRowsJson();
  if (names[0] === 'explain_key') {
    return rows.flatMap((r) => r[1].trimEnd().split('\n'));
  }
  return columns(names, rows);
}

const lines = readFileSync(page, 'utf8').split('\n');
const result = [];
const folder = mkdtempSync(join(tmpdir(), 'sql-'));
symlinkSync(set, join(folder, 'set'));
process.chdir(folder);
const connection = await DuckDBConnection.create();
await connection.run('SET threads = 1');
let blocks = 0;
let failed = 0;

/** block returns the line after the block whose first line, a fence, is at. */
const block = (at) => {
  const end = lines.indexOf('```', at + 1);
  if (end < 0) throw new Error(`${page}:${at + 1}: block without an end`);
  return end + 1;
};

for (let i = 0; i < lines.length;) {
  if (lines[i] !== '```sql') {
    result.push(lines[i++]);
    continue;
  }
  const line = i + 1;
  const end = block(i);
  const sql = lines.slice(i + 1, end - 1).join('\n');
  result.push(...lines.slice(i, end));
  i = end;
  blocks++;
  let got;
  try {
    got = await run(connection, sql);
  } catch (error) {
    console.error(`${page}:${line}: ${error.message}`);
    failed++;
    continue;
  }
  while (lines[i] === '') result.push(lines[i++]);
  if (lines[i] !== '```text') continue; // the page shows no output
  const after = block(i);
  const shown = lines.slice(i + 1, after - 1);
  if (!update && shown.join('\n') !== got.join('\n')) {
    console.error(`${page}:${line}: expected\n${shown.join('\n')}\ngot\n${got.join('\n')}`);
    failed++;
  }
  result.push('```text', ...got, '```');
  i = after;
}
process.chdir('/');
rmSync(folder, { recursive: true });
if (update) writeFileSync(page, result.join('\n'));
console.log(`${blocks} queries, ${failed} failed`);
process.exit(failed || !blocks ? 1 : 0);
