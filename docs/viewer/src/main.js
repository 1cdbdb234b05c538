// The page: opens the set that ?set= names, or the one in its own folder, and shows the catalogue or a trace of it.

import { load } from './catalogue.js';
import { listView } from './list.js';
import { el, failure } from './page.js';
import { Failure, setURL } from './remote.js';
import { traceView } from './trace.js';

const view = document.getElementById('view');
const status = document.getElementById('status');
const asked = new URLSearchParams(location.search).get('set') ?? '';
const state = { q: '', sort: '' };

const address = (values) => `#${new URLSearchParams(Object.entries(values).filter(([, v]) => v))}`;

/** stop shows an error instead of the set. */
function stop(error) {
  if (!(error instanceof Failure)) console.error(error);
  status.textContent = '';
  view.replaceChildren(failure(error));
}

/** route shows what the part of the address after # names. */
function route(set, catalogue, first) {
  const values = new URLSearchParams(location.hash.slice(1));
  state.q = values.get('q') ?? '';
  state.sort = values.get('sort') ?? '';
  const trace = values.get('trace');
  if (trace === null) {
    document.title = 'Published traces';
    view.replaceChildren(listView(catalogue, state, (name) => address({ ...state, trace: name }),
      () => history.replaceState(null, '', address(state))));
    if (!first) document.getElementById('filter').focus();
    return;
  }
  document.title = `${trace} – published traces`;
  const row = catalogue.rows.find((r) => r.trace === trace);
  view.replaceChildren(row ? traceView(set, catalogue.columns, row, address(state))
    : el('div', {}, failure(new Failure(`The set has no trace ${trace}`, 'It may have been removed.')),
      el('p', {}, el('a', { href: address(state) }, 'All traces'))));
  scrollTo(0, 0);
  view.querySelector('h2')?.focus({ preventScroll: true });
}

async function start() {
  document.getElementById('set').value = asked;
  status.textContent = 'Reading the catalogue …';
  const set = setURL(asked, location.href);
  const catalogue = await load(set);
  status.replaceChildren('Set ', el('code', {}, set.href), ', ',
    el('a', { href: new URL('catalogue.parquet', set).href, download: '' }, 'download the catalogue'));
  route(set, catalogue, true);
  addEventListener('hashchange', () => route(set, catalogue, false));
}

start().catch(stop);
