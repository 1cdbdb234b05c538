// The view of one trace.

import { newer } from './catalogue.js';
import { bar, el, failure, pages, table, text } from './page.js';
import { Failure, inSet } from './remote.js';
import { counts, countedBytes, firstOps, openStore } from './store.js';
import { count, exact, quote, show, size, time } from './units.js';

/** Stores with more ops are counted on demand. */
const COUNTED = 2_000_000;
const FIRST = 200;
const PAGE = 25;
/** Longest text, in characters, and most entries of one list that are shown: a set may be hostile. */
const LONGEST = 2000;
const MOST = 100;

const KINDS = [['calc', 'calcs'], ['send', 'sends'], ['recv', 'recvs'], ['coll', 'colls'], ['mem', 'mems'], ['io', 'ios']];
const LABELS = { sha256: 'SHA-256', content_sha256: 'SHA-256 of the content', license: 'licence', ios: 'storage accesses',
  mems: 'memory accesses', recvs: 'receives', colls: 'collectives', calcs: 'computations',
  flops: 'FLOP', bytes: 'size of the store', calc_ps: 'compute time', bytes_collective: 'bytes of collectives',
  bytes_mem: 'bytes of memory accesses', bytes_io: 'bytes of storage accesses', deps: 'dependencies' };
const label = (column) => LABELS[column] ?? column.replace(/_ps$/, '').replaceAll('_', ' ');

const cut = (value) => (value.length > LONGEST ? `${value.slice(0, LONGEST)} …` : value);

const section = (title, ...children) => el('section', {}, el('h2', {}, title), ...children);

/** traceView returns the view of a row of the catalogue. It fills in what it reads of the store as it arrives. */
export function traceView(set, columns, row, back) {
  const store = el('div', {}, el('p', { role: 'status' }, 'Reading the store …'));
  const view = el('article', {}, el('p', {}, el('a', { href: back }, 'All traces')),
    el('h2', { tabindex: -1, id: 'trace' }, text(row.trace)), row.title ? el('p', { class: 'lead' }, text(cut(row.title))) : '');
  let url;
  try {
    url = inSet(set, row.path);
    const reason = newer(row.store_version);
    if (reason) throw new Failure(reason, 'Use a newer version of this page.');
  } catch (error) {
    view.append(failure(error), facts(columns, row));
    return view;
  }
  view.append(get(url, row), facts(columns, row), byKind(row), store);
  fill(store, url, row);
  return view;
}

function get(url, row) {
  const command = `simulate ${quote(row.path)}`;
  const copied = el('span', { role: 'status' });
  const copy = el('button', { type: 'button', onclick: () => navigator.clipboard.writeText(command)
    .then(() => { copied.textContent = 'copied'; }, () => { copied.textContent = 'select the text to copy it'; }) }, 'Copy');
  const bytes = row.bytes === undefined ? '' : `, ${size(row.bytes)}`;
  return section('Use it', el('p', {}, el('a', { href: url.href, download: '' }, 'Download the store'), ` (Parquet${bytes})`),
    el('p', {}, 'Simulate it, in a copy of the set:'), el('pre', {}, command),
    navigator.clipboard ? el('div', { class: 'row' }, copy, copied) : '');
}

function facts(columns, row) {
  const values = columns.filter((c) => !['trace', 'title'].includes(c)).map((c) => {
    const value = cut(show(c, row[c]));
    return [el('dt', {}, label(c)), el('dd', { title: exact(c, row[c]) || undefined },
      /^(path|command|(content_)?sha256)$/.test(c) ? el('code', {}, value) : text(value))];
  });
  return section('Catalogue entry', el('dl', {}, values));
}

