// The catalogue of a set: reading, filtering, sorting.

import { parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import { Failure, open } from './remote.js';
import { compressors } from './codecs.js';
import { parse } from './units.js';

/** The newest major version of the store that the page knows. */
export const MAJOR = 1;
const MOST = 1_000_000;
const NEEDED = ['trace', 'path', 'ops', 'ranks'];

/** newer returns the reason not to read a store of this version, an empty string if there is none. */
export function newer(version) {
  const major = Number(/^(\d+)\./.exec(String(version ?? ''))?.[1] ?? NaN);
  return major > MAJOR ? `The store has schema version ${version}; this page reads versions ${MAJOR}.x` : '';
}

/** footer reads the footer of a Parquet file. */
export async function footer(file, url) {
  try {
    return await parquetMetadataAsync(file);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(`${url} is no Parquet file: ${error.message}`, 'Publish the set again, or check the address.');
  }
}

/** load returns the columns and rows of catalogue.parquet. */
export async function load(set) {
  const url = new URL('catalogue.parquet', set);
  let file;
  try {
    file = await open(url);
  } catch (error) {
    if (!/\(404\)/.test(error.message)) throw error;
    throw new Failure(`${set} has no catalogue.parquet`,
      'Expected a folder that traceconv --publish made. Give its URL below.');
  }
  const metadata = await footer(file, url);
  const columns = parquetSchema(metadata).children.map((c) => c.element.name);
  const missing = NEEDED.filter((c) => !columns.includes(c));
  if (missing.length) {
    throw new Failure(`${url} is not the catalogue of a set: it has no column ${missing.join(', ')}`,
      'Expected a folder that traceconv --publish made.');
  }
  if (metadata.num_rows > MOST) {
    throw new Failure(`${url} has ${metadata.num_rows} rows; this page lists up to ${MOST}`, 'Query it with DuckDB.');
  }
  let rows;
  try {
    rows = await parquetReadObjects({ file, metadata, compressors });
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(`${url} is damaged: ${error.message}`, 'Download the set again, or compare it with SHA256SUMS.');
  }
  for (const row of rows) {
    row.trace = String(row.trace);
    // A lower-case text of all strings makes each search one test.
    Object.defineProperty(row, 'text', { value: Object.entries(row)
      .filter(([k, v]) => !/sha256$/.test(k) && (typeof v === 'string' || Array.isArray(v))).map(([, v]) => String(v)).join('\n')
      .toLowerCase() });
  }
  return { columns, rows };
}

const COMPARE = { '=': (a, b) => a === b, '!=': (a, b) => a !== b, '>': (a, b) => a > b, '>=': (a, b) => a >= b,
  '<': (a, b) => a < b, '<=': (a, b) => a <= b };

function condition(term, columns) {
  const m = /^(\w+)(!=|>=|<=|=|>|<)(.+)$/.exec(term);
  if (!m || !columns.includes(m[1])) return (row) => row.text.includes(term.toLowerCase());
  const [, column, operator, text] = m;
  const compare = COMPARE[operator];
  const number = parse(text);
  return (row) => {
    const value = row[column];
    if (value === null || value === undefined) return false;
    if (typeof value === 'bigint' || typeof value === 'number') return compare(Number(value), number);
    if (Array.isArray(value)) return value.includes(text) === (operator === '=');
    return compare(String(value).toLowerCase(), text.toLowerCase());
  };
}

/**
 * select returns the rows with all terms of a query, which spaces separate. A term is COLUMN, one of = != < <= > >=, and a
 * value, or a part of any text.
 */
export function select({ columns, rows }, query) {
  const terms = query.split(/\s+/).filter(Boolean).map((t) => condition(t, columns));
  return terms.length ? rows.filter((row) => terms.every((t) => t(row))) : rows.slice();
}

const collator = new Intl.Collator('en', { numeric: true });

/** sort sorts rows by a column, absent values last. Equal rows keep the order of the catalogue. */
export function sort(rows, column, descending) {
  const sign = descending ? -1 : 1;
  const absent = (v) => v === null || v === undefined;
  return rows.sort((x, y) => {
    const a = x[column];
    const b = y[column];
    if (absent(a) || absent(b)) return absent(a) - absent(b);
    return sign * (typeof a === 'string' ? collator.compare(a, b) : a < b ? -1 : a > b ? 1 : 0);
  });
}
