// The view of the catalogue: a filter and a table that sorts.

import { select, sort } from './catalogue.js';
import { el, pages, table, text } from './page.js';
import { count, exact, show } from './units.js';

/** Rows of a page of the table: the page stays fast with any number of traces. */
const PAGE = 100;

const COLUMNS = [['trace', 'trace', true], ['workload', 'workload', true], ['source_format', 'source format', true],
  ['ranks', 'ranks'], ['ops', 'ops'], ['messages', 'messages'], ['bytes_sent', 'bytes sent'],
  ['critical_path_ps', 'critical path'], ['license', 'licence', true]];

/** listView returns the view. State is {q, sort}, both strings; link returns the address of a trace; changed is told of changes. */
export function listView(catalogue, state, link, changed) {
  const place = el('div');
  const found = el('p', { role: 'status', class: 'soft' });
  const columns = COLUMNS.filter(([c]) => catalogue.columns.includes(c)).map(([column, name, isText]) => ({
    column, name, text: isText, title: (row) => exact(column, row[column]),
    of: (row) => (column === 'trace' ? cell(row, link) : show(column, row[column])),
  }));
  const draw = () => {
    const rows = select(catalogue, state.q);
    const descending = state.sort.startsWith('-');
    const by = state.sort.replace(/^-/, '');
    if (by) sort(rows, by, descending);
    found.textContent = state.q ? `${count(rows.length)} of ${count(catalogue.rows.length)} traces`
      : `${count(rows.length)} traces`;
    const head = (c) => el('th', { scope: 'col', class: c.text && 'text',
      'aria-sort': by === c.column && (descending ? 'descending' : 'ascending') },
    el('button', { type: 'button', 'data-column': c.column, onclick: () => order(c.column) }, c.name));
    place.replaceChildren(rows.length ? pages(rows, PAGE, 'traces', (part) => table('Traces; a column’s name sorts by it',
      columns, part, { head, wide: true })) : el('p', {}, 'No trace has all these terms.'));
  };
  const order = (column) => {
    const numbers = typeof catalogue.rows[0]?.[column] !== 'string';
    const first = numbers ? `-${column}` : column;
    const second = numbers ? column : `-${column}`;
    state.sort = state.sort === first ? second : first;
    draw();
    changed();
    place.querySelector(`[data-column=${column}]`)?.focus();
  };
  const box = el('input', { id: 'filter', type: 'search', autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'hint',
    oninput: () => { state.q = box.value; draw(); changed(); } });
  box.value = state.q;
  draw();
  return el('section', { 'aria-label': 'Catalogue' },
    el('label', { for: 'filter' }, 'Filter'), el('div', { class: 'row' }, box),
    el('p', { id: 'hint', class: 'soft' }, 'Words, or conditions such as ', el('code', {}, 'ranks>=16'), ' ',
      el('code', {}, 'workload=llm'), ' ', el('code', {}, 'bytes_sent>1MiB'), ' ', el('code', {}, 'critical_path_ps<5ms'),
      '; all must hold.'), found, place);
}

const cell = (row, link) => el('span', {}, el('a', { href: link(row.trace) }, text(row.trace)),
  row.title ? el('span', { class: 'title' }, text(row.title.slice(0, 300))) : '');
