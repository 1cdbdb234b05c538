'use strict';
// Figures by frame: zoom by a factor at a place, pan by pixels, reset, and further keys.
const views = new Map();
const scaled = frame => {
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
  return { zoom: by => set(zoom * by), pan: (x, y) => zoom > 1 && (frame.scrollBy(x, y), true), reset: () => set(1) };
};
for (const frame of document.querySelectorAll('.frame')) {
  views.set(frame, scaled(frame));
  frame.addEventListener('keydown', e => {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const view = views.get(frame);
    const step = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] }[e.key];
    if (step) { if (!view.pan(...step)) return; }
    else if (e.key === '+' || e.key === '=') view.zoom(1.5);
    else if (e.key === '-') view.zoom(1 / 1.5);
    else if (e.key === '0') view.reset();
    else if (view.key?.(e.key)) ;
    else if (e.key === 'Enter') { const d = frame.parentElement.querySelector('details'); d.open = true; d.querySelector('summary').focus(); }
    else return;
    e.preventDefault();
  });
  frame.addEventListener('wheel', e => {
    if (!e.ctrlKey) return;
    views.get(frame).zoom(e.deltaY < 0 ? 1.25 : 0.8, e);
    e.preventDefault();
  }, { passive: false });
}
// Texts, marks and the one tip beside the pointer, for all figures.
const units = { time: [['ps', 1], ['ns', 1e3], ['\u00b5s', 1e6], ['ms', 1e9], ['s', 1e12]], size: [['B', 1], ['kB', 1e3], ['MB', 1e6], ['GB', 1e9], ['TB', 1e12], ['PB', 1e15]] };
const scaleOf = (scales, n) => scales.findLast(([, v]) => Math.abs(n) >= v) ?? scales[0];
const format = (scales, n) => { const [unit, v] = scaleOf(scales, n); return Number((n / v).toPrecision(4)) + '\u00a0' + unit; };
const element = (parent, tag, attributes, content) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (content !== undefined) e.textContent = content;
  parent.append(e);
  return e;
};
const statusOf = (frame, text) => {
  const status = document.createElement('p');
  status.className = 'slice';
  status.setAttribute('role', 'status');
  status.textContent = text;
  frame.after(status);
  return status;
};
const tip = document.createElement('div');
tip.className = 'tip screen';
tip.hidden = true;
document.querySelector('main').append(tip);
const hover = (frame, textAt) => {
  frame.addEventListener('pointermove', e => {
    const text = textAt(e);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    tip.style.left = Math.min(e.clientX + 12, innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = e.clientY + 16 + 'px';
  });
  frame.addEventListener('pointerleave', () => tip.hidden = true);
};
const pointAt = (svg, e) => new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
let parsed;
const valueAt = pointer => {
  parsed ??= JSON.parse(document.getElementById('result').textContent);
  return pointer.split('/').slice(1).reduce((v, name) => v[name], parsed);
};
for (const cells of document.querySelectorAll('rect[data-cells]')) { // matrices: the cell under the pointer or the cursor
  const svg = cells.ownerSVGElement, frame = svg.closest('.frame'), { x, y, width } = cells.getBBox(), { edge, names } = cells.dataset;
  const rows = () => valueAt(cells.dataset.cells), last = cells.dataset.rows - 1, side = width / (last + 1);
  const name = i => names ? String(valueAt(names)[i].name ?? 'job ' + i).slice(0, 80) : (edge > 1 ? 'the group of rank ' : 'rank ') + i * edge;
  const describe = ({ row, column }) => {
    const n = rows()[row]?.[column];
    return n === undefined ? '' : `from ${name(row)} to ${name(column)}: ${format(units.size, n)}`;
  };
  const find = e => {
    const p = pointAt(svg, e), row = Math.floor((p.y - y) / side), column = Math.floor((p.x - x) / side);
    return row >= 0 && row <= last && column >= 0 && column <= last ? { row, column } : null;
  };
  const status = statusOf(frame, 'Point at a cell, or press an arrow key to select one.'), mark = element(svg, 'path', { class: 'selected cell' });
  let selected = null;
  const select = to => {
    selected = to;
    mark.setAttribute('d', to ? `M${x + to.column * side} ${y + to.row * side}h${side}v${side}h${-side}z` : '');
    if (to) status.textContent = describe(to);
  };
  const step = (from, by) => Math.max(0, Math.min(last, from + Math.sign(by)));
  views.set(frame, { ...views.get(frame), pan: (dx, dy) => {
    select(selected ? { row: step(selected.row, dy), column: step(selected.column, dx) } : { row: 0, column: 0 });
    mark.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    return true;
  } });
  hover(frame, e => { const found = find(e); return found && describe(found); });
  frame.addEventListener('click', e => { const found = find(e); if (found) select(found); });
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

const timeline = document.getElementById('timeline-data');
if (timeline) drawTimeline(JSON.parse(timeline.textContent));
function drawTimeline(data) {
  const frame = document.querySelector('#timeline .frame'), svg = frame.querySelector('svg');
  const left = 170, wide = 720, high = svg.viewBox.baseVal.height - 24, rows = 64;
  const unpack = async (level, groups) => { // columns of int32 by byte planes; groups: numbers of rows
    const packed = Uint8Array.from(atob(level.data), c => c.charCodeAt(0));
    const bytes = new Uint8Array(await new Response(new Blob([packed]).stream()
      .pipeThrough(new DecompressionStream('deflate-raw'))).arrayBuffer());
    let at = 0;
    return groups.flatMap(([n, count]) => Array.from({ length: count }, () => {
      const column = new Int32Array(n);
      for (let i = 0; i < n; i++) column[i] = bytes[at + i] | bytes[at + n + i] << 8 | bytes[at + 2 * n + i] << 16 | bytes[at + 3 * n + i] << 24;
      at += 4 * n;
      return column;
    }));
  };
  const signed = n => n >>> 1 ^ -(n & 1);
  const lanes = [];
  for (let i = 0; i < data.lanes.length; i += 3) lanes.push({ line: data.lanes[i], group: data.lanes[i + 1], number: data.lanes[i + 2] });
  const load = async level => {
    const singles = level.slices - level.merged;
    const [shift, several, alone, bins, kinds, ops, share, starts, lengths, kind1, label1, op1, rank1] =
      await unpack(level, [[lanes.length, 3], [level.merged, 4], [singles, 6]]);
    const ints = () => new Int32Array(level.slices), floats = () => new Float64Array(level.slices);
    const of = { from: [], counts: [], start: floats(), end: floats(), kind: ints(), count: ints(), busy: ints(), label: ints(), op: ints(), rank: ints() };
    let at = 0, m = 0, n = 0;
    lanes.forEach((lane, l) => {
      const many = m + several[l], last = n + alone[l], length = 2 ** (shift[l] - 1 - data.shift);
      let bin = m < many ? bins[m] : 0, start = n < last ? starts[n] : 0, op = n < last ? signed(op1[n]) : 0;
      of.from.push(at);
      of.counts.push(several[l] + alone[l]);
      for (; m < many || n < last; at++) {
        if (n >= last || m < many && bin * length <= start) {
          of.start[at] = bin * length;
          of.end[at] = Math.min(data.end, (bin + 1) * length);
          of.kind[at] = kinds[m];
          of.count[at] = ops[m];
          of.busy[at] = share[m];
          if (++m < many) bin += bins[m];
        } else {
          of.start[at] = start;
          of.end[at] = start + lengths[n];
          of.kind[at] = kind1[n];
          of.label[at] = label1[n];
          of.op[at] = op;
          of.rank[at] = signed(rank1[n]);
          if (++n < last) { start += starts[n]; op += signed(op1[n]); }
        }
      }
    });
    return of;
  };
  const loaded = [];
  let s = null, path = null, level = 0, overlay = true, selected = null;
  const view = { from: 0, to: Math.max(1, data.end), first: 0, last: data.lines };
  const x = t => left + wide * (t - view.from) / (view.to - view.from);
  const name = lane => lane.group === 0 ? 'collectives' : (lane.group === 1 ? 'stream ' : 'NIC ') + lane.number;
  const rankName = (line, lines) => {
    const from = line * data.edge, to = Math.min((line + lines) * data.edge, data.ranks) - 1;
    return from === to ? 'rank ' + from : `ranks ${from} to ${to}`;
  };
  let layout;
  const arrange = () => {
    const shown = lanes.map((l, i) => i).filter(i => lanes[i].line >= view.first && lanes[i].line < view.last);
    layout = { labels: [], bands: [], row: new Map(), pitch: 0 };
    if (shown.length <= rows) {
      const pitch = layout.pitch = Math.min(60, high / Math.max(1, shown.length));
      shown.forEach((i, k) => {
        const { line } = lanes[i];
        if (!layout.row.has(line) || lanes[shown[k - 1]].group < 1) layout.row.set(line, k);
        layout.labels.push(rankName(line, 1) + ', ' + name(lanes[i]));
        layout.bands.push({ y: k * pitch + pitch * .1, high: pitch * .75, steps: Math.max(1, Math.round(pitch * .375)), lanes: [i] });
      });
      return;
    }
    const per = Math.ceil((view.last - view.first) / rows), n = Math.ceil((view.last - view.first) / per);
    const pitch = layout.pitch = Math.min(60, high / n), bands = new Map();
    for (let k = 0; k < n; k++) layout.labels.push(rankName(view.first + k * per, Math.min(per, view.last - view.first - k * per)));
    for (const i of shown) {
      const { line, group } = lanes[i], k = Math.floor((line - view.first) / per), id = k * 3 + group;
      layout.row.set(line, k);
      if (!bands.has(id)) {
        const [y, high, steps] = [[0, 2, 1], [2, 6, 3], [8, 2, 1]][group];
        bands.set(id, { y: k * pitch + (y + 1) * pitch / 11, high: high * pitch / 11, steps, lanes: [] });
      }
      bands.get(id).lanes.push(i);
    }
    layout.bands = [...bands.values()];
  };
  const place = n => String(Math.round(n * 10) / 10);
  const paths = data.kinds.map((_, k) => svg.querySelector(`.slices path[data-kind="${k}"]`));
  const stack = (band, texts) => { // as in Go: shares of the kinds in each column of a pixel
    const cover = [], per = wide / (view.to - view.from);
    for (const lane of band.lanes) {
      for (let i = s.from[lane], stop = i + s.counts[lane]; i < stop && s.start[i] < view.to; i++) {
        if (s.end[i] < view.from) continue;
        const from = Math.max(0, (s.start[i] - view.from) * per), to = Math.min(wide, (s.end[i] - view.from) * per);
        const of = cover[s.kind[i]] ??= new Float64Array(wide + 1), share = s.count[i] ? Math.min(1, s.busy[i] / 100) : 1;
        let c = Math.floor(from);
        if (to <= c + 1) { of[c] += (to - from) * share; continue; }
        of[c++] += (c - from) * share;
        for (; c + 1 <= to; c++) of[c] += share;
        of[c] += (to - c) * share;
      }
    }
    const whole = band.lanes.length, unit = band.high / band.steps, runs = [];
    for (let c = 0; c < wide; c++) {
      let sum = 0, low = 0;
      for (let k = 0; k < cover.length; k++) {
        if (!cover[k]?.[c]) continue;
        sum = Math.min(whole, sum + cover[k][c]);
        const up = Math.round(sum / whole * band.steps);
        if (up === low) continue;
        const run = runs[k];
        if (run && run.to === c && run.low === low && run.up === up) run.to++;
        else {
          if (run) texts[k].push(rect(run, band, unit));
          runs[k] = { from: c, to: c + 1, low, up };
        }
        low = up;
      }
    }
    runs.forEach((run, k) => texts[k].push(rect(run, band, unit)));
  };
  const rect = (r, band, unit) => `M${left + r.from} ${place(band.y + band.high - r.up * unit)}h${r.to - r.from}v${place((r.up - r.low) * unit)}h${r.from - r.to}z`;
  const text = ticks => format(units.time, ticks * data.tick);
  const axes = svg.querySelector('.axes'), names = svg.querySelector('.rows'), slices = svg.querySelector('.slices');
  const critical = svg.querySelector('.critical');
  const mark = element(svg, 'path', { class: 'selected' });
  const drawAxes = () => {
    const [unit, v] = scaleOf(units.time, view.to * data.tick), per = data.tick / v, span = (view.to - view.from) * per;
    const power = 10 ** Math.floor(Math.log10(span)), step = [.1, .2, .5, 1].map(f => f * power).find(f => span / f <= 6) ?? power;
    axes.replaceChildren();
    for (let k = Math.ceil(view.from * per / step); k * step <= view.to * per * (1 + 1e-9); k++) {
      const at = place(x(k * step / per)), label = Number((k * step).toPrecision(12)) + '\u00a0' + unit;
      element(axes, 'path', { class: 'grid', d: `M${at} 0V${high}` });
      element(axes, 'text', { class: 'axis', x: at, y: high + 16, 'text-anchor': 'middle' }, label);
    }
  };
  const rowOf = line => line < view.first ? -1 : layout.row.get(line) ?? layout.labels.length;
  const middle = line => Math.max(0, Math.min(high, (rowOf(line) + .5) * layout.pitch));
  const inView = t => Math.round(Math.max(left, Math.min(left + wide, x(t))));
  const drawPath = () => {
    if (!critical || !path) return;
    let d = '', lastX = -1, lastY = -1, turns = 0;
    for (let i = 0; i < path.rank.length; i++) {
      if (path.end[i] < view.from) continue;
      if (path.start[i] > view.to) break;
      const from = inView(path.start[i]), to = inView(path.end[i]), y = place(middle(Math.floor(path.rank[i] / data.edge)));
      if (lastX < 0) { d = `M${from} ${y}`; lastX = from; lastY = y; }
      if (from > lastX) { d += `H${from}`; lastX = from; turns = 0; }
      if (y !== lastY && turns++ < 2) { d += `V${y}`; lastY = y; }
      if (to > lastX) { d += `H${to}`; lastX = to; turns = 0; }
    }
    critical.setAttribute('d', d);
  };
  const drawMark = () => {
    let d = '';
    if (selected) {
      const { lane, i } = selected, band = layout.bands.find(b => b.lanes.includes(lane));
      if (band && s.end[i] >= view.from && s.start[i] <= view.to) {
        const from = inView(s.start[i]), to = Math.max(from + 2, inView(s.end[i]));
        d = `M${from} ${place(band.y)}H${to}V${place(band.y + band.high)}H${from}z`;
        if (!s.count[i] && lanes[lane].group === 2) {
          const target = Math.floor((rankOf(lane, i) + s.rank[i]) / data.edge);
          const y = middle(target), at = inView(s.end[i]), up = y < band.y ? 6 : -6;
          d += `M${from} ${place(band.y + band.high / 2)}L${at} ${place(y)}m-3 ${up}l3 ${-up}l3 ${up}`;
        }
      }
    }
    mark.setAttribute('d', d);
  };
  const draw = () => {
    arrange();
    drawAxes();
    const texts = data.kinds.map(() => []), every = Math.max(1, Math.ceil(13 / layout.pitch));
    for (const band of layout.bands) stack(band, texts);
    paths.forEach((p, k) => p?.setAttribute('d', texts[k].join('')));
    names.replaceChildren();
    layout.labels.forEach((label, k) => k % every || element(names, 'text', { x: left - 8, y: place((k + .5) * layout.pitch + 4), 'text-anchor': 'end' }, label));
    drawPath();
    drawMark();
  };
  let asked = 0;
  const refresh = async () => {
    const zoom = data.end / (view.to - view.from), want = Math.min(data.levels.length - 1, zoom < 4 ? 0 : zoom < 16 ? 1 : 2);
    if (want !== level) {
      const mine = ++asked;
      loaded[want] ??= await load(data.levels[want]);
      if (mine !== asked) return;
      level = want;
      s = loaded[want];
      selected = null;
    }
    requestAnimationFrame(draw);
  };
  const rankOf = (lane, i) => lanes[lane].line * data.edge + (lanes[lane].group === 2 ? 0 : s.rank[i]);
  const describe = ({ lane, i }) => {
    const kind = data.kinds[s.kind[i]], of = s.label[i] ? data.labels[s.label[i] - 1] : '';
    const where = (s.count[i] ? rankName(lanes[lane].line, 1) : 'rank ' + rankOf(lane, i)) + ', ' + name(lanes[lane]) + ': ';
    const times = `${text(s.end[i] - s.start[i])} from ${text(s.start[i])} to ${text(s.end[i])}`;
    if (s.count[i]) return `${where}${s.count[i]} \u00d7 ${kind} that start from ${text(s.start[i])} to ${text(s.end[i])}, busy ${s.busy[i]} %`;
    const to = lanes[lane].group === 2 ? ` to rank ${rankOf(lane, i) + s.rank[i]}` : '';
    return `${where}${kind}${of && ' \u201c' + of + '\u201d'}${to}, ${times}, op ${s.op[i] >>> 0}`;
  };
  const at = e => { // time and y of a pointer
    const p = pointAt(svg, e);
    return { t: view.from + (p.x - left) / wide * (view.to - view.from), x: p.x, y: p.y };
  };
  const find = e => {
    const p = at(e), near = 1.5 / wide * (view.to - view.from);
    if (!s || p.x < left || p.x > left + wide) return null;
    const band = layout.bands.find(b => p.y >= b.y && p.y <= b.y + b.high);
    let best = null;
    for (const lane of band?.lanes ?? []) {
      for (let i = s.from[lane], stop = i + s.counts[lane]; i < stop && s.start[i] <= p.t + near; i++) {
        if (s.end[i] < p.t - near) continue;
        if (!best || s.end[i] - s.start[i] < s.end[best.i] - s.start[best.i]) best = { lane, i };
      }
    }
    return best;
  };
  const status = statusOf(frame, 'Point at a slice, or press n to select one.');
  const select = to => {
    selected = to;
    if (to) status.textContent = describe(to);
    drawMark();
  };
  const shift = by => {
    const span = view.to - view.from, from = Math.max(0, Math.min(data.end - span, view.from + by));
    view.from = from;
    view.to = from + span;
  };
  const look = (from, to) => {
    const span = Math.min(data.end, Math.max(20, to - from));
    view.from = Math.max(0, Math.min(data.end - span, (from + to - span) / 2));
    view.to = view.from + span;
    return refresh();
  };
  const lines = by => {
    const n = Math.max(1, Math.min(data.lines, Math.round((view.last - view.first) * by)));
    const line = selected ? lanes[selected.lane].line : (view.first + view.last) / 2;
    view.first = Math.max(0, Math.min(data.lines - n, Math.round(line - n / 2)));
    view.last = view.first + n;
    refresh();
    return true;
  };
  const next = by => {
    if (!selected) {
      for (const lane of layout.bands.flatMap(b => b.lanes)) {
        for (let i = s.from[lane], stop = i + s.counts[lane]; i < stop; i++) if (s.end[i] >= view.from && s.start[i] <= view.to) return select({ lane, i }), true;
      }
      return true;
    }
    const { lane } = selected, i = Math.max(s.from[lane], Math.min(s.from[lane] + s.counts[lane] - 1, selected.i + by));
    if (s.end[i] < view.from || s.start[i] > view.to) { shift(s.start[i] - (view.from + view.to) / 2); refresh(); }
    select({ lane, i });
    return true;
  };
  let wait = -1, waits = [];
  const nextWait = async () => {
    if (!waits.length) return;
    wait = (wait + 1) % waits.length;
    const [rank, op, start, length, label] = waits[wait], end = start + length, line = Math.floor(rank / data.edge);
    if (line < view.first || line >= view.last) { view.first = 0; view.last = data.lines; }
    await look(start - (end - start), end + (end - start));
    let best = null;
    for (let lane = 0; lane < lanes.length; lane++) {
      if (lanes[lane].line !== line || lanes[lane].group !== 1) continue;
      for (let i = s.from[lane], stop = i + s.counts[lane]; i < stop; i++) {
        if (data.kinds[s.kind[i]] === 'wait' && (!best || Math.abs(s.start[i] - start) + Math.abs(s.end[i] - end) < Math.abs(s.start[best.i] - start) + Math.abs(s.end[best.i] - end))) best = { lane, i };
      }
    }
    if (best) select(best);
    status.textContent = `Wait ${wait + 1} of the longest: rank ${rank}, op ${op >>> 0}${label ? ' \u201c' + data.labels[label - 1] + '\u201d' : ''}, ${text(length)} from ${text(start)}`;
  };
  const toggle = document.createElement('button');
  const showPath = on => {
    overlay = on;
    critical.style.display = on ? '' : 'none';
    toggle.setAttribute('aria-pressed', on);
  };
  const dragged = {};
  const start = async () => {
    s = loaded[0] = await load(data.levels[0]);
    const columns = await unpack(data.waits, [[data.waits.slices, 5]]);
    waits = Array.from({ length: data.waits.slices }, (_, i) => columns.map(c => c[i]));
    if (data.path) {
      const [rank, from, length] = await unpack(data.path, [[data.path.slices, 3]]);
      const end = new Int32Array(rank.length);
      for (let i = 0, r = 0, t = 0; i < rank.length; i++) {
        rank[i] = r += signed(rank[i]);
        from[i] = t += signed(from[i]);
        end[i] = t + length[i];
      }
      path = { rank, start: from, end };
    }
    if (critical) {
      toggle.type = 'button';
      toggle.textContent = 'Critical path';
      toggle.addEventListener('click', () => showPath(!overlay));
      showPath(true);
      frame.before(toggle);
    }
    draw();
    views.set(frame, {
      zoom: (by, e) => {
        const t = e ? at(e).t : selected ? (s.start[selected.i] + s.end[selected.i]) / 2 : (view.from + view.to) / 2;
        const span = Math.min(data.end, Math.max(20, (view.to - view.from) / by)), share = (t - view.from) / (view.to - view.from);
        view.from = Math.max(0, Math.min(data.end - span, t - share * span));
        view.to = view.from + span;
        refresh();
      },
      pan: (dx, dy) => {
        if (dx) shift(dx / wide * (view.to - view.from));
        const by = Math.sign(dy) * Math.max(1, Math.floor((view.last - view.first) / 8)), n = view.last - view.first;
        if (dy) { view.first = Math.max(0, Math.min(data.lines - n, view.first + by)); view.last = view.first + n; }
        refresh();
        return true;
      },
      reset: () => { Object.assign(view, { from: 0, to: data.end, first: 0, last: data.lines }); select(null); refresh(); },
      key: key => {
        if (key === 'n' || key === 'p') return next(key === 'n' ? 1 : -1);
        if (key === ']' || key === '[') return lines(key === ']' ? 2 : .5);
        if (key === 'w') return nextWait(), true;
        if (key === 'c' && critical) return showPath(!overlay), true;
        if (key === 'Enter' && selected) { const { i } = selected, long = s.end[i] - s.start[i]; return look(s.start[i] - long, s.end[i] + long), true; }
        return false;
      },
    });
    frame.addEventListener('pointerdown', e => { if (e.pointerType === 'mouse') Object.assign(dragged, { x: e.clientX, on: true, far: false }); });
    addEventListener('pointerup', () => dragged.on = false);
    frame.addEventListener('pointermove', e => {
      if (dragged.on && Math.abs(e.clientX - dragged.x) > 3) {
        shift((dragged.x - e.clientX) / svg.getScreenCTM().a / wide * (view.to - view.from));
        dragged.x = e.clientX;
        dragged.far = true;
        refresh();
      }
    });
    hover(frame, e => { const found = find(e); return found && describe(found); });
    frame.addEventListener('click', e => { if (!dragged.far) select(find(e)); });
  };
  if (!data.levels.length) return;
  const observer = new IntersectionObserver(entries => { // decode when the figure comes near
    if (!entries.some(e => e.isIntersecting)) return;
    observer.disconnect();
    start().catch(e => console.error(e));
  }, { rootMargin: '300px' });
  observer.observe(frame);
}
