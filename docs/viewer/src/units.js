// Values of columns in readable units.

const TIMES = [['s', 1e12], ['ms', 1e9], ['µs', 1e6], ['ns', 1e3], ['ps', 1]];
const SIZES = [['PiB', 2 ** 50], ['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['B', 1]];
const COUNTS = [['P', 1e15], ['T', 1e12], ['G', 1e9], ['M', 1e6], ['', 1]];

const scaled = (value, units) => {
  const v = Number(value);
  const [unit, factor] = units.find(([, f]) => Math.abs(v) >= f) ?? units.at(-1);
  const digits = factor === 1 ? String(v) : String(Number((v / factor).toPrecision(4)));
  return unit ? `${digits} ${unit}` : digits;
};

export const time = (ps) => scaled(ps, TIMES);
export const size = (bytes) => scaled(bytes, SIZES);
/** count returns a number with thin spaces between groups of three digits. */
export const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, '\u202f');
export const flops = (n) => `${scaled(n, COUNTS)}FLOP`.replace(/(\d)FLOP$/, '$1 FLOP');

/** show returns a value of a column as text, in the unit that the name of the column implies. */
export function show(column, value) {
  if (value === null || value === undefined || value === '') return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.length ? value.join(', ') : '–';
  if (typeof value === 'bigint' || typeof value === 'number') {
    if (column.endsWith('_ps')) return time(value);
    if (/(^|_)bytes(_|$)/.test(column)) return size(value);
    return column === 'flops' ? flops(value) : column === 'seed' ? String(value) : count(value);
  }
  return String(value);
}

/** exact returns the exact value of one that show rounds, with its unit, and an empty string if show is exact. */
export function exact(column, value) {
  if (typeof value !== 'bigint' && typeof value !== 'number') return '';
  if (column.endsWith('_ps')) return `${count(value)} ps`;
  return /(^|_)bytes(_|$)/.test(column) ? `${count(value)} B` : column === 'flops' ? count(value) : '';
}

const FACTORS = { '': 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, B: 1, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12,
  PB: 1e15, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50, ps: 1, ns: 1e3, us: 1e6, 'µs': 1e6, ms: 1e9, s: 1e12 };

/** parse returns the number that a text such as 10, 5e3, 1MiB or 20ms stands for, NaN for other texts. */
export function parse(text) {
  const m = /^(-?[\d.]+(?:e[+-]?\d+)?)\s*([a-zA-Zµ]*)$/.exec(text);
  return m && m[2] in FACTORS ? Number(m[1]) * FACTORS[m[2]] : NaN;
}

/** quote returns an argument as a POSIX shell takes it back. */
export const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
