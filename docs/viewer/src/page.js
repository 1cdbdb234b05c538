// Parts of the page. All text enters it as text, never as HTML.

/** el returns an element with attributes and children; strings become text. */
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false));
  return e;
}

/** text returns a text of others: its direction does not change that of the page. */
export const text = (value) => el('bdi', {}, value);

let tables = 0;

/**
 * table returns a table in a region that scrolls. Columns are {name, text: values are text, of: value or element of a row,
 * title: exact value of a row}; the first one is the header of its row.
 */
export function table(caption, columns, rows, { head, wide } = {}) {
  const id = `caption${++tables}`;
  const cell = (row, c, i) => el(i === 0 ? 'th' : 'td', { scope: i === 0 && 'row', class: c.class ?? (c.text && 'text'),
    title: c.title?.(row) || undefined }, wrap(c.of(row), c));
  const wrap = (value, c) => (value instanceof Node || !c.text ? value : text(value));
  return el('div', { class: wide ? 'scroll wide' : 'scroll', tabindex: 0, role: 'region', 'aria-labelledby': id }, el('table', {},
    el('caption', { id }, caption),
    el('thead', {}, el('tr', {}, columns.map((c) => head?.(c) ?? el('th', { scope: 'col', class: c.class ?? (c.text && 'text') }, c.name)))),
    el('tbody', {}, rows.map((row) => el('tr', {}, columns.map((c, i) => cell(row, c, i)))))));
}

/** bar returns a bar for a share in 0..1; the table has its number besides. */
export function bar(share) {
  const b = el('span', { class: 'bar', 'aria-hidden': 'true' });
  b.style.width = `${Math.max(0, Math.min(1, share || 0)) * 8}rem`;
  return b;
}

/** pages shows rows page by page; draw returns the element of the rows it is given. */
export function pages(rows, length, what, draw) {
  const place = el('div');
  const state = el('span', { role: 'status' });
  let at = 0;
  const button = (name, to) => el('button', { type: 'button', onclick: () => show(to()) }, name);
  const last = () => Math.max(0, Math.ceil(rows.length / length) - 1);
  const buttons = [button('First', () => 0), button('Previous', () => at - 1), button('Next', () => at + 1), button('Last', last)];
  const show = (page) => {
    at = Math.max(0, Math.min(page, last()));
    const from = at * length;
    const to = Math.min(rows.length, from + length);
    place.replaceChildren(draw(rows.slice(from, to)));
    state.textContent = `${what} ${from + 1}–${to} of ${rows.length}`;
    const had = document.activeElement;
    buttons.forEach((b, i) => { b.disabled = i < 2 ? at === 0 : at === last(); });
    if (had?.disabled) buttons.find((b) => !b.disabled)?.focus();
  };
  show(0);
  return rows.length > length ? el('div', {}, place, el('div', { class: 'row' }, buttons, state)) : place;
}

/** failure returns the box of an error. */
export function failure(error) {
  return el('div', { class: 'box', role: 'alert' }, el('h2', { tabindex: -1 }, 'Cannot be shown'),
    el('p', {}, text(error.message)), error.remedy ? el('p', {}, error.remedy) : '');
}
