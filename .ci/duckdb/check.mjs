// Queries a store with DuckDB and compares the answers with those that the program which wrote it expects, then has
// DuckDB write the same rows as a file of its own.
//
//     node check.mjs TRACE.parquet EXPECTED.json REWRITTEN.parquet
//
// EXPECTED.json has the rows of each query below, every value as a string or null.

import { readFileSync } from 'node:fs';
import { DuckDBConnection } from '@duckdb/node-api';

const queries = {
  kinds: `SELECT kind, subkind, count(*), sum(bytes) FROM trace GROUP BY ALL ORDER BY ALL`,
  dependencies: `SELECT sum(len(deps)), max(len(deps)), sum(list_sum(deps)), sum(len(start_deps)) FROM trace`,
  rank: `SELECT count(*), min(duration_ps), max(duration_ps), sum(duration_ps), count(name), max(measured_end_ps)
         FROM trace WHERE rank = 3 AND kind = 'calc'`,
  filter: `SELECT count(*), sum(peer) FROM trace
           WHERE duration_ps IN (SELECT max(duration_ps) FROM trace) OR tag = 17`,
};

const quote = (text) => `'${text.replaceAll("'", "''")}'`;
const [file, expectedFile, rewritten] = process.argv.slice(2);
const connection = await DuckDBConnection.create();

async function rows(sql) {
  const result = await connection.runAndReadAll(sql);
  return result.getRows().map((row) => row.map((value) => (value === null ? null : String(value))));
}

await connection.run(`CREATE VIEW trace AS FROM ${quote(file)}`);
const expected = JSON.parse(readFileSync(expectedFile, 'utf8'));
let failed = false;
for (const [name, sql] of Object.entries(queries)) {
  const got = JSON.stringify(await rows(sql));
  const want = JSON.stringify(expected[name]);
  if (got !== want) {
    console.error(`${name}: got ${got}, want ${want}`);
    failed = true;
  }
}

const metadata = await rows(`SELECT decode(key), decode(value) FROM parquet_kv_metadata(${quote(file)})`);
const pairs = metadata.map(([key, value]) => `${quote(key)}: ${quote(value)}`).join(', ');
await connection.run(`COPY trace TO ${quote(rewritten)} (FORMAT parquet, KV_METADATA {${pairs}})`);
process.exit(failed ? 1 : 0);