function byKind(row) {
  if (!KINDS.some(([, column]) => column in row)) return '';
  const kinds = KINDS.filter(([, column]) => row[column] > 0).map(([kind, column]) => ({ kind, ops: Number(row[column]) }));
  const most = Math.max(1, ...kinds.map((k) => k.ops));
  const share = (k) => `${(100 * k.ops / Number(row.ops)).toFixed(1)} %`;
  return section('Ops by kind', kinds.length ? table('Counts of the catalogue', [
    { name: 'kind', text: true, of: (k) => k.kind }, { name: 'ops', of: (k) => count(k.ops) },
    { name: 'share', of: share }, { name: 'relative', class: 'bars', of: (k) => bar(k.ops / most) }], kinds) : el('p', {}, 'The trace has no ops.'));
}

async function fill(place, url, row) {
  try {
    const store = await openStore(url, Number(row.bytes) || undefined);
    const numbers = el('div');
    const first = el('div');
    place.replaceChildren(numbers, first, provenance(store), communicators(store), metadata(store));
    await Promise.all([fillCounts(numbers, store), fillOps(first, store)].map((p, i) => p
      .catch((error) => { known(error); [numbers, first][i].replaceChildren(failure(error)); })));
  } catch (error) {
    known(error);
    place.replaceChildren(failure(error));
  }
}

/** known reports errors that are mistakes of the page on the console. */
function known(error) {
  if (!(error instanceof Failure)) console.error(error);
}

async function fillCounts(place, store) {
  const state = el('p', { role: 'status' });
  const run = async () => {
    state.textContent = 'Counting …';
    place.replaceChildren(state);
    const result = await counts(store, (rows) => { state.textContent = `Counting … ${count(rows)} of ${count(store.rows)} ops`; });
    place.replaceChildren(subkinds(result.kinds), ranks(result.ranks));
  };
  if (store.rows <= COUNTED) return run();
  place.replaceChildren(section('Ops and bytes per rank', el('p', {}, el('button', { type: 'button',
    onclick: () => run().catch((error) => { known(error); place.replaceChildren(failure(error)); }) },
  `Count ${count(store.rows)} ops (reads ${size(countedBytes(store))})`))));
  return undefined;
}

function subkinds(kinds) {
  return section('Bytes and time by kind', pages(kinds, PAGE, 'kinds', (part) => table('Sums over all ranks', [
    { name: 'kind', text: true, of: (k) => (k.subkind ? `${k.kind} (${k.subkind})` : k.kind) },
    { name: 'ops', of: (k) => count(k.ops) }, { name: 'bytes', of: (k) => size(k.bytes), title: (k) => exact('bytes', k.bytes) },
    { name: 'time', of: (k) => time(k.time), title: (k) => exact('_ps', k.time) }], part)));
}

function ranks(all) {
  const used = KINDS.map(([kind]) => kind).filter((kind) => all.some((r) => r[kind]));
  const moved = (r) => r.sent + r.collective;
  const most = all.reduce((m, r) => Math.max(m, moved(r)), 1);
  const bytes = (name, key) => ({ name, of: (r) => size(r[key]), title: (r) => exact('bytes', r[key]) });
  const columns = [{ name: 'rank', of: (r) => String(r.rank) }, { name: 'ops', of: (r) => count(r.ops) },
    ...used.map((kind) => ({ name: kind, of: (r) => count(r[kind]) })),
    ...(used.includes('send') ? [bytes('bytes sent', 'sent')] : []),
    ...(used.includes('coll') ? [bytes('bytes of collectives', 'collective')] : []),
    { name: 'compute time', of: (r) => time(r.time), title: (r) => exact('_ps', r.time) },
    ...(all.some(moved) ? [{ name: 'sent and contributed', class: 'bars', of: (r) => bar(moved(r) / most) }] : [])];
  return section('Ops and bytes per rank', pages(all, PAGE, 'ranks', (part) => table('Ranks with ops; bars are relative to the rank with most bytes', columns, part)));
}

const ZERO = (v) => v === null || v === undefined || v === '' || v === 0 || v === 0n || (Array.isArray(v) && !v.length);

