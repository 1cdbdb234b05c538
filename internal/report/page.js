'use strict';
for (const frame of document.querySelectorAll('.frame')) {
  const svg = frame.querySelector('svg');
  let zoom = 1;
  const set = to => {
    to = Math.min(16, Math.max(1, to));
    const x = (frame.scrollLeft + frame.clientWidth / 2) / zoom, y = (frame.scrollTop + frame.clientHeight / 2) / zoom;
    const base = svg.clientWidth / zoom;
    zoom = to;
    svg.style.width = to > 1 ? base * to + 'px' : '';
    frame.scrollTo(x * to - frame.clientWidth / 2, y * to - frame.clientHeight / 2);
  };
  frame.addEventListener('keydown', e => {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const step = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] }[e.key];
    if (step && zoom > 1) frame.scrollBy(...step);
    else if (e.key === '+' || e.key === '=') set(zoom * 1.5);
    else if (e.key === '-') set(zoom / 1.5);
    else if (e.key === '0') set(1);
    else if (e.key === 'Enter') { const d = frame.parentElement.querySelector('details'); d.open = true; d.querySelector('summary').focus(); }
    else return;
    e.preventDefault();
  });
  frame.addEventListener('wheel', e => {
    if (!e.ctrlKey) return;
    set(zoom * (e.deltaY < 0 ? 1.25 : 0.8));
    e.preventDefault();
  }, { passive: false });
}
addEventListener('keydown', e => {
  if (e.key !== '?') return;
  const keys = document.getElementById('keys');
  keys.open = true;
  keys.querySelector('summary').focus();
});
const exact = cell => {
  const n = parseFloat(cell.querySelector('[title]')?.title ?? cell.textContent);
  return Number.isNaN(n) ? cell.textContent : n;
};
const sort = (table, column, button) => {
  const heads = table.tHead.rows[0].cells, down = heads[column].ariaSort === 'descending' ? 1 : -1;
  for (const h of heads) h.removeAttribute('aria-sort');
  heads[column].ariaSort = down < 0 ? 'descending' : 'ascending';
  const rows = [...table.tBodies[0].rows].map(r => [exact(r.cells[column]), r]);
  rows.sort((a, b) => typeof a[0] === 'number' && typeof b[0] === 'number' ? down * (a[0] - b[0]) : down * String(a[0]).localeCompare(String(b[0])));
  table.tBodies[0].append(...rows.map(r => r[1]));
};
for (const details of document.querySelectorAll('details')) details.addEventListener('toggle', () => {
  const table = details.querySelector('table');
  if (!table || table.tHead.querySelector('button')) return;
  details.querySelector('.scroll').tabIndex = 0;
  [...table.tHead.rows[0].cells].forEach((cell, i) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...cell.childNodes);
    button.addEventListener('click', () => sort(table, i));
    cell.append(button);
  });
});
for (const bars of document.querySelectorAll('svg g.bars')) {
  const all = [...bars.querySelectorAll('.bar')], places = all.map(b => b.getAttribute('transform'));
  if (all.length < 2 || !all[0].dataset.finish) continue;
  const button = document.createElement('button');
  let sorted = false;
  button.type = 'button';
  button.textContent = 'Sort by finish';
  button.addEventListener('click', () => {
    sorted = !sorted;
    button.textContent = sorted ? 'Sort by rank' : 'Sort by finish';
    const order = sorted ? [...all].sort((a, b) => b.dataset.finish - a.dataset.finish) : all;
    order.forEach((b, i) => b.setAttribute('transform', places[i]));
  });
  bars.closest('.frame').before(button);
}
const command = document.getElementById('command');
if (command) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', () => {
    const range = document.createRange();
    range.selectNodeContents(command);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    if (document.execCommand('copy')) button.textContent = 'Copied';
  });
  command.after(button);
}
const folded = [];
addEventListener('beforeprint', () => {
  for (const d of document.querySelectorAll('details.short:not([open])')) { d.open = true; folded.push(d); }
});
addEventListener('afterprint', () => { while (folded.length) folded.pop().open = false; });
