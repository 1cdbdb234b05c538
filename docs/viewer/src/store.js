// A store: its metadata, its first ops, and counts per rank and kind.

import { parquetRead, parquetReadObjects, parquetSchema } from 'hyparquet';
import { Failure, open } from './remote.js';
import { footer, newer } from './catalogue.js';
import { compressors } from './codecs.js';

/** More ranks than these are not counted one by one. */
const RANKS = 1 << 21;
const COUNTED = ['rank', 'kind', 'subkind', 'bytes', 'duration_ps'];

const json = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
const list = (value) => (Array.isArray(value) ? value : []);

/** openStore opens the store of a row of the catalogue. */
export async function openStore(url, size) {
  const file = await open(url, size);
  const metadata = await footer(file, url);
  const values = new Map((metadata.key_value_metadata ?? []).map(({ key, value }) => [key, value ?? '']));
  const reason = newer(values.get('tracedag.version'));
  if (reason) throw new Failure(reason, 'Use a newer version of this page.');
  const columns = parquetSchema(metadata).children.map((c) => c.element.name);
  for (const c of ['rank', 'kind']) {
    if (!columns.includes(c)) throw new Failure(`${url} is no store: it has no column ${c}`, 'Publish the set again.');
  }
  return { url, file, metadata, values, columns, rows: Number(metadata.num_rows),
    comms: list(json(values.get('tracedag.comms'))).map(communicator),
    provenance: list(json(values.get('tracedag.provenance'))).filter((s) => s && typeof s === 'object').map(step) };
}

const communicator = (c) => {
  const ranges = list(c?.ranges).filter((r) => Array.isArray(r));
  return { name: String(c?.name ?? ''), ranges, ranks: ranges.reduce((n, r) => n + (Number(r[2]) || 0), 0) };
};
const step = (s) => ({
  program: String(s.program ?? ''), version: String(s.version ?? ''), seed: s.seed,
  command: list(s.command).map(String),
  inputs: list(s.inputs).map((i) => ({ name: String(i?.name ?? ''), sha256: String(i?.sha256 ?? '') })),
});

/** wrong turns an error of the reader into one for people. */
const wrong = (store, error) => (error instanceof Failure ? error
  : new Failure(`${store.url} is damaged: ${error.message}`, 'Download it and run tracecat --check.'));

/** chunkBytes returns the number of bytes of some columns of the store. */
export function chunkBytes(store, columns) {
  let n = 0;
  for (const group of store.metadata.row_groups) {
    for (const c of group.columns) {
      if (columns.includes(c.meta_data.path_in_schema[0])) n += Number(c.meta_data.total_compressed_size);
    }
  }
  return n;
}

/** countedBytes returns the number of bytes that counting the ops reads. */
export const countedBytes = (store) => chunkBytes(store, COUNTED);

/** firstOps returns the first ops of the store, with the number of each within its rank. */
export async function firstOps(store, n) {
  let ops;
  try {
    ops = await parquetReadObjects({ file: store.file, metadata: store.metadata, compressors, rowStart: 0, rowEnd: Math.min(n, store.rows) });
  } catch (error) {
    throw wrong(store, error);
  }
  let rank = null;
  let number = 0;
  for (const op of ops) {
    number = op.rank === rank ? number + 1 : 0;
    rank = op.rank;
    op.op = number;
  }
  return ops;
}

/** counts returns ops, bytes and time by kind and by rank. Progress is told the rows that were read. */
export async function counts(store, progress) {
  const kinds = new Map();
  const ranks = new Map();
  const columns = COUNTED.filter((c) => store.columns.includes(c));
  let start = 0;
  for (const group of store.metadata.row_groups) {
    const end = start + Number(group.num_rows);
    const chunk = await read(store, columns, start, end);
    for (let i = 0; i < end - start; i++) {
      add(kinds, ranks, chunk, i);
    }
    if (ranks.size > RANKS) throw new Failure(`The trace has over ${RANKS} ranks`, 'Query it with DuckDB.');
    start = end;
    progress(start);
    await new Promise((resolve) => setTimeout(resolve));
  }
  return { kinds: [...kinds.values()].sort((a, b) => b.ops - a.ops), ranks: [...ranks.values()] };
}

async function read(store, columns, rowStart, rowEnd) {
  const parts = {};
  for (const c of columns) parts[c] = new Array(rowEnd - rowStart);
  try {
    await parquetRead({ file: store.file, metadata: store.metadata, columns, rowStart, rowEnd, compressors,
      onChunk({ columnName, columnData, rowStart: at }) {
        for (let i = 0; i < columnData.length; i++) parts[columnName][at - rowStart + i] = columnData[i];
      } });
  } catch (error) {
    throw wrong(store, error);
  }
  return parts;
}

function add(kinds, ranks, chunk, i) {
  const kind = String(chunk.kind[i]);
  const subkind = String(chunk.subkind?.[i] ?? '');
  const key = `${kind} ${subkind}`;
  const bytes = Number(chunk.bytes?.[i] ?? 0);
  const time = Number(chunk.duration_ps?.[i] ?? 0);
  let k = kinds.get(key);
  if (!k) kinds.set(key, k = { kind, subkind, ops: 0, bytes: 0, time: 0 });
  k.ops++;
  k.bytes += bytes;
  k.time += time;
  const number = chunk.rank[i];
  let r = ranks.get(number);
  if (!r) ranks.set(number, r = { rank: number, ops: 0, calc: 0, send: 0, recv: 0, coll: 0, mem: 0, io: 0, sent: 0, collective: 0, time: 0 });
  r.ops++;
  if (kind in r) r[kind]++;
  if (kind === 'send') r.sent += bytes;
  if (kind === 'coll') r.collective += bytes;
  if (kind === 'calc') r.time += time;
}