async function fillOps(place, store) {
  const ops = await firstOps(store, FIRST);
  const used = store.columns.filter((c) => !['rank', 'kind', 'subkind', 'deps', 'start_deps'].includes(c) && ops.some((op) => !ZERO(op[c])));
  const waits = (list, op) => list.slice(0, MOST).map((d) => op.op - Number(d)).join(' ') + (list.length > MOST ? ' …' : '') || '–';
  const columns = [{ name: 'rank', of: (op) => String(op.rank) }, { name: 'op', of: (op) => String(op.op) },
    { name: 'kind', text: true, of: (op) => (op.subkind ? `${op.kind} (${op.subkind})` : op.kind) },
    ...used.filter((c) => c !== 'attrs').map(column),
    ...['deps', 'start_deps'].filter((c) => ops.some((op) => op[c]?.length)).map((c) => ({
      name: c === 'deps' ? 'waits for the end of' : 'waits for the start of', text: true, of: (op) => waits(op[c] ?? [], op) })),
    ...used.filter((c) => c === 'attrs').map(column)]; // the widest one
  place.replaceChildren(section('First ops', ops.length ? pages(ops, PAGE, 'ops', (part) => table(
    `The first ${ops.length} of ${count(store.rows)} ops; columns without values are not shown`, columns, part)) : el('p', {}, 'The trace has no ops.')));
}

function column(c) {
  const isText = c === 'name' || c === 'attrs';
  const of = (op) => {
    const value = op[c];
    if (isText) return cut(String(value ?? '–'));
    if (Array.isArray(value)) return cut(value.slice(0, MOST).join(' '));
    return !/(_ps|^bytes|_bytes|flops)$/.test(c) ? String(value ?? '–') : ZERO(value) ? '–' : show(c, value);
  };
  return { name: c.replace(/_ps$/, '').replaceAll('_', ' '), text: isText, of, title: (op) => exact(c, op[c]) };
}

function provenance(store) {
  const steps = store.provenance.slice(0, MOST).map((s) => el('li', {},
    el('p', {}, text(`${s.program} ${s.version}`), s.seed === undefined || s.seed === null ? '' : `, seed ${s.seed}`),
    el('pre', {}, cut(s.command.map(quote).join(' '))),
    s.inputs.length ? el('details', {}, el('summary', {}, s.inputs.length === 1 ? '1 input' : `${s.inputs.length} inputs`),
      table('Inputs of this step', [{ name: 'name', text: true, of: (i) => i.name }, { name: 'SHA-256', text: true, of: (i) => el('code', {}, i.sha256) }],
        s.inputs.slice(0, 1000))) : ''));
  return section('Provenance', steps.length ? el('ol', {}, steps) : el('p', {}, 'The store names no step.'));
}

function communicators(store) {
  if (!store.comms.length) return section('Communicators', el('p', {}, 'All ranks are one communicator.'));
  const range = ([first, stride, n]) => (n === 1 ? `${first}` : stride === 1 ? `${first}–${first + n - 1}` : `${first}–${first + stride * (n - 1)} by ${stride}`);
  const rows = store.comms.map((c, i) => ({ ...c, i }));
  return section('Communicators', pages(rows, PAGE, 'communicators', (part) => table('Communicator 0 has all ranks', [
    { name: 'comm', of: (c) => String(c.i) }, { name: 'name', text: true, of: (c) => c.name || (c.i === 0 ? 'all ranks' : '–') },
    { name: 'ranks', of: (c) => count(c.ranks) },
    { name: 'members', text: true, of: (c) => c.ranges.slice(0, 20).map(range).join(', ') + (c.ranges.length > 20 ? ', …' : '') }], part)));
}

function metadata(store) {
  const seen = ['tracedag.comms', 'tracedag.provenance', 'tracedag.digest'];
  const values = [['created by', store.metadata.created_by ?? '–'], ['row groups', count(store.metadata.row_groups.length)],
    ['rows', count(store.rows)], ['columns', store.columns.join(', ')],
    ...[...store.values].filter(([key]) => !seen.includes(key)).map(([key, value]) => [key, cut(value)])].slice(0, MOST);
  return section('Metadata', el('dl', {}, values.map(([key, value]) => [el('dt', {}, text(key)), el('dd', {}, text(value))])));
}
