// Files of a set, read over HTTP by ranges.

/** Files up to this size are read by one request. */
const WHOLE = 256 << 10;
/** Without ranges, larger files are refused: a tab would run out of memory. */
const LARGEST = 1 << 30;

/** Failure is an error for the reader of the page: what is wrong and the remedy. */
export class Failure extends Error {
  constructor(text, remedy) {
    super(text);
    this.remedy = remedy;
  }
}

/** setURL returns the URL of the folder of a set, which ends in a slash. */
export function setURL(text, page) {
  let url;
  try {
    url = new URL(text || '.', page);
  } catch {
    throw new Failure(`${text} is no URL`, 'Give the URL of the folder with catalogue.parquet.');
  }
  if (url.protocol === 'file:') {
    throw new Failure('A browser does not let a page read other files from disk',
      'Start a web server in the folder, such as "python3 -m http.server", and open its address.');
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new Failure(`Expected a URL of http or https, found ${url.protocol}`,
      'Give the URL of the folder with catalogue.parquet.');
  }
  url.hash = '';
  url.search = '';
  url.pathname = url.pathname.replace(/(catalogue\.parquet|[^/]*\.html)$/, '').replace(/([^/])$/, '$1/');
  return url;
}

/** inSet returns the URL of a path of the catalogue, which must be inside the set. */
export function inSet(set, path) {
  const parts = String(path).split('/');
  if (parts.some((p) => p === '' || p === '.' || p === '..' || /[\\\u0000-\u001f]/.test(p))) {
    throw new Failure(`The catalogue names the path ${JSON.stringify(path)}, which is outside of the set`,
      'Ask the publisher of the set; do not open this trace.');
  }
  return new URL(parts.map((p) => encodeURIComponent(p).replaceAll('%3D', '=')).join('/'), set);
}

async function get(url, from, to) {
  let response;
  try {
    response = await fetch(url, from === undefined ? {} : { headers: { Range: `bytes=${from}-${to - 1}` } });
  } catch (error) {
    throw new Failure(`${url} cannot be read: ${error.message}`, 'Check the address and the network. The server of '
      + 'another site must allow requests of pages of this one (Access-Control-Allow-Origin).');
  }
  if (response.status === 404) {
    throw new Failure(`${url} does not exist (404)`, 'Check the address.');
  }
  if (!response.ok) {
    throw new Failure(`${url} cannot be read: the server answers ${response.status} ${response.statusText}`,
      'Check the address and your access to it.');
  }
  return response;
}

async function body(response, url) {
  try {
    return await response.arrayBuffer();
  } catch (error) {
    throw new Failure(`${url} ends early: ${error.message}`, 'Load the page again.');
  }
}

const total = (response) => Number(/\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '')?.[1] ?? NaN);

function memory(url, bytes) {
  return { byteLength: bytes.byteLength, requests: 1, ranges: false,
    slice: (start, end) => bytes.slice(start, end ?? bytes.byteLength) };
}

async function whole(url, response) {
  const size = Number(response.headers.get('Content-Length') ?? 0);
  if (size > LARGEST) {
    throw new Failure(`${url} has ${size} bytes, and the server sends it only as a whole`,
      'Download it, or publish it on a server with range requests.');
  }
  return memory(url, await body(response, url));
}

/**
 * open returns a file in the form that hyparquet reads. Size is its size in bytes, if known. It sends range requests, and
 * reads the whole file where the server ignores them.
 */
export async function open(url, size) {
  const first = await get(url, 0, Math.min(size || WHOLE, WHOLE));
  if (first.status !== 206) {
    return whole(url, first);
  }
  const start = await body(first, url);
  let known = total(first) || size;
  if (start.byteLength < Math.min(size || WHOLE, WHOLE)) {
    known ||= start.byteLength;
  }
  if (!known) { // the server of another site may hide Content-Range
    known = Number((await fetch(url, { method: 'HEAD' })).headers.get('Content-Length'));
  }
  if (!known) {
    return whole(url, await get(url));
  }
  if (size && known !== size) {
    throw new Failure(`${url} has ${known} bytes, ${size} in the catalogue`,
      'The set has changed or is being published: load the page again.');
  }
  if (known <= start.byteLength) {
    return { ...memory(url, start), ranges: true };
  }
  return ranged(url, known, start);
}

function ranged(url, byteLength, start) {
  const kept = new Map();
  const file = { byteLength, requests: 1, ranges: true };
  file.slice = async (from, to = byteLength) => {
    if (to <= start.byteLength) {
      return start.slice(from, to);
    }
    const key = `${from}-${to}`;
    if (!kept.has(key)) {
      file.requests++;
      const bytes = get(url, from, to).then(async (response) => {
        const b = await body(response, url);
        return response.status === 206 ? b : b.slice(from, to);
      });
      bytes.catch(() => kept.delete(key));
      if (kept.size > 64) {
        kept.delete(kept.keys().next().value);
      }
      kept.set(key, bytes);
    }
    const bytes = await kept.get(key);
    if (bytes.byteLength !== to - from) {
      throw new Failure(`${url}: expected ${to - from} bytes from offset ${from}, found ${bytes.byteLength}`,
        'The file has changed: load the page again.');
    }
    return bytes;
  };
  return file;
}
