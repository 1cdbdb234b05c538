// The codecs of published files. Stores are compressed with zstd; other writers of catalogues use gzip. hyparquet has
// Snappy. The index of hyparquet-compressors would add Brotli, most of the page, and WebAssembly, which the page forbids.

import { decompress } from 'fzstd';
import { gunzip } from 'hyparquet-compressors/src/gzip.js';

export const compressors = {
  GZIP: (input, length) => gunzip(input, new Uint8Array(length)),
  ZSTD: (input) => decompress(input),
};
