// Reads the front matter of the card of a published set as YAML, and checks its keys, its globs and its links.
//
//     node check.mjs SET_FOLDER
//
// Prints a line for each finding; exit status 1 if there is one.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from 'yaml';

const set = process.argv[2];
const card = readFileSync(join(set, 'README.md'), 'utf8');
let findings = 0;
const expect = (condition, text) => {
  if (condition) return;
  findings++;
  console.log(`${set}/README.md: ${text}`);
};

const front = /^---\n([\s\S]*?\n)---\n/.exec(card);
expect(front, 'expected YAML between --- and --- at the beginning');
const document = parseDocument(front?.[1] ?? '', { strict: true, uniqueKeys: true });
for (const e of [...document.errors, ...document.warnings]) expect(false, `front matter: ${e.message}`);
const { license, pretty_name: title, size_categories: sizes, tags, configs } = document.toJS() ?? {};
const text = (v) => typeof v === 'string' && v.trim() === v && v !== '';
const texts = (v) => Array.isArray(v) && v.every(text);

expect(text(license) && license === license.toLowerCase(), `license: expected a lower-case identifier, found ${license}`);
expect(text(title), `pretty_name: expected a text, found ${title}`);
expect(texts(sizes) && sizes.length === 1 && /^(n<1K|1K<n<10K|10K<n<100K|100K<n<1M|1M<n<10M|10M<n<100M|100M<n<1B|1B<n<10B|10B<n<100B|100B<n<1T|n>1T)$/
  .test(sizes[0]), `size_categories: found ${sizes}`);
expect(texts(tags), `tags: expected a list of texts, found ${JSON.stringify(tags)}`);

/** files returns the paths of all files of the set. */
const files = (at = '') => readdirSync(join(set, at), { withFileTypes: true })
  .flatMap((e) => (e.isDirectory() ? files(join(at, e.name)) : [join(at, e.name)]));
const all = files();
const pattern = (glob) => new RegExp(`^${glob.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('**/', '\0').replaceAll('*', '[^/]*').replaceAll('\0', '(?:.*/)?')}$`);
const names = (configs ?? []).map((c) => c.config_name);
expect(names.includes('catalogue') && names.includes('ops'), `configs: expected catalogue and ops, found ${names}`);
expect((configs ?? []).filter((c) => c.default).map((c) => c.config_name).join() === 'catalogue', 'configs: expected catalogue as the default');
for (const c of configs ?? []) {
  for (const glob of [c.data_files].flat()) {
    const found = all.filter((f) => pattern(glob).test(f));
    expect(found.length > 0, `configs: ${c.config_name}: no file matches ${glob}`);
  }
}

for (const [, target] of card.matchAll(/\]\(([^)\s]+)\)/g)) {
  if (/^https?:/.test(target)) continue;
  const file = join(set, decodeURIComponent(target));
  expect(existsSync(file) && statSync(file).isFile(), `link to ${target}: the set has no such file`);
}
console.log(`${set}/README.md: ${findings} findings`);
process.exit(findings ? 1 : 0);
